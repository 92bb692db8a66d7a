"""Says what of a node's word on a task is believed: who else has it, and what it can have left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from agent_node.budget import amount_of, plus, text_of
from agent_node.errors import BadInput
from agent_node.fields import is_money
from agent_node.strict import JsonObject, decode_object
from agent_node.task import ENDED, Task, task_from, to_wire

from .asking import read_shown
from .decisions.outbox import EndHeard, JoinHeard
from .decisions.view import NodeSeen
from .errors import ArcError, NodeRefused
from .journal_ends import TaskEnd
from .links import Link
from .looking import INBOX, Look

if TYPE_CHECKING:
    from .hub import Hub

# Of a task that went on, or has not arrived yet, another node knows better.
ELSEWHERE = frozenset({"MOVED", "HELD"})
ABSENT, SILENT = "", "silent"


async def whose_else(seen: Look, uid: str, node: str, *, once: bool = False) -> str:
    """Who keeps the word of `node` on this task from being believed, for people; empty: nobody.

    Nothing is asked where the hub itself moved the task there last, or with `once` at any time.
    Else every store is asked. One where the task lives contradicts. Where the hub moved it, and
    never to `node`, so does one where it ended, and whoever had it last while that node is away.
    """
    moves = seen.hub.journal.runs.moved([uid])
    had = {one.idle for one in moves} | {one.busy for one in moves}
    if node == INBOX or (moves and moves[-1].idle == node) or (once and node in had):
        return ""
    strange = bool(moves) and node not in had
    last = moves[-1].idle if strange else node
    if last != node and last not in seen.links and seen.whole.node(last) is not None:
        return f"{last}, which had it last and is away"
    others = [one.name for one in seen.whole.seen
              if one.name != node and one.name in seen.links and _is_sound(one)]  # fmt: skip
    said = await asyncio.gather(*(_state_at(seen.links[name], uid) for name in others))
    fit = (ABSENT, SILENT, *(() if strange else ENDED))
    return ", ".join(name for name, found in zip(others, said, strict=True)
                     if found not in fit or (found == SILENT and name == last))


def _is_sound(node: NodeSeen) -> bool:
    """What a queue in quarantine holds may have gone on elsewhere."""
    return node.report.state != "quarantined"


async def _state_at(link: Link, uid: str) -> str:
    try:
        shown = read_shown(link.name, uid, await link.ask("show", {"uid": uid}))
    except NodeRefused:
        return ABSENT
    except ArcError:
        return SILENT
    return ABSENT if shown.task.state in ELSEWHERE else str(shown.task.state)


def without_strangers(hub: Hub, ends: Sequence[TaskEnd]) -> list[TaskEnd]:
    """Of several ends of one task those of nodes to which the hub moved it, if there are any."""
    moves = hub.journal.runs.moved([*{one.uid for one in ends}])
    had = {(one.uid, name) for one in moves for name in (one.busy, one.idle)}
    known = {one.uid for one in ends if (one.uid, one.node) in had}
    return [one for one in ends if one.uid not in known or (one.uid, one.node) in had]


async def believed(seen: Look, births: Sequence[JoinHeard]) -> tuple[JoinHeard, ...]:
    """Those whose parents their nodes can have run; the others are looked at again."""
    pairs = list(dict.fromkeys((one.parent, one.node) for one in births if one.parent))
    said = await asyncio.gather(*(whose_else(seen, *pair, once=True) for pair in pairs))
    doubted = {pair for pair, other in zip(pairs, said, strict=True) if other}
    return tuple(one for one in births if (one.parent, one.node) not in doubted)


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
        return left_by(task_from({**told, "uid": end.uid, "subject": end.uid}))
    except BadInput:
        return {}
