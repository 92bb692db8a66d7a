"""Lists, counts and shows tasks wherever in the fleet they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.deadlines import late_s
from agent_node.errors import BadInput
from agent_node.fields import is_name, one_of
from agent_node.narrowing import Narrowed, narrowed_of
from agent_node.queries import Shown
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State, Task, to_wire
from arc.asking import read_listed, read_report, read_shown
from arc.errors import ArcError
from arc.journal_ends import FINAL, TaskEnd
from arc.links import Link

from . import Told
from .everybody import Answers, ask_all, check_node, link_of, not_asked
from .going_on import goes_on
from .graph_finding import find_task_not_graph
from .nobodys import no_domain
from .staying import Reasons
from .why_gone import denied_by_all
from .why_waiting import holds_of

if TYPE_CHECKING:
    from arc.hub import Hub

OPEN = [str(state) for state in State
        if state not in {State.COMPLETED, State.CANCELLED, State.MOVED}]  # fmt: skip
PAGE, PAGE_MIN = 1000, 100  # tasks that one request asks a node for
DIGITS, PLACE_NUMBERS = 19, 2  # of a place in a queue: a number of it, and one of all that fit
LIST_MAX = 10_000
SUBJECT_MAX = 200  # characters of the words that are looked for


async def tasks_list(hub: Hub, args: JsonObject) -> Told:
    """The tasks of the fleet that fit, in the order they came at each node; ended ones if asked.

    `next` is where the next page begins, given back as `after`; null: this was the last. A task
    that moves meanwhile may stand on two pages, or on none. `total` is of all pages, as the first
    one counted them; null: a node could not be asked then, or cannot tell.
    """
    asked = Fields(args)
    states = _states(asked)
    node = asked.maybe_node("node")
    if node is not None and node != "inbox":
        check_node(hub, node)
    limit, after, narrowed = asked.limit(200, LIST_MAX), _after(asked), _narrowed(asked)
    found = await asyncio.gather(*(
        _tasks_of(link_of(hub, name), states, narrowed, limit + 1,
                  after.seq if name == after.node else 0, count=not after.node)
        for name in sorted([node] if node else hub.links) if name >= after.node
    ))  # fmt: skip
    total = after.total if after.node else _total(found)
    tasks = [(one.node, ranked) for one in found for ranked in one.tasks]
    failed = {one.node: one.error for one in found if one.error}
    _note_ends(hub, [(at, one.task) for at, one in tasks])
    reasons = await Reasons.now(hub) if tasks else Reasons(hub, {})
    listed: list[JsonValue] = [_row(reasons, at, one) for at, one in tasks[:limit]]
    more = len(tasks) > limit
    data: JsonObject = {"tasks": listed, "more": more, "unread": [*sorted(failed)],
                        "open_only": states == OPEN, "total": total,
                        "next": _place(*tasks[limit - 1], total) if more else None}  # fmt: skip
    slips = () if tasks else no_domain(hub, asked.maybe_text("domain", 64))
    return Told(data, 3 if failed else 0, Answers({}, failed).partial, (*not_asked(hub), *slips))


@dataclass(frozen=True)
class Place:
    """After which task of which node a page begins; nodes before that one are over. `total`: what
    the first page counted; None: nobody knows.
    """

    node: str = ""
    seq: int = 0
    total: int | None = None


def _after(asked: Fields) -> Place:
    said = asked.maybe_text("after", 80)
    if said is None:
        return Place()
    node, *numbers = said.split(":")
    if not (is_name(node) and 1 <= len(numbers) <= PLACE_NUMBERS and all(map(_is_number, numbers))):
        raise BadInput("should be what an earlier page gave as `next`", "after")
    return Place(node, *map(int, numbers))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < DIGITS


def _place(node: str, last: Ranked, total: int | None) -> str:
    return f"{node}:{last.task.seq or 0}" + (f":{total}" if total is not None else "")


def _note_ends(hub: Hub, tasks: list[tuple[str, Task]]) -> None:
    """What a person was shown as completed is not owned again by a fence a minute later."""
    now = hub.clock.now()
    ends = [TaskEnd(at, task.uid, FINAL, now) for at, task in tasks if task.state == FINAL]
    if ends:
        hub.journal.ends.note(ends)


@dataclass(frozen=True)
class Ranked:
    """A task, and how urgent its node says that it is by now; empty: it has ended, or who knows."""

    task: Task
    order: JsonObject


@dataclass(frozen=True)
class Found:
    """What one node has of a page; how many fit there in all, where it tells that."""

    node: str
    tasks: list[Ranked]
    total: int | None = None
    error: ArcError | None = None


async def _tasks_of(
    link: Link, states: list[str], narrowed: Narrowed, most: int, after: int, *, count: bool
) -> Found:
    """The first tasks of one node that fit, however many others stand before them; where it is to
    `count` them, for which it looks through its whole queue, with how many there are.
    """
    found: list[Ranked] = []
    size = min(PAGE, max(most, PAGE_MIN))
    asked: JsonObject = {"states": list[JsonValue](states), "limit": size, "after": after,
                         "count": count, **narrowed.said()}  # fmt: skip
    try:
        page = read_listed(link.name, await link.ask("list", dict(asked)))
        total, asked["count"] = page.total, False
        while True:
            found += [Ranked(task, page.order.get(task.uid, {}))
                      for task in page.tasks if narrowed.takes(task)]  # fmt: skip
            if page.next is None or len(found) >= most:
                return Found(link.name, found[:most], total)
            asked["after"] = page.next
            page = read_listed(link.name, await link.ask("list", dict(asked)))
    except ArcError as error:
        return Found(link.name, [], error=error)


def _total(found: Sequence[Found]) -> int | None:
    told = [one.total for one in found if one.total is not None]
    return sum(told) if len(told) == len(found) else None


def _narrowed(asked: Fields) -> Narrowed:
    """What each node is asked for; one that is too old to narrow its list gives all of it."""
    words = asked.text_or("subject", "", SUBJECT_MAX).split()
    return narrowed_of(Fields({**asked.values, "subject": list[JsonValue](words)}))


def _states(asked: Fields) -> list[str]:
    states = [state.upper() for state in asked.words("states")]
    for state in states:
        one_of(*State)(state, "state")
    return states or OPEN


def _row(reasons: Reasons, node: str, ranked: Ranked) -> JsonObject:
    """One line of the list, with why a task that waits is still there."""
    task = ranked.task
    if task.state == State.READY:
        rule, because = reasons.about(node, task)
    else:
        rule, because = _held_by(reasons.hub, task)
    return {
        "uid": task.uid, "subject": task.subject, "priority": task.priority, "node": node,
        "state": str(task.state), "skills": list[JsonValue](task.skills), "domain": task.domain,
        "source": task.source, "hops": task.hops, "failures": task.failures,
        "ready_at": task.ready_at, "retry_at": task.retry_at, "pinned": task.pinned,
        "rule": rule, "because": because,
        "tier": ranked.order.get("tier"), "effective": ranked.order.get("effective"),
    }  # fmt: skip


def _held_by(hub: Hub, task: Task) -> tuple[str, str]:
    """Why a task that is PENDING does not become READY, in its node's own words; when another goes
    on, which is no rule.
    """
    held = holds_of(task) if task.state == State.PENDING else []
    return (held[0].rule, held[0].because) if held else ("", goes_on(hub, task))


async def tasks_count(hub: Hub, args: JsonObject) -> Told:
    """How many tasks there are in these states; without any, how many wait or run."""
    asked = Fields(args)
    wanted = [state.upper() for state in asked.words("states")]
    for state in wanted:
        one_of(*State)(state, "state")
    answers = await ask_all(hub, "status", {}, lambda at, said: read_report(at, None, said))
    total = sum(
        count
        for report in answers.said.values()
        for state, count in report.counts.items()
        if state in (wanted or ("PENDING", "READY", "CLAIMED", "RUNNING", "VALIDATING",
                                "RETRYING", "ESCROW"))
    )  # fmt: skip
    return Told({"count": total}, 3 if answers.failed else 0, answers.partial, not_asked(hub))


async def tasks_show(hub: Hub, args: JsonObject) -> Told:
    """One task whole: where it is, what happened to it on every node, and the hub's part in it."""
    found = await find_task_not_graph(hub, Fields(args).text("task", 64))
    answers = await ask_all(hub, "show", {"uid": found.uid},
                            lambda at, said: read_shown(at, found.uid, said),
                            names=found.copies)  # fmt: skip
    shown = answers.said.get(found.node)
    if shown is None:
        raise answers.failed[found.node]
    task = to_wire(shown.task)
    data: JsonObject = {
        "uid": found.uid, "node": found.node, "copies": dict(found.copies),
        "task": task, "late_s": late_s(task, hub.clock.now()), "order": dict(shown.order),
        "attempts": _attempts(answers),
        "moves": [{**one, "on": at} for at, some in sorted(answers.said.items())
                  for one in some.moves],
        "events": _events(answers),
        "hub_moves": [
            {"at": iso(line.at), "run": line.run, "from": line.move.busy, "to": line.move.idle,
             "outcome": line.move.outcome, "why": line.move.why, "because": line.move.because}
            for line in hub.journal.runs.moves(uid=found.uid)
        ],
        "kept": [
            {"run": run, "node": one.node, "rule": one.rule, "because": one.because}
            for run, one in hub.journal.runs.decisions_about(found.uid, 10)
        ],
    }  # fmt: skip
    failed = {**found.answers.failed, **answers.failed} if found.elsewhere else answers.failed
    left = found.not_asked if found.elsewhere else ()
    nowhere = await denied_by_all(hub, found)
    if nowhere:
        left = (*left, f"{nowhere}; arc why {found.uid}")
    return Told(data, 3 if failed or left else 0, Answers({}, failed).partial, left)


def _attempts(answers: Answers[Shown]) -> list[JsonValue]:
    """Each attempt once, in their order: the history travels with a task, so that many nodes tell
    of one; the node on which it ran knows best.
    """
    told: dict[tuple[str, ...], JsonObject] = {}
    for at, some in sorted(answers.said.items()):
        for one in some.attempts:
            which = tuple(str(one.get(name)) for name in ("n", "node", "incarnation"))
            if which not in told or one.get("node") == at:
                told[which] = {**one, "on": at}
    return [*sorted(told.values(), key=lambda one: (
        n if isinstance(n := one.get("n"), int) else 0, str(one.get("claimed_at"))))]


def _events(answers: Answers[Shown]) -> list[JsonValue]:
    """What every node that knows the task noted of it, in the order of their clocks."""
    events: list[JsonObject] = [
        {**one, "on": at} for at, some in answers.said.items() for one in some.events
    ]
    return [*sorted(events, key=lambda one: str(one.get("at")))]
