"""Says what a rebalance and the router would do now, with a reason for each task that stays."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.decisions.explain import Kept, KeptCount, NodeVerdict, Steal
from arc.decisions.view import QueueUnseen
from arc.looking import look
from arc.planning import drains_now, routes_now, steals_now

from . import Told
from .everybody import words_of

if TYPE_CHECKING:
    from arc.hub import Hub

KEPT_SHOWN = 500


async def plan(hub: Hub, args: JsonObject) -> Told:
    """The very plans that the sensors would carry out; nothing is changed."""
    async with hub.moving:  # moves half way would be counted twice
        seen = await look(hub)
        drains = await drains_now(seen)
        steals, queues = await steals_now(seen)
        routes = await routes_now(seen)
    unseen: list[JsonObject] = [
        {"node": node.name, "rule": node.rule, "because": node.because, "code": node.code}
        for node in seen.view.unseen
    ]
    unseen += [
        {"node": queue.node, "rule": queue.rule, "because": f"its queue: {queue.because}",
         "code": queue.code}
        for queue in queues.values() if isinstance(queue, QueueUnseen)
    ]  # fmt: skip
    paused = hub.journal.words.fleet_paused()
    data: JsonObject = {
        "policy": steals.policy, "skipped": steals.skipped,
        "paused": None if paused is None else f"paused by {paused.by}: {paused.reason}",
        "steals": steps(steals.steals), "drains": steps(drains.steals),
        "routes": steps(routes.routes),
        "kept": [*kept_of(steals.kept), *kept_of(drains.kept), *kept_of(routes.kept)],
        "counts": [*counts_of(steals.counts), *counts_of(drains.counts), *counts_of(routes.counts)],
        "nodes": verdicts(steals.nodes), "caps": words_of(steals.caps_hit),
        "unseen": list(unseen), "hub_running": hub.schedule is not None,
    }  # fmt: skip
    silent = [one for one in unseen if one["rule"] != "suspended"]
    partial: tuple[JsonObject, ...] = tuple(
        {"node": one["node"], "error": {"code": one["code"], "message": one["because"]}}
        for one in silent
    )
    return Told(data, exit=3 if silent else 0, partial=partial)


def steps(steals: Iterable[Steal]) -> list[JsonValue]:
    """Each move of a plan, as it would be made."""
    return [
        {"uid": one.task.uid, "subject": one.task.subject, "priority": one.task.priority,
         "from": one.busy, "to": one.idle, "why": one.why, "because": one.because}
        for one in steals
    ]  # fmt: skip


def kept_of(kept: Iterable[Kept]) -> list[JsonValue]:
    """The first tasks that stay, one by one; the counts have all of them."""
    return [
        {"uid": one.task.uid, "subject": one.task.subject, "priority": one.task.priority,
         "node": one.node, "rule": one.objection.rule, "because": one.objection.because}
        for one in islice(kept, KEPT_SHOWN)
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
