"""Commands by which a person changes tasks: `set`, `cancel`, `retry`, `resolve`, `release`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from agent_node.envelope import Answer, Exit
from agent_node.errors import BadInput
from agent_node.strict import JsonObject, JsonValue, decode_line
from agent_node.task import FIELDS, SETTABLE
from agent_node.text import safe_text

from .around import Around, Request, Result
from .catalogue import Runnable
from .finding import find_uid, find_uids
from .moments import moment
from .shapes import StrangeAnswer, objects, reason, refusal, words
from .steering import steer

RESOLUTIONS = ("done", "failed", "cancelled", "ready")
_WOULD = {"stopping": "told to stop"}  # as `arc` says it of a dry run
_CLEARED: tuple[JsonValue, ...] = (None, [], False)


def _uid_arguments(
    parser: ArgumentParser, *, many: bool = False, optional: bool = False
) -> None:
    about = "the uid, its beginning or its end"
    if optional:
        parser.add_argument("uid", nargs="?", metavar="UID", help=f"{about}; without: the node")
    elif many:
        parser.add_argument("uid", nargs="+", metavar="UID", help=about)
    else:
        parser.add_argument("uid", metavar="UID", help=about)
    parser.add_argument("--reason", default="", help="why, for whoever looks later")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen")


def many_arguments(parser: ArgumentParser) -> None:
    """The words of `cancel` and `retry`."""
    _uid_arguments(parser, many=True)


def set_arguments(parser: ArgumentParser) -> None:
    """The words of `set`."""
    _uid_arguments(parser)
    parser.add_argument("fields", nargs="+", metavar="KEY=VALUE", help="KEY= clears the field")


def resolve_arguments(parser: ArgumentParser) -> None:
    """The words of `resolve`."""
    _uid_arguments(parser)
    parser.add_argument("--as", dest="as_what", required=True, choices=RESOLUTIONS)
    parser.add_argument("--alone", action="store_true", help="my word: no other copy lives")


def release_arguments(parser: ArgumentParser) -> None:
    """The words of `release`."""
    _uid_arguments(parser, many=False, optional=True)
    parser.add_argument("--alone", action="store_true", help="my word: no other copy lives")


def set_fields(options: Namespace, around: Around) -> Answer:
    """Change settable fields; the node refuses a task that is on its way or running."""
    fields = _fields(options.fields, around)
    return _each("set", [find_uid(options.uid, around)], options, around, fields=fields)


def cancel(options: Namespace, around: Around) -> Answer:
    """End these tasks; a running one is asked to stop first."""
    return _each("cancel", find_uids(options.uid, around), options, around)


def retry(options: Namespace, around: Around) -> Answer:
    """Make these tasks READY again, their failures forgiven."""
    return _each("retry", find_uids(options.uid, around), options, around)


def resolve(options: Namespace, around: Around) -> Answer:
    """A person's word on what became of a task."""
    uids = [find_uid(options.uid, around)]
    more: JsonObject = {"as": options.as_what, **_alone(options)}
    return _each("resolve", uids, options, around, **more)


def release(options: Namespace, around: Around) -> Answer:
    """A person's word that this copy may run; without a task, that this node may work again."""
    if options.uid is None:
        return steer("release", options, around, **_alone(options))
    return _each("release", [find_uid(options.uid, around)], options, around, **_alone(options))


def _alone(options: Namespace) -> JsonObject:
    return {"alone": True} if options.alone else {}


def _each(
    do: str, uids: Sequence[str], options: Namespace, around: Around, **more: JsonValue
) -> Answer:
    """One request and one transaction for all; some may be refused and the others done."""
    request: Request = {
        "do": do,
        "uids": list(uids),
        "reason": options.reason,
        "by": around.by,
        **more,
    }
    if options.dry_run:
        request["dry_run"] = True
    results = [*map(_as_it_was, objects(around.door(request), "results"))]
    if len(results) != len(uids):
        raise StrangeAnswer(f"the node answered {len(results)} results for {len(uids)} tasks")
    refused = [result for result in results if result.get("outcome") == "refused"]
    if len(refused) == len(results):
        raise refusal(refused[0])
    data = {"results": results, "dry_run": bool(options.dry_run)}
    text = render_changes(do, results, dry_run=options.dry_run)
    partial = tuple({"uid": result.get("uid"), "error": _as_error(result)} for result in refused)
    return Answer(data, text, Exit.PARTIAL if refused else Exit.DONE, partial=partial)


