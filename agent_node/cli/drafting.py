"""Makes a task out of the words of `add` and `spawn`, checked before it leaves."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from agent_node.errors import BadInput
from agent_node.fields import BODY_MAX
from agent_node.readiness import edges_of
from agent_node.references import references_of
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import task_from
from agent_node.ulid import fresh_ulid

from .around import Around
from .finding import find_uid
from .moments import moment

# Option, field of the task: what is said with it goes into the task as it is.
_PLAIN = (
    ("priority", "priority"),
    ("priority_100", "priority_100"),
    ("key", "key"),
    ("type", "type"),
    ("max_s", "max_s"),
    ("max_attempts", "max_attempts"),
    ("on_interrupt", "on_interrupt"),
    ("skill", "skills"),
    ("need", "needs"),
    ("tag", "tags"),
    ("model", "models"),
)


def draft_arguments(parser: ArgumentParser) -> None:
    """The words that describe one task."""
    more = parser.add_argument
    more("-p", "--priority", type=priority, metavar="N", help="1 (most urgent) to 10; default: 5")
    more("--priority-100", type=int, metavar="N", help="finer: 0 to 100, lower first")
    more("--skill", action="append", metavar="S", help="a tag for the work; repeatable")
    more("--need", action="append", metavar="N", help="what its agent must have; repeatable")
    more("--body", metavar="TEXT", help="the work itself")
    more("--body-file", metavar="F", help="the work itself, from a file or - for stdin")
    more("--key", metavar="K", help="adding twice here with one key adds once")
    more("--type", metavar="T", help="what kind of task it is")
    more("--tag", action="append", metavar="T", help="a label; repeatable")
    more("--max-s", type=float, metavar="S", help="seconds until its program is stopped")
    more("--max-attempts", type=int, metavar="N", help="tries before it is given up; default: 3")
    more("--not-before", metavar="T", help="a zoned time, or +90m")
    more("--deadline", metavar="T", help="a zoned time, or +90m")
    more("--model", action="append", metavar="M", help="the model it wants, first choice first")
    more("--pinned", action="store_true", help="it never moves to another node by itself")
    more("--after", action="append", metavar="UID[:fail|skip|run]",
         help="wait for this task (of one here also a part of its uid); then what to do if "
              "it ends badly; repeatable")  # fmt: skip
    more("--context", action="append", metavar="REF",
         help="be given task:UID:output of another task; repeatable")  # fmt: skip
    more("--on-interrupt", choices=("retry", "park"), help="when its attempt was cut off")


def priority(text: str) -> int:
    """`3` or `P3`; the bounds are the task's own business."""
    return int(text.removeprefix("P").removeprefix("p"))


def draft(options: Namespace, around: Around, *, source: str) -> JsonObject:
    """The task these words describe, with a uid of its own, so that a repeat adds nothing.

    Checked by the same rules as at the node, so that a mistake is told before anything is sent.
    """
    task: JsonObject = {
        "uid": fresh_ulid(),
        "subject": options.subject,
        "source": source,
        "origin": source,
    }
    for option, field in _PLAIN:
        value: JsonValue = getattr(options, option)
        if value is not None:
            task[field] = value
    now = around.clock.now()
    for name in ("not_before", "deadline"):
        text: str | None = getattr(options, name)
        if text is not None:
            task[name] = moment(text, name, now)
    if options.pinned:
        task["pinned"] = True
    if options.after:
        task["depends_on"] = [_edge(one, around) for one in options.after]
    if options.context:
        task["context_refs"] = [*options.context]
    body = _body(options, around)
    if body:
        task["body"] = body
    task_from(task)
    edges_of(_listed(task, "depends_on"), of=str(task["uid"]), where="after")
    references_of(_listed(task, "context_refs"), "context")
    return task


def _listed(task: JsonObject, name: str) -> list[JsonValue]:
    value = task.get(name)
    return value if isinstance(value, list) else []


def _edge(text: str, around: Around) -> JsonValue:
    """`UID`, or `UID:skip`; of a task that is here its beginning or its end is enough."""
    uid, colon, word = text.partition(":")
    return {"uid": find_uid(uid, around), "on_failure": word if colon else "fail"}


def _body(options: Namespace, around: Around) -> str:
    if options.body is not None and options.body_file is not None:
        raise BadInput("give --body or --body-file, not both", "body")
    if options.body_file is None:
        return options.body or ""
    raw = read_input(options.body_file, around, at_most=BODY_MAX, field="body")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"is not valid UTF-8 at byte {error.start}", "body") from error


def read_input(name: str, around: Around, *, at_most: int, field: str) -> bytes:
    """All bytes of a file, or of stdin for `-`; more than `at_most` is refused and not read."""
    try:
        if name == "-":
            raw = around.stdin.read(at_most + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(at_most + 1)
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}", field) from error
    if len(raw) > at_most:
        raise BadInput(f"{name}: more than {at_most} bytes", field)
    return raw
