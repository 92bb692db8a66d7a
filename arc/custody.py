"""Says what of a node's word on a task is believed: who else has it, and what it can have left."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from agent_node.budget import amount_of, plus, text_of
from agent_node.errors import BadInput
from agent_node.fields import is_money
from agent_node.output_hash import OUTPUT_SHA256, is_as_told
from agent_node.strict import JsonObject, decode_object
from agent_node.task import ENDED, Task, task_from, to_wire

from .asking import read_shown
from .decisions.outbox import EndHeard, JoinHeard
from .decisions.view import NodeSeen, NodeUnseen
from .entitling import is_older
from .errors import ArcError, NodeRefused
from .journal_ends import SETTLED, TaskEnd
from .links import Link
from .looking import INBOX, Look
from .sensor import Moved

if TYPE_CHECKING:
    from .hub import Hub

# Of a task that went on, or has not arrived yet, another node knows better.
ELSEWHERE = frozenset({"MOVED", "HELD"})
ABSENT, SILENT = "", "silent"
NOT_FOUND = "not_found"  # a node's rule: it never had this task
Fences = frozenset[tuple[str, str]]  # node and incarnation
PARENTS_MAX = 200  # of births of one node that one run asks all stores for


async def whose_else(seen: Look, uid: str, node: str, *, once: bool = False) -> str:
    """Who keeps the word of `node` on this task from being believed, for people; empty: nobody.

    Nothing is asked where the hub itself moved the task there last, or with `once` at any time.
    Else every store is asked. One where the task lives contradicts, or where it ended, too: only
    one of them can have had it. Whoever the hub gave it to last contradicts also by being away.
    """
    moves = seen.hub.journal.runs.moved([uid])
    had = {one.idle for one in moves} | {one.busy for one in moves}
    last = last_holder(moves, fences_of(seen.hub))
    if node in (INBOX, last) or (once and node in had):
        return ""
    if last is not None and _is_away(seen, last):
        return f"{last}, which had it last and is away"
    others = [one.name for one in seen.whole.seen
              if one.name != node and one.name in seen.links and _is_sound(one)]  # fmt: skip
    said = await asyncio.gather(*(_state_at(seen.links[name], uid) for name in others))
    fit = (ABSENT, SILENT, *(ENDED if once and not moves else ()))
    return ", ".join(name for name, found in zip(others, said, strict=True)
                     if found not in fit or (found == SILENT and name == last))


def _is_away(seen: Look, name: str) -> bool:
    """Whether it is a node of the fleet that did not answer, or that nobody asks."""
    found = seen.whole.node(name)
    return isinstance(found, NodeUnseen) or (found is not None and name not in seen.links)


def fences_of(hub: Hub) -> Fences:
    """Lives of nodes that a person has declared to be off."""
    return frozenset((one.node, one.incarnation) for one in hub.journal.words.fences())


def last_holder(moves: Sequence[Moved], fences: Fences) -> str | None:
    """To whom these moves of one task, oldest first, gave it last; None: nobody ever moved it. A
    life that was fenced since does not count: then it is whoever had given it away.
    """
    for move in reversed(moves):
        lives = {(move.idle, move.idle_incarnation)} if move.idle_incarnation else {
            (name, life) for name, life in fences if name == move.idle}  # fmt: skip
        if not lives & fences:
            return move.idle
    return moves[0].busy if moves else None


def _is_sound(node: NodeSeen) -> bool:
    """What a queue in quarantine holds may have gone on elsewhere."""
    return node.report.state != "quarantined"


async def _state_at(link: Link, uid: str) -> str:
    try:
        shown = read_shown(link.name, uid, await link.ask("show", {"uid": uid}))
    except NodeRefused as refused:
        return ABSENT if refused.rule == NOT_FOUND else SILENT  # where its disk fails, say
    except ArcError:
        return SILENT
    return ABSENT if shown.task.state in ELSEWHERE else str(shown.task.state)


def without_strangers(hub: Hub, ends: Sequence[TaskEnd]) -> list[TaskEnd]:
    """Of several ends of one task that of the node to which the hub moved it last; where that has
    told none, those of nodes that had it at some time, if there are any.
    """
    moves, fences = _moves_of(hub, {one.uid for one in ends}), fences_of(hub)
    weights = {one: _custody(one, moves[one.uid], fences) for one in ends}
    best: dict[str, int] = {}
    for one, weight in weights.items():
        best[one.uid] = max(best.get(one.uid, 0), weight)
    return [one for one in ends if weights[one] == best[one.uid]]


def _custody(end: TaskEnd, moves: Sequence[Moved], fences: Fences) -> int:
    if end.node == last_holder(moves, fences):
        return 2
    return int(any(end.node in (move.busy, move.idle) for move in moves))


def _moves_of(hub: Hub, uids: Collection[str]) -> dict[str, list[Moved]]:
    found: dict[str, list[Moved]] = {uid: [] for uid in uids}
    for move in hub.journal.runs.moved([*uids]):
        found[move.uid].append(move)
    return found


def settled_elsewhere(hub: Hub, uids: Iterable[str]) -> dict[str, TaskEnd]:
    """Ends that keep a copy in the hub's own queue from being started: those told by the node to
    which the hub gave the task last, or that refused it because it had it; and of tasks older than
    the journal by any. What anybody else says to have ended is still to be run.
    """
    ends = [one for one in hub.journal.ends.all_of(list(uids))
            if one.state in SETTLED and one.node != INBOX]  # fmt: skip
    moves = _moves_of(hub, {one.uid for one in ends})
    return {one.uid: one for one in ends if _keeps_a_copy(hub, one, moves[one.uid])}


def _keeps_a_copy(hub: Hub, end: TaskEnd, moves: Sequence[Moved]) -> bool:
    if end.node in hub.journal.runs.refused_as_here(end.uid):
        return True
    if moves:
        return end.node == last_holder(moves, fences_of(hub))
    return is_older(hub, end.uid)


async def believed(seen: Look, births: Sequence[JoinHeard]) -> tuple[JoinHeard, ...]:
    """Those whose parents their nodes can have run; the others are looked at again, after all that
    were doubted less. A bounded number of parents of each node is asked for in one run.
    """
    asked: dict[str, dict[str, None]] = defaultdict(dict)
    for one in births:
        if one.parent and len(asked[one.node]) < PARENTS_MAX:
            asked[one.node][one.parent] = None
    pairs = [(parent, node) for node, parents in asked.items() for parent in parents]
    said = await asyncio.gather(*(whose_else(seen, *pair, once=True) for pair in pairs))
    clear = {pair for pair, other in zip(pairs, said, strict=True) if not other}
    doubted = {pair for pair, other in zip(pairs, said, strict=True) if other}
    seen.hub.journal.outbox.doubted([one for one in births if (one.parent, one.node) in doubted])
    return tuple(one for one in births if not one.parent or (one.parent, one.node) in clear)


def left_by(task: Task) -> JsonObject:
    """What a task left behind: its output, even where that is nothing, its files, and its cost:
    that of all its attempts, of which the last one alone is no longer the whole where it failed.
    """
    whole = to_wire(task)
    left: JsonObject = {name: whole[name] for name in ("output", "artifacts")}
    return {**left, "cost_usd": _cost_of(task)}


def _cost_of(task: Task) -> str | None:
    said = [one.get("cost_usd") for one in task.attempts if isinstance(one, dict)]
    costs = [amount_of(cost) for cost in said if isinstance(cost, str) and is_money(cost)]
    total = text_of(reduce(plus, costs)) if costs else ""
    return total if is_money(total) else task.cost_usd  # no store takes more than that


def kept_of(end: EndHeard) -> JsonObject:
    """What its event told of what it left; nothing where no store would take it."""
    if not end.result:
        return {}
    try:
        told = decode_object(end.result.encode())
        sha256 = told.pop(OUTPUT_SHA256, None)
        left = left_by(task_from({**told, "uid": end.uid, "subject": end.uid}))
    except BadInput:
        return {}
    return with_hash(left, sha256 if isinstance(sha256, str) else None)


def with_hash(left: JsonObject, sha256: str | None) -> JsonObject:
    """The same with the hash of its output, where its node tells one; nothing where that differs:
    what was changed on its way here is passed on to nobody.
    """
    if sha256 is None:
        return left
    return {**left, "sha256": sha256} if is_as_told(left["output"], sha256) else {}


def with_costs(hub: Hub, end: EndHeard, kept: JsonObject) -> JsonObject:
    """The same, with what all attempts cost of which the hub heard, by whoever had the task: the
    last event of a node tells of its last attempt alone.
    """
    moves = hub.journal.runs.moved([end.uid])
    had = {end.node, *(name for one in moves for name in (one.busy, one.idle))}
    costs = [amount_of(one.cost_usd) for one in hub.journal.ends.costs_of(end.uid)
             if one.node in had]  # fmt: skip
    total = text_of(reduce(plus, costs)) if costs else ""
    return {**kept, "cost_usd": total} if is_money(total) else kept