def _as_it_was(result: Result) -> Result:
    """What was so before is no change, by whatever word the wire has for it."""
    if result.get("already") is not True:
        return result
    rest = {name: value for name, value in result.items() if name != "already"}
    return {**rest, "outcome": "already"}


def _as_error(result: Result) -> dict[str, str]:
    error = refusal(result)
    return {"code": error.code, "message": error.message}


def render_changes(do: str, results: Sequence[Result], *, dry_run: bool) -> str:
    """How many of how many, then a line for each."""
    done = sum(1 for result in results if result.get("outcome") not in ("refused", "already"))
    head = f"{do}: {done} of {len(results)} done"
    if dry_run:
        head = f"dry run, nothing changed: {do}: {done} of {len(results)} would be done"
    if so := sum(1 for result in results if result.get("outcome") == "already"):
        head += f", {so} already"
    lines = (safe_text(f"  {_change(result, dry_run=dry_run)}") for result in results)
    return "\n".join([head, *lines])


def _change(result: Result, *, dry_run: bool) -> str:
    outcome = words(result, "outcome", "changed")
    if dry_run and outcome != "already":  # that is so now
        outcome = f"would be {_WOULD.get(outcome, outcome)}"
    if result.get("outcome") == "refused":
        return f"{outcome}  {words(result, 'uid')} {reason(result)}"
    task = result.get("task")
    shown = task if isinstance(task, dict) else result
    line = f"{outcome}  {words(shown, 'uid')} {words(shown, 'state')} {words(shown, 'subject')}"
    if result.get("outcome") == "stopping":
        line += " (its daemon ends it; without one it is ended when the next one starts)"
    return f"{line}{_later(shown)}"


def _later(task: Result) -> str:
    """That a task waits for its time, also where a person's word let it live again."""
    if task.get("state") != "PENDING" or task.get("blocked_by") or not task.get("not_before"):
        return ""
    return (f" (it waits for its time, {words(task, 'not_before')}; at once with: agent-node set"
            f" {words(task, 'uid')} not_before=)")  # fmt: skip


def _fields(pairs: Sequence[str], around: Around) -> JsonObject:
    """`KEY=VALUE` words as the fields of a task, each once and each checked."""
    fields: JsonObject = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise BadInput(f"{pair[:40]!r} is not KEY=VALUE", "set")
        if name not in SETTABLE:
            from agent_node.toml_table import suggestion

            known = ", ".join(sorted(SETTABLE))
            raise BadInput(f"cannot be set{suggestion(name, SETTABLE)}; there are {known}", name)
        if name in fields:
            raise BadInput("is given twice", name)
        fields[name] = _value(name, text, around)
    return fields


def _value(name: str, text: str, around: Around) -> JsonValue:
    """What the text means for this field: the first reading that its own check takes."""
    if text.startswith("+") and name in {"not_before", "deadline"}:
        return moment(text, name, around.clock.now())
    complaint: BadInput | None = None
    for reading in _readings(name, text):
        try:
            return FIELDS[name](reading, name)
        except BadInput as error:
            complaint = error
    raise complaint if complaint and text else BadInput("cannot be cleared", name)


def _readings(name: str, text: str) -> list[JsonValue]:
    if not text:
        return list(_CLEARED)
    readings: list[JsonValue] = [] if text.startswith(("[", "{")) else [[*text.split(",")]]
    if name == "priority":
        text = text.removeprefix("P").removeprefix("p")
    readings.append(text)
    try:
        readings.append(decode_line(text.encode("utf-8")))
    except BadInput:
        readings = readings[:2]  # no JSON: then it can only be one of the plain readings
    return readings


COMMANDS = {
    "set": Runnable(set_arguments, set_fields),
    "cancel": Runnable(many_arguments, cancel),
    "retry": Runnable(many_arguments, retry),
    "resolve": Runnable(resolve_arguments, resolve),
    "release": Runnable(release_arguments, release),
}
