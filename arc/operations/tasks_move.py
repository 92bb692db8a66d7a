"""Moves waiting tasks to a node by hand, through the same transfer as every other move."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject
from arc.asking import queued, read_shown
from arc.decisions.explain import Steal
from arc.entitling import tying
from arc.errors import NeedsWord, WrongUse
from arc.replaced import remember_met
from arc.sensor import Moved
from arc.transfer import Outcome, carry_out

from . import Told, exit_of
from .everybody import link_of
from .finding import Found, find_task
from .nothing_starts import nothing_starts
from .plan import steps

if TYPE_CHECKING:
    from arc.hub import Hub

BY_HAND = "moved by hand"
# What first makes a waiting task of it; of all other states `arc why` tells.
_HELPS = {
    "DEAD_LETTERED": "arc dead retry {0} --to {1}",
    "RETRYING": "arc tasks retry {0}, which lets it wait at once; then this again",
}


async def tasks_move(hub: Hub, args: JsonObject) -> Told:
    """Each task leaves the node that has it for this one, or stays and says why.

    A person's word passes over priorities, thresholds and caps, never over what a node refuses.
    A pinned task needs `yes`.
    """
    asked = Fields(args)
    to = asked.node("to")
    link_of(hub, to)
    parts = asked.words("tasks")
    if not parts:
        raise WrongUse("move: names no task")
    async with hub.moving:
        found = await asyncio.gather(*(find_task(hub, part) for part in parts))
        there = [one for one in found if one.node == to]
        steals = [await _steal(hub, one, to, asked) for one in found if one.node != to]
        dry_run = asked.flag("dry_run")
        outcomes = await carry_out(steals, hub.links, even_if_pinned=asked.flag("yes"),
                                   note=tying(hub), dry_run=dry_run)  # fmt: skip
    if not dry_run:
        _write_down(hub, outcomes, asked)
    moved: list[JsonObject] = [
        {"uid": one.steal.task.uid, "subject": one.steal.task.subject, "from": one.steal.busy,
         "to": one.steal.idle, "outcome": one.outcome, "rule": one.rule, "because": one.because}
        for one in outcomes
    ]  # fmt: skip
    stayed: list[JsonObject] = [
        {"uid": one.uid, "subject": one.task.subject, "from": to, "to": to, "outcome": "already",
         "rule": "", "because": f"it is there, {one.task.state}"} for one in there
    ]  # fmt: skip
    results = [*moved, *stayed]
    unknown = any(one.outcome == "in_doubt" for one in outcomes)
    there_now = any(one["outcome"] in ("moved", "already") for one in results)
    return Told({"planned": steps(steals), "results": [*results], "dry_run": dry_run},
                exit=exit_of(results, unread=unknown),
                warnings=await nothing_starts(hub, to) if there_now else ())  # fmt: skip


def _write_down(hub: Hub, outcomes: Sequence[Outcome], asked: Fields) -> None:
    """Who had what moved, and what came of it."""
    lives = _remember_ends(hub, outcomes)
    because = f"{BY_HAND} by {asked.text_or('by', 'human:unknown')}: "
    because += asked.text_or("reason", "no reason given", 1000)
    hub.journal.runs.add_moves(tuple(
        Moved(xfer=one.steal.xfer, uid=one.steal.task.uid, busy=one.steal.busy,
              idle=one.steal.idle, outcome=one.outcome, why="moved",
              priority=one.steal.task.priority, rule=one.rule, because=one.because or because,
              busy_incarnation=lives.get(one.steal.busy, ""),
              idle_incarnation=lives.get(one.steal.idle, ""))
        for one in outcomes
    ))  # fmt: skip
    for one in outcomes:
        hub.journal.runs.log(f"task_{one.outcome}", node=one.steal.idle, task=one.steal.task.uid,
                             fields={"from": one.steal.busy, "to": one.steal.idle,
                                     "rule": one.rule, "because": one.because or because})


def _remember_ends(hub: Hub, outcomes: Iterable[Outcome]) -> dict[str, str]:
    """As which each end was met: a fence of one of them needs to know what was moved to whom."""
    names = {name for one in outcomes for name in (one.steal.busy, one.steal.idle)}
    met = [one for name in sorted(names) if (one := hub.links[name].met) is not None]
    remember_met(hub.journal, met)
    return {one.node: one.incarnation for one in met}


async def _steal(hub: Hub, found: Found, to: str, asked: Fields) -> Steal:
    task = found.task
    if task.state != "READY":
        helps = _HELPS.get(task.state, "arc why {0}")
        raise WrongUse(f"{found.uid} is {task.state} on {found.node}; only waiting tasks move",
                       hint=helps.format(found.uid, to))  # fmt: skip
    if task.pinned and not asked.flag("yes"):
        raise NeedsWord(f"{found.uid} is pinned to {found.node}; to move it all the same: --yes")
    link = link_of(hub, found.node)
    shown = read_shown(found.node, found.uid, await link.ask("show", {"uid": found.uid}))
    return Steal(hub.mint(), queued(shown.task), found.node, to, BY_HAND, why="moved")
