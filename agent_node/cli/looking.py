"""Commands that look at the queue and change nothing: `status`, `list` and `show`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from datetime import datetime

from agent_node.deadlines import late_s, say_late
from agent_node.envelope import Answer
from agent_node.errors import BadInput
from agent_node.text import (
    ago,
    counted,
    duration,
    safe_text,
    short_uids,
    size,
    table,
    terminal_width,
)

from .around import Around, Request, Result
from .catalogue import Runnable
from .finding import find_uid
from .shapes import age_s, objects, one_object, some_objects, whole, words

LIST_MAX = 1000
SUBJECT_SHOWN = 40  # characters of a subject on a terminal, for the reason behind it
STATES = (
    "CREATED PENDING READY CLAIMED RUNNING VALIDATING COMPLETED FAILED RETRYING DEAD_LETTERED "
    "CANCELLED ESCROW HELD MOVED PARKED"
).split()


def status_arguments(parser: ArgumentParser) -> None:
    """The words of `status`: none."""


def status(options: Namespace, around: Around) -> Answer:
    """The report the hub would get, computed now."""
    report = around.door({"do": "status"})
    return Answer(report, render_status(report, around.clock.now()))


def render_status(report: Mapping[str, object], now: datetime) -> str:
    """What waits for a person first; then the node, its agents, and what it counts."""
    head = (
        f"{words(report, 'node')}: {words(report, 'state')}, "
        f"daemon {words(report, 'dispatcher')}, "
        f"{whole(report, 'running_count')} of {counted(whole(report, 'slots'), 'slot')} running, "
        f"{whole(report, 'pending_count')} ready"
    )
    lines, needs_you = [head], report.get("needs_you")
    if report.get("reason"):
        lines.append(f"  because  {words(report, 'reason')}")
    if isinstance(needs_you, list):
        lines += [f"  NEEDS YOU  {said}" for said in needs_you]
    lines += _doubts(report)
    lines += _idle(report, now)
    lines += [_agent(agent) for agent in some_objects(report, "agents")]
    lines += _counts(report)
    if isinstance(report.get("disk_free_bytes"), int):
        lines.append(f"  disk     {size(whole(report, 'disk_free_bytes'))} free")
    if report.get("clock_doubt"):
        lines.append(f"  clock    {words(report, 'clock_doubt')}")
    kept = report.get("folders_kept")
    if isinstance(kept, dict) and kept.get("count"):
        told = counted(whole(kept, "count"), "old task")
        lines.append(f"  folders  of {told} cannot be removed: agent-node doctor")
    return "\n".join(safe_text(line) for line in lines)


def _doubts(report: Mapping[str, object]) -> list[str]:
    return [
        f"  doubt    {words(doubt, 'uid')} {words(doubt, 'state')} with {words(doubt, 'peer')}, "
        f"for {duration(whole(doubt, 'age_s'))}"
        for doubt in some_objects(report, "doubts")
    ]


def _idle(report: Mapping[str, object], now: datetime) -> list[str]:
    since = age_s(report, "idle_since", now)
    return [f"  idle     for {duration(max(since, 0))}"] if since is not None else []


def _agent(agent: Mapping[str, object]) -> str:
    beat = words(agent, "last_heartbeat", "never")
    state = words(agent, "held", "") or words(agent, "state")
    why = f" ({words(agent, 'reason')})" if agent.get("reason") else ""
    return (
        f"  agent    {words(agent, 'name')} {state}{why}, "
        f"{whole(agent, 'running')} of {counted(whole(agent, 'slots'), 'slot')} running, "
        f"skills {words(agent, 'skills', 'none')}, last heartbeat {beat}"
    )


def _counts(report: Mapping[str, object]) -> list[str]:
    counts = report.get("counts")
    if not isinstance(counts, dict):
        return []
    told = ", ".join(f"{name} {number}" for name, number in counts.items() if number)
    return [f"  counts   {told or 'no tasks at all'}"]


def list_arguments(parser: ArgumentParser) -> None:
    """The words of `list`."""
    parser.add_argument("--state", action="append", default=[], help="READY, …; repeatable")
    parser.add_argument("--limit", type=int, default=100, help="at most this many (default: 100)")
    parser.add_argument("--after", type=int, help="go on where an earlier list ended")
    parser.add_argument("--match", help="uids that begin or end with this")


def list_tasks(options: Namespace, around: Around) -> Answer:
    """A page of tasks; an empty one says so."""
    result = around.door(_list_request(options))
    tasks = objects(result, "tasks")
    if not tasks:
        return Answer(result, f"no tasks{_of_states(options.state)} here")
    text = render_tasks(tasks, around, result)
    if result.get("next"):
        same = "".join(f" --state {state.upper()}" for state in options.state)
        text += f"\nmore: agent-node list --after {safe_text(str(result['next']))}{same}"
    return Answer(result, text)


def _of_states(states: list[str]) -> str:
    return f" in {', '.join(state.upper() for state in states)}" if states else ""


def _list_request(options: Namespace) -> Request:
    request: Request = {"do": "list", "limit": options.limit, "why": True}
    if not 1 <= options.limit <= LIST_MAX:
        raise BadInput(f"should lie between 1 and {LIST_MAX}, not {options.limit}", "--limit")
    states = [state.upper() for state in options.state]
    for state in states:
        if state not in STATES:
            raise BadInput(f"{state!r} is no state; there are {', '.join(STATES)}", "--state")
    match = (options.match or "").upper()
    for name, value in (("states", states), ("after", options.after), ("match", match)):
        if value:
            request[name] = value
    return request


def render_tasks(tasks: list[Result], around: Around, result: Result) -> str:
    """A line for each task under a count; cut only where a terminal reads along."""
    uids = [str(task.get("uid", "")) for task in tasks]
    short, order, reasons = short_uids(uids), result.get("order"), result.get("reasons")
    now, width = around.clock.now(), terminal_width(around.stdout, around.environ)
    rows = [
        (
            short[uid],
            f"P{words(task, 'priority')}",
            _tier(order.get(uid) if isinstance(order, dict) else None),
            words(task, "state"),
            _age(task, now),
            words(task, "skills"),
            safe_text(words(task, "subject"), None if width is None else SUBJECT_SHOWN),
            _reason(reasons.get(uid) if isinstance(reasons, dict) else None),
        )
        for uid, task in zip(uids, tasks, strict=True)
    ]
    head = ("UID", "P", "TIER", "STATE", "AGE", "SKILLS", "SUBJECT", "REASON")
    return f"{counted(len(tasks), 'task')}\n{table(head, rows, width)}"


def _reason(said: object) -> str:
    """Why it waits, or stands where it is; a rule goes before its text."""
    if not isinstance(said, dict):
        return ""
    rule, text = words(said, "rule", ""), words(said, "text", "")
    return f"{rule}: {text}" if rule else text


def _tier(order: object) -> str:
    """The region of the scale where it is by now, and its effective priority."""
    if not isinstance(order, dict):
        return "-"
    return f"{words(order, 'tier')} {words(order, 'effective')}"


def _age(task: Mapping[str, object], now: datetime) -> str:
    seconds = age_s(task, "created_at", now)
    return "-" if seconds is None else duration(max(seconds, 0))


def show_arguments(parser: ArgumentParser) -> None:
    """The words of `show`."""
    parser.add_argument("uid", metavar="UID", help="the uid, its beginning or its end")


def show(options: Namespace, around: Around) -> Answer:
    """The task, its attempts and its moves."""
    result = around.door({"do": "show", "uid": find_uid(options.uid, around)})
    now = around.clock.now()
    late = late_s(one_object(result, "task"), now)
    return Answer({**result, "late_s": late}, render_shown(result, now))


def render_shown(result: Result, now: datetime) -> str:
    """Every field that says something, then attempts, moves, and the body last."""
    task = one_object(result, "task")
    lines = [f"{words(task, 'uid')} {words(task, 'state')} P{words(task, 'priority')}"]
    lines += [
        f"  {_label(name):<16} {_value(task, name, now)}"
        for name, value in task.items()
        if name not in _NOT_A_LINE and value not in (None, "", [], {}, 0)
    ]
    if result.get("order"):
        lines.append(f"  {'order':<16} {_tier(result['order'])}")
    lines += _care(result)
    events = some_objects(result, "events")
    if len(events) > _LAST:
        lines.append(f"  {'event':<16} … and {len(events) - _LAST} earlier: --json")
    lines += [f"  {'event':<16} {_told(event)}" for event in events[-_LAST:]]
    lines += [f"  {'artifact':<16} {artifact_line(one)}" for one in some_objects(task, "artifacts")]
    for name in ("attempts", "moves"):
        records = some_objects(result, name) if name in result else some_objects(task, name)
        lines += [f"  {name[:-1]:<16} {_record(record)}" for record in records]
    safe = [safe_text(line) for line in lines]
    body = safe_text(words(task, "body", ""), keep="\n\t")
    return "\n".join([*safe, "", body] if body else safe)


def _care(result: Result) -> list[str]:
    """Of what is or was a dead letter: that it is poison, who looked at it and who decided."""
    care = result.get("care")
    if not isinstance(care, dict):
        return []
    lines = [f"  {'poison':<16} it failed wherever it was tried"] if care.get("poison") else []
    for name, note, what in (("reviewed", "note", ""), ("resolution", "reason", "what")):
        said = care.get(name)
        if isinstance(said, dict):
            done = f"{words(said, what)} " if what else ""
            why = f": {words(said, note)}" if said.get(note) else ""
            lines.append(f"  {name:<16} {done}by {words(said, 'by')} {words(said, 'at')}{why}")
    if care.get("total_cost_usd"):
        lines.append(f"  {'cost in all':<16} {words(care, 'total_cost_usd')} USD")
    return lines


_NOT_A_LINE = frozenset({"uid", "state", "priority", "body", "attempts", "moves", "artifacts"})


def artifact_line(one: Mapping[str, object]) -> str:
    """A file that the task left, or why it was not taken."""
    if one.get("because"):
        return f"{words(one, 'name')}: not taken: {words(one, 'because')}"
    return f"{words(one, 'name')} {size(whole(one, 'size'))} {words(one, 'sha256')}"


def _value(task: Mapping[str, object], name: str, now: datetime) -> str:
    if name == "deadline" and (late := late_s(task, now)):
        return f"{words(task, name)} ({say_late(late, ended=bool(task.get('completed_at')))})"
    since = age_s(task, name, now) if name.endswith("_at") else None
    return _said(task, name) if since is None else f"{words(task, name)} ({ago(since)})"


_LABELS = {"n": "", "max_s": "stopped after", "expected_s": "usually takes",
           "cost_usd": "cost", "max_cost_usd": "cost at most"}  # fmt: skip


def _label(name: str) -> str:
    """A field's name for people; `--json` has the names themselves."""
    return _LABELS.get(name, name.removesuffix("_s").replace("_", " "))


def _said(record: Mapping[str, object], name: str) -> str:
    """A field's value: seconds as a length of time, money as such, an object by its parts."""
    value = record[name]
    if isinstance(value, Mapping):
        return _record(value)
    if name.endswith("_s") and isinstance(value, int | float):
        return duration(value)
    return f"{value} USD" if name.endswith("_usd") else words(record, name)


_LAST = 12  # events that a person is shown; `--json` has all


def _told(event: Mapping[str, object]) -> str:
    """When, what, from which state to which, by whom and why."""
    was, state = words(event, "was", ""), words(event, "state", "")
    change = f" {was} -> {state}" if was and state and was != state else ""
    by = f" by {words(event, 'by')}" if event.get("by") else ""
    why = f": {words(event, 'because')}" if event.get("because") else ""
    return f"{words(event, 'at')} {words(event, 'event')}{change}{by}{why}"


def _record(record: Mapping[str, object]) -> str:
    return ", ".join(f"{_label(name)} {_said(record, name)}".lstrip()
                     for name, value in record.items() if value is not None)


COMMANDS = {
    "status": Runnable(status_arguments, status),
    "list": Runnable(list_arguments, list_tasks),
    "show": Runnable(show_arguments, show),
}
