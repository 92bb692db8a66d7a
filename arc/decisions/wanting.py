"""Says what to ask busy nodes for, so that they filter their queues themselves; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent_node.strict import JsonObject, JsonValue

from .domains import Domain, powers_of
from .explain import NodeVerdict, StealPlan
from .limits import StealLimits
from .memory import Memory
from .node_rules import judge_nodes
from .pairing import receivers_of
from .view import FleetView, NodeSeen, Queue, Queues

PAGE_MIN, PAGE_MAX = 10, 200
Verdicts = Sequence[NodeVerdict]


def asking(
    view: FleetView,
    limits: StealLimits,
    domains: Sequence[Domain],
    memory: Memory | None = None,
    *,
    verdicts: Verdicts | None = None,
) -> JsonObject:
    """The fields of the `candidates` request that every busy node is sent in this cycle.

    `verdicts` are those of `judge_nodes`, where somebody has them already.
    """
    known = memory or Memory()
    idle = _idle(view, limits, known, verdicts)
    return _request(idle, limits, known)


def wanting(
    view: FleetView,
    limits: StealLimits,
    domains: Sequence[Domain],
    memory: Memory | None = None,
) -> list[JsonObject]:
    """The `for` of `candidates`: who is idle, each kind of node once, with what it may do."""
    known = memory or Memory()
    return entries_for(_idle(view, limits, known), limits, known)


def still_wanting(
    plan: StealPlan,
    view: FleetView,
    queues: Queues,
    limits: StealLimits,
    memory: Memory | None = None,
    *,
    verdicts: Verdicts | None = None,
) -> tuple[tuple[str, ...], JsonObject]:
    """Whom to ask once more, and what: some node has room, and a page was cut before its work.

    Five hundred tasks for one node must not hide the one task for another. Ask, `merged` the
    answers, plan again. No names: nothing was hidden.
    """
    full = limits.per_cycle <= len(plan.steals) and not limits.swift
    cut = [
        name
        for name, queue in queues.items()
        if isinstance(queue, Queue) and queue.eligible > len(queue.tasks)
    ]
    if full or not cut:
        return (), {}
    known = memory or Memory()
    got = {steal.idle for steal in plan.steals}
    hungry = [node for node in _idle(view, limits, known, verdicts) if node.name not in got]
    if not hungry:
        return (), {}
    return tuple(sorted(cut)), _request(hungry, limits, known)


def merged(first: Queue, again: Queue) -> Queue:
    """One queue of two looks; what was counted stays as the first look counted it."""
    known = {task.uid for task in first.tasks}
    more = tuple(task for task in again.tasks if task.uid not in known)
    room = max(first.eligible - len(first.tasks), 0)
    return replace(first, tasks=(*first.tasks, *more[:room]))


def _idle(
    view: FleetView, limits: StealLimits, memory: Memory, verdicts: Verdicts | None = None
) -> list[NodeSeen]:
    judged = judge_nodes(view, limits, memory) if verdicts is None else verdicts
    idle = {one.name for one in judged if one.takes}
    return sorted((node for node in view.seen if node.name in idle), key=lambda node: node.name)


def _request(idle: Sequence[NodeSeen], limits: StealLimits, memory: Memory) -> JsonObject:
    entries: list[JsonValue] = [*entries_for(idle, limits, memory)]
    asked: JsonObject = {"why": "stolen", "for": entries, "limit": _page(idle, limits, memory)}
    if limits.swift:
        return {**asked, "order": "most_urgent"}
    return {**asked, "order": "least_urgent", "steal_from": limits.steal_from}


def _page(idle: Sequence[NodeSeen], limits: StealLimits, memory: Memory) -> int:
    """As many as could move at most, those that were refused aside, and a few to choose from."""
    slots = sum(node.report.free_slots + 1 for node in idle)
    most = 2 * slots if limits.swift else min(limits.per_cycle, limits.per_node * len(idle))
    return min(max(most + len(memory.refused_s), PAGE_MIN), PAGE_MAX)


def entries_for(
    idle: Sequence[NodeSeen], limits: StealLimits, memory: Memory
) -> list[JsonObject]:
    """These nodes as `for` of `candidates`: one entry for each kind of node."""
    kinds: Mapping[int, NodeSeen] = {
        receiver.kind: receiver.node for receiver in reversed(receivers_of(idle, memory))
    }
    return [_entry(node, limits) for node in sorted(kinds.values(), key=lambda node: node.name)]


def _entry(node: NodeSeen, limits: StealLimits) -> JsonObject:
    """Its powers as one set: the node's filter is coarse, the hub's rules have the last word."""
    role = node.role
    return {
        "node": node.name,
        "domains": [*sorted({*role.owns, *role.also})],
        "never": [*sorted(role.never)],
        "skills": [*sorted(frozenset().union(*powers_of(node)))],
        "untagged_from": limits.untagged_from,
        "hops_max": limits.hops_allowed,
    }
