"""Reads the answers of nodes strictly, as values: what does not fit is an error, no guess."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from agent_node.commands import Added, Because, Changed
from agent_node.errors import BadInput
from agent_node.moves import Reowned
from agent_node.output_hash import OUTPUT_SHA256
from agent_node.queries import Given, Listed, Shown
from agent_node.reports import StatusReport, parse_report
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from agent_node.task import Task, task_from
from agent_node.text import safe_text
from agent_node.validation import needs_of

from .decisions.view import Queue, QueuedTask
from .errors import AnswerUnreadable

ENTRIES_MAX = 100_000
COUNT_MAX = 10**7
EPOCH_MAX = 2**62
SAID_MAX = 500  # of a sentence that a node says
SECONDS_MAX = 10**10

Value = TypeVar("Value")


@contextmanager
def reading(node: str, what: str) -> Iterator[None]:
    """Whatever cannot be read inside is `AnswerUnreadable`, naming the node and the field."""
    try:
        yield
    except BadInput as error:
        said = safe_text(str(error), SAID_MAX)
        raise AnswerUnreadable(node, f"its answer to {what} cannot be read: {said}") from error


# --- Ownership ---------------------------------------------------------------------------------


def because_of(entry: Fields) -> Because | None:
    """Why not, cut to a sentence; None where the node gave no reason."""
    if not entry.has("because"):
        return None
    said = entry.inside("because")
    text = said.values.get("text")
    sentence = safe_text(text, SAID_MAX) if isinstance(text, str) else ""
    return Because(said.text("rule", 64), sentence)


def read_reowned(node: str, do: str, result: JsonObject, uids: Sequence[str]) -> list[Reowned]:
    """barred, reowned or refused: one for each uid, in the order they were asked for."""
    with reading(node, do):
        said = {
            (uid := entry.ulid("uid")): Reowned(
                uid, entry.word("outcome", "barred", "reowned", "refused"), because_of(entry)
            )
            for entry in Fields(result).objects("results", ENTRIES_MAX)
        }
        if said.keys() != set(uids):
            raise BadInput("it is not about the tasks that were asked for", "results")
        return [said[uid] for uid in uids]


def read_given(node: str, result: JsonObject) -> tuple[tuple[Given, ...], str | None]:
    """A page of the tasks that left this node, and after which uid the next page begins."""
    with reading(node, "moved"):
        said = Fields(result)
        given = tuple(map(_given, said.objects("moved", ENTRIES_MAX)))
        return given, said.ulid("next") if said.has("next") else None


def _given(entry: Fields) -> Given:
    return Given(
        uid=entry.ulid("uid"),
        epoch=entry.whole("epoch", 1, EPOCH_MAX),
        xfer=entry.ulid("xfer"),
        peer=entry.node("peer"),
        peer_incarnation=entry.maybe_text("peer_incarnation"),
        at=entry.text("at", 64),
        settled=entry.flag("settled"),
        ended=entry.maybe_text("ended"),
        here=entry.flag("here"),
    )


# --- Looking --------------------------------------------------------------------------------------


def read_report(
    node: str, incarnation: str | None, result: JsonObject | StatusReport
) -> StatusReport:
    """The node's own report, read here if it was not already. One by another node, or under
    another incarnation than the one that was met (None: nobody was), is no report of this node.
    """
    with reading(node, "status"):
        report = result if isinstance(result, StatusReport) else parse_report(result)
        if report.node != node:
            raise BadInput(f"it is the report of {report.node}", "node")
        if incarnation is not None and report.incarnation != incarnation:
            raise BadInput(f"{report.incarnation} answers where {incarnation} was met",
                           "incarnation")  # fmt: skip
        return report


def read_queue(node: str, result: JsonObject) -> Queue:
    """The candidates of a queue; `kept` and `eligible` add up to `total`, or it is no answer."""
    with reading(node, "candidates"):
        said = Fields(result)
        kept = said.inside("kept")
        counts = {rule[:64]: kept.whole(rule, 0, COUNT_MAX) for rule in kept.values}
        eligible, total = said.whole("eligible", 0, COUNT_MAX), said.whole("total", 0, COUNT_MAX)
        tasks = tuple(map(_queued, said.objects("tasks", ENTRIES_MAX)))
        if eligible + sum(counts.values()) != total:
            raise BadInput(f"{eligible} and {sum(counts.values())} kept are not {total}", "total")
        if len(tasks) > eligible or len({task.uid for task in tasks}) < len(tasks):
            raise BadInput(f"{len(tasks)} tasks of {eligible}, or one of them twice", "tasks")
        following = said.maybe_whole("next", 0, 2**63 - 1)
        return Queue(node, tasks, counts, eligible, total, following)


def _queued(entry: Fields) -> QueuedTask:
    """Checked as a task is; a candidate that is not READY is none."""
    task = task_from(entry.values)
    if task.state != "READY":
        raise BadInput(f"{task.uid} is {task.state}, and only READY tasks move", "state")
    return queued(task)


def queued(task: Task) -> QueuedTask:
    """The task as the decisions look at it; what judges its output is a need like any other."""
    needs = needs_of(task.needs, task.validate) if task.validate else task.needs
    return QueuedTask(
        uid=task.uid, epoch=task.epoch, subject=task.subject, priority=task.priority,
        skills=tuple(task.skills), needs=tuple(needs), domain=task.domain,
        stolen_from=task.stolen_from, hops=task.hops, pinned=task.pinned, source=task.source,
        ready_at=task.ready_at, expected_s=task.expected_s, state=str(task.state),
        failed_on=_failed_on(task) if task.attempts else (),
    )  # fmt: skip


def _failed_on(task: Task) -> tuple[str, ...]:
    failed = (one.get("node") for one in task.attempts
              if isinstance(one, dict) and one.get("counted"))  # fmt: skip
    return tuple(dict.fromkeys(node for node in failed if isinstance(node, str)))


def read_listed(node: str, result: JsonObject) -> Listed:
    """A page of tasks without bodies, and where the next one starts."""
    with reading(node, "list"):
        said = Fields(result)
        tasks = tuple(task_from(entry.values) for entry in said.objects("tasks", ENTRIES_MAX))
        place, total = (said.maybe_whole(name, 0, 2**62) for name in ("next", "total"))
        return Listed(tasks, place, order=_orders(said), total=total)


def _orders(said: Fields) -> dict[str, JsonObject]:
    """By uid how urgent a task is by now; nothing of a node that does not tell it yet."""
    orders = said.inside("order").values if said.has("order") else {}
    return {uid: one for uid, one in orders.items() if isinstance(one, dict)}


def read_shown(node: str, uid: str, result: JsonObject) -> Shown:
    """The task that was asked for, with its attempts, moves and events as the node wrote them."""
    with reading(node, "show"):
        said = Fields(result)
        task = task_from(said.inside("task").values)
        if task.uid != uid:
            raise BadInput(f"it is about {task.uid}, not {uid}", "task.uid")
        attempts, moves, events = (
            tuple(entry.values for entry in said.objects(name, ENTRIES_MAX))
            for name in ("attempts", "moves", "events")
        )
        care, order = (said.inside(of).values if said.has(of) else {} for of in ("care", "order"))
        sha256 = said.maybe_text(OUTPUT_SHA256, 64)
        return Shown(task, attempts, moves, events, care, order, sha256)


def read_events(node: str, result: JsonObject) -> tuple[JsonObject, ...]:
    """Numbered events, oldest first; one without a number or a name is none."""
    with reading(node, "events"):
        events = Fields(result).objects("events", ENTRIES_MAX)
        for event in events:
            event.whole("seq", 0, 2**62)
            event.text("event", 64)
        return tuple(event.values for event in events)


# --- Words on tasks -------------------------------------------------------------------------------


def read_added(node: str, result: JsonObject) -> tuple[Added, ...]:
    """What became of each new task, in the order they were given."""
    with reading(node, "add"):
        return _each(result, lambda entry: Added(
            _uid_or_none(entry), entry.word("outcome", "added", "exists", "refused"),
            because_of(entry),
        ))  # fmt: skip


def _uid_or_none(entry: Fields) -> str:
    """The uid; empty for what was refused because it could not be read as a task."""
    return "" if entry.values.get("uid") == "" else entry.ulid("uid")


def read_changed(node: str, do: str, result: JsonObject) -> tuple[Changed, ...]:
    """What became of each task that was set, cancelled or retried."""
    with reading(node, do):
        return _each(result, lambda entry: Changed(
            entry.ulid("uid"), entry.word("outcome", "changed", "stopping", "refused"),
            task_from(entry.inside("task").values) if entry.has("task") else None,
            because_of(entry), already=entry.flag("already"),
            not_here_until=entry.maybe_moment("not_here_until"),
        ))  # fmt: skip


def _each(result: JsonObject, read: Callable[[Fields], Value]) -> tuple[Value, ...]:
    return tuple(map(read, Fields(result).objects("results", ENTRIES_MAX)))
