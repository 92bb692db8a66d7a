"""The command `add`: one task from the command line, or a whole file of them or nothing."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from agent_node.deadlines import passed_already
from agent_node.envelope import Answer
from agent_node.errors import BadInput, Refused
from agent_node.strict import JsonObject, decode_object
from agent_node.task import FIELDS, task_from
from agent_node.text import counted, safe_text, short_uids
from agent_node.ulid import fresh_ulid

from .around import Around, Request, Result
from .catalogue import Runnable
from .drafting import draft, draft_arguments, read_input
from .shapes import StrangeAnswer, objects, reason, refusal, some_objects, whole, words

FILE_MAX = 7 * 1024 * 1024  # one request is one line of at most 8 MiB, and one transaction
TASKS_MAX = 10_000
BAD_LINES_SHOWN = 50
NEEDS_SHOWN = 200  # characters of one set of them


def add_arguments(parser: ArgumentParser) -> None:
    """The words of `add`."""
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="what to do, in one line")
    parser.add_argument("--file", metavar="F", help="JSON lines, a task each; - for stdin")
    draft_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would happen")


def add(options: Namespace, around: Around) -> Answer:
    """Queue what was described; a task that is here already is told, not added twice."""
    if (options.subject is None) == (options.file is None):
        raise BadInput("give a SUBJECT or --file, one of them", "subject")
    if options.file is None:
        task = draft(options, around, source=around.by)
        return _added([task], around, dry_run=options.dry_run)
    tasks = _tasks_in(options.file, around)
    return _added(tasks, around, dry_run=options.dry_run, whole=True)


def add_request(tasks: Sequence[JsonObject], *, dry_run: bool, whole: bool) -> Request:
    """The request that adds these tasks in one transaction."""
    request: Request = {"do": "add", "tasks": list(tasks)}
    if whole:
        request["whole"] = True
    if dry_run:
        request["dry_run"] = True
    return request


def _added(
    tasks: Sequence[JsonObject], around: Around, *, dry_run: bool, whole: bool = False
) -> Answer:
    """One transaction; with `whole` the node adds all of them or none."""
    answer = around.door(add_request(tasks, dry_run=dry_run, whole=whole))
    results = objects(answer, "results")
    if len(results) != len(tasks):
        raise StrangeAnswer(f"the node answered {len(results)} results for {len(tasks)} tasks")
    refused = [result for result in results if result.get("outcome") == "refused"]
    if refused and whole:
        raise _none_added(tasks, results)
    if refused:
        raise refusal(refused[0])
    data = {"results": results, "dry_run": dry_run}
    new = [task for task, result in zip(tasks, results, strict=True)
           if result.get("outcome") == "added"]  # fmt: skip
    warnings = [*_unknown(tasks), *passed_already(new, around.clock.now()), *_unmet(answer)]
    if new and answer.get("dispatcher") == "stopped":
        from .starting import typed  # only for who is warned

        warnings.append(f"no daemon runs here, so nothing starts: {typed(around, 'start')}")
    return Answer(data, render_added(tasks, results, dry_run=dry_run), warnings=tuple(warnings))


def _unknown(tasks: Sequence[JsonObject]) -> tuple[str, ...]:
    """A field that no node knows is kept, and perhaps meant as another one."""
    if all(FIELDS.keys() >= task.keys() for task in tasks):
        return ()
    from agent_node.unknown_fields import unknown_fields  # hardly any file needs it

    return tuple(unknown_fields(tasks))


def _unmet(answer: Result) -> Iterator[str]:
    """A need that nobody here meets: its task waits, and perhaps for a slip of the pen."""
    for one in some_objects(answer, "unmet_needs"):
        who = counted(whole(one, "count"), "task")
        needs = safe_text(words(one, "needs").replace(",", ", "), NEEDS_SHOWN)
        yield f"{who} that no agent here may start, for none has: {needs}; agent-node status"


def _none_added(tasks: Sequence[JsonObject], results: Sequence[Result]) -> Refused:
    """Every task that kept the others out, by its place; those that were kept out are not told."""
    told = [
        safe_text(f"  task {number} {str(task.get('subject', ''))[:40]}: {reason(result)}")
        for number, (task, result) in enumerate(zip(tasks, results, strict=True), start=1)
        if result.get("outcome") == "refused" and refusal(result).rule != "whole"
    ]
    head = f"nothing was added: {len(told)} of {counted(len(tasks), 'task')} refused"
    return Refused("file_refused", "\n".join([head, *told[:BAD_LINES_SHOWN]]))


def render_added(
    tasks: Sequence[JsonObject], results: Sequence[Result], *, dry_run: bool
) -> str:
    """A count of each outcome, then a line a task when they are few."""
    counts = {
        outcome: sum(1 for result in results if result.get("outcome") == outcome)
        for outcome in ("added", "exists")
    }
    told = ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number)
    head = f"{'dry run, nothing changed: ' if dry_run else ''}{told}"
    if len(tasks) > BAD_LINES_SHOWN:
        return head
    return "\n".join([head, *_lines(tasks, results)])


def _lines(tasks: Sequence[JsonObject], results: Sequence[Result]) -> list[str]:
    short = short_uids(str(result.get("uid", "")) for result in results)
    lines = []
    for task, result in zip(tasks, results, strict=True):
        uid = str(result.get("uid", ""))
        subject = str(task.get("subject", ""))
        lines.append(safe_text(f"  {result.get('outcome')}  {short[uid]}  {uid}  {subject}"))
        if result.get("because"):
            lines.append(safe_text(f"    {reason(result)}"))
    return lines


def _tasks_in(name: str, around: Around) -> list[JsonObject]:
    """Every line as a checked task, or one error that names every bad line."""
    raw = read_input(name, around, at_most=FILE_MAX, field="--file")
    tasks: list[JsonObject] = []
    bad: list[str] = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            tasks.append(_task_on(line, around))
        except BadInput as error:
            bad.append(f"  line {number}: {safe_text(str(error), 200)}")
    if bad:
        more = f"\n  and {len(bad) - BAD_LINES_SHOWN} more" if len(bad) > BAD_LINES_SHOWN else ""
        shown = "\n".join(bad[:BAD_LINES_SHOWN]) + more
        raise BadInput(f"nothing was added: {counted(len(bad), 'bad line')}\n{shown}", name)
    if not tasks:
        raise BadInput("holds no task; nothing was added", name)
    _check_size(tasks, name)
    return tasks


def _task_on(line: bytes, around: Around) -> JsonObject:
    task = decode_object(line)
    task.setdefault("uid", fresh_ulid())
    task.setdefault("source", around.by)
    task.setdefault("origin", task["source"])
    task_from(task)
    return task


def _check_size(tasks: Sequence[JsonObject], name: str) -> None:
    """Uids and sources that we add make the request longer than the file was."""
    if len(tasks) > TASKS_MAX:
        raise BadInput(f"{len(tasks)} tasks; at most {TASKS_MAX} at a time; split the file", name)
    size = len(json.dumps(tasks, ensure_ascii=False).encode("utf-8"))
    if size > FILE_MAX:
        raise BadInput(f"{size} bytes as one request; at most {FILE_MAX}; split the file", name)


COMMANDS = {"add": Runnable(add_arguments, add)}
