"""Says what a rebalance and the router would do now, with a reason for each task that stays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.explain import Kept, KeptCount, NodeVerdict, Steal
from arc.decisions.view import QueueUnseen
from arc.looking import Look, look
from arc.planning import after_drains, drains_now, retries_now, routes_now, steals_now

from . import Told
from .everybody import words_of

if TYPE_CHECKING:
    from arc.hub import Hub

KEPT_SHOWN = 500
REBALANCE, ROUTER = "fleet-rebalance", "fleet-router"


async def plan(hub: Hub, args: JsonObject) -> Told:
    """The very plans that the sensors would carry out, or `sensor` alone; nothing is changed."""
    asked = Fields(args)
    only = asked.word("sensor", REBALANCE, ROUTER) if asked.has("sensor") else None
    parts: list[Part] = []
    async with hub.moving:  # moves half way would be counted twice
        seen = await look(hub)
        if only != ROUTER:
            parts.append(await _rebalance(seen))
        if only != REBALANCE:
            parts.append(await _router(seen))
    unseen = [*_unseen(seen), *(one for part in parts for one in part.unseen)]
    paused = hub.journal.words.fleet_paused()
    data: JsonObject = {
        "sensor": only, "policy": hub.settings.policy, "skipped": None,
        "paused": None if paused is None else ": ".join(
            filter(None, (f"paused by {paused.by}", paused.reason))),
        "kept": [one for part in parts for one in part.kept],
        "counts": [one for part in parts for one in part.counts],
        "unseen": list(unseen), "hub_running": hub.schedule is not None,
    }  # fmt: skip
    for part in parts:
        data |= part.data
    silent = [one for one in unseen if one["rule"] != "suspended"]
    partial: tuple[JsonObject, ...] = tuple(
        {"node": one["node"], "error": {"code": one["code"], "message": one["because"]}}
        for one in silent
    )
    return Told(data, exit=3 if silent else 0, partial=partial)


@dataclass(frozen=True)
class Part:
    """What one sensor would do: its moves, and what it leaves where it is."""

    data: JsonObject
    kept: list[JsonValue]
    counts: list[JsonValue]
    unseen: tuple[JsonObject, ...] = ()


async def _rebalance(seen: Look) -> Part:
    drains = await drains_now(seen)
    seen = after_drains(seen, drains)
    retries = await retries_now(seen)
    steals, queues = await steals_now(seen, after=retries.steals)
    data: JsonObject = {
        "skipped": steals.skipped, "steals": steps(steals.steals), "drains": steps(drains.steals),
        "retries": steps(retries.steals), "nodes": verdicts(steals.nodes),
        "caps": words_of(steals.caps_hit),
    }  # fmt: skip
    unseen: tuple[JsonObject, ...] = tuple(
        {"node": queue.node, "rule": queue.rule, "because": f"its queue: {queue.because}",
         "code": queue.code}
        for queue in queues.values() if isinstance(queue, QueueUnseen)
    )  # fmt: skip
    return Part(data, [*kept_of(retries.kept), *kept_of(steals.kept), *kept_of(drains.kept)],
                [*counts_of(steals.counts), *counts_of(drains.counts)], unseen)  # fmt: skip


async def _router(seen: Look) -> Part:
    routes = await routes_now(seen)
    return Part({"routes": steps(routes.routes)}, kept_of(routes.kept), counts_of(routes.counts))


def _unseen(seen: Look) -> list[JsonObject]:
    return [
        {"node": node.name, "rule": node.rule, "because": node.because, "code": node.code}
        for node in seen.view.unseen
    ]


def steps(steals: Iterable[Steal]) -> list[JsonValue]:
    """Each move of a plan, as it would be made."""
    return [
        {"uid": one.task.uid, "subject": one.task.subject, "priority": one.task.priority,
         "from": one.busy, "to": one.idle, "why": one.why, "because": one.because}
        for one in steals
    ]  # fmt: skip


def kept_of(kept: Iterable[Kept], most: int = KEPT_SHOWN) -> list[JsonValue]:
    """The first tasks that stay, one by one; the counts have all of them."""
    return [
        {"uid": one.task.uid, "subject": one.task.subject, "priority": one.task.priority,
         "node": one.node, "rule": one.objection.rule, "because": one.objection.because}
        for one in islice(kept, most)
    ]  # fmt: skip


def counts_of(counts: Iterable[KeptCount]) -> list[JsonValue]:
    """How many stay by which rule, node by node."""
    return [
        {"node": one.node, "rule": one.rule, "count": one.count, "because": one.because}
        for one in counts
    ]


def verdicts(nodes: Iterable[NodeVerdict]) -> list[JsonValue]:
    """What each node was in the plan, and why it was not idle or busy."""
    return [
        {"node": one.name, "part": one.part, "pending": one.pending,
         "rule": one.objection.rule if one.objection else "",
         "because": one.objection.because if one.objection else ""}
        for one in nodes
    ]  # fmt: skip
