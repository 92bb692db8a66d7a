"""Finds free slots that stand beside waiting work they may run, and what keeps the two apart; pure.

The number by which the product is judged: whether work may be run is a matter of domains, needs,
pins and states alone, and never of priorities, thresholds, hops or caps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agent_node.clock import parse_iso
from agent_node.strict import JsonObject, JsonValue

from .domains import Domain, belongs_to, is_foreign, lacks, may_do, powers_of, touches_never
from .limits import StealLimits
from .memory import Memory
from .node_rules import (
    THIEF_RULES,
    busy_rules,
    first_objection,
    free_slots_of,
    idle_rules,
    idle_seconds,
    startable,
)
from .objections import Objection
from .rules import task_objections
from .view import FleetView, NodeSeen, Queue, QueuedTask, Queues
from .wanting import entries_for

NOBODY_LOOKED = "nobody_looked"
INBOX = "inbox"
PAGE = 100
ANYONE_FROM = 1  # priority has no say in what may be run
_FREE_RULES = tuple(rule for rule in THIEF_RULES if rule.__name__ != "nothing_waits")


@dataclass(frozen=True, slots=True)
class Stranded:
    """A node with a free slot, and one task that it may run and that waits elsewhere."""

    node: str
    cause: str  # "rule": the policy forbade the move; "nobody_looked": it would have moved
    rule: str  # which one; for nobody_looked why nobody did, or empty
    because: str
    uid: str = ""  # empty: there is one, but the queue could not be looked into
    beside: str = ""  # where that task waits
    free_s: float | None = None  # idle for so long, by its own word; None: it is not, or no word
    ready_s: float | None = None  # READY there for so long, by that node's word; None: no word


@dataclass(frozen=True, slots=True)
class LastLook:
    """What the look before knew: how long ago it was, whom it knew of, and who was free then."""

    ago_s: float
    known: frozenset[str]
    free: frozenset[str]


def free_nodes(
    view: FleetView, limits: StealLimits, memory: Memory | None = None
) -> tuple[NodeSeen, ...]:
    """Healthy nodes with more free slots than waiting work of their own, by name."""
    known = memory or Memory()
    return tuple(
        node
        for node in sorted(view.seen, key=lambda node: node.name)
        if node.report.free_slots > startable(node)
        and first_objection(_FREE_RULES, node, limits, known) is None
    )


def stranded_asking(
    view: FleetView, limits: StealLimits, memory: Memory | None = None
) -> tuple[tuple[str, ...], JsonObject]:
    """Whose queues to look into for this count, and with which request.

    No names: nothing waits beside a free slot. The view may hold the inbox as a node: its tasks
    wait like any others.
    """
    known = memory or Memory()
    free = free_nodes(view, limits, known)
    names = tuple(sorted(node.name for node in view.seen if _surplus(node) > 0)) if free else ()
    unbounded = replace(limits, anyone_from=ANYONE_FROM)
    wanted: list[JsonValue] = [
        {key: value for key, value in entry.items() if key != "hops_max"}
        for entry in entries_for(free, unbounded, known)
    ]
    request: JsonObject = {
        "why": "stolen", "for": wanted, "order": "most_urgent", "limit": PAGE,
    }  # fmt: skip
    return names, request


def stranded_now(
    view: FleetView,
    queues: Queues,
    *,
    domains: Sequence[Domain],
    limits: StealLimits,
    memory: Memory | None = None,
) -> tuple[Stranded, ...]:
    """Every node that is stranded at this moment, once, with the reason; a lower bound.

    One waiting task strands one node, however many stand free. What lies beyond the page that
    was read is not counted.
    """
    known = memory or Memory()
    nodes = {node.name: node for node in view.seen}
    waiting = _waiting(nodes, queues)
    found: list[Stranded] = []
    for node in free_nodes(view, limits, known):
        match = next((one for one in waiting if may_run(one[1], node, domains)), None)
        if match is not None:
            waiting.remove(match)
            giver = nodes[match[0]]
            rule = _forbids(node, giver, match[1], (domains, limits, known))
            found.append(_stranded(node, giver, match[1], rule))
            continue
        unread = _unread(node, nodes, queues)
        if unread is not None:
            found.append(unread)
    return tuple(found)


def charge(one: Stranded, last: LastLook) -> float:
    """For how many seconds, up to now, this pair counts as stranded.

    Never longer than the task has been READY there, than the node has been free as far as that is
    known, and than since the last look. Of a node that this look is the first to know of, or that
    is not idle and was not free at the last one, nobody knows since when a slot is free: nothing.
    """
    if one.node not in last.known or (one.free_s is None and one.node not in last.free):
        return 0.0
    bounds = (last.ago_s, one.free_s, one.ready_s)
    return max(min(bound for bound in bounds if bound is not None), 0.0)


def add_up(charged: Iterable[tuple[Stranded, float]]) -> dict[tuple[str, str], float]:
    """The seconds of each stranded node, by node and by the rule, or `nobody_looked`.

    Add it to what earlier looks have found.
    """
    total: defaultdict[tuple[str, str], float] = defaultdict(float)
    for one, seconds in charged:
        total[one.node, one.rule if one.cause == "rule" else NOBODY_LOOKED] += seconds
    return dict(total)


def _waiting(nodes: dict[str, NodeSeen], queues: Queues) -> list[tuple[str, QueuedTask]]:
    """The tasks that were seen, each with its node; without those it starts at once itself."""
    return [
        (name, task)
        for name, queue in sorted(queues.items())
        if isinstance(queue, Queue) and name in nodes
        for task in _beyond_its_slots(nodes[name], queue.tasks)
    ]


def _beyond_its_slots(node: NodeSeen, tasks: Sequence[QueuedTask]) -> Iterator[QueuedTask]:
    """What no agent there can run takes none of its slots."""
    slots, powers = free_slots_of(node), powers_of(node)
    for task in tasks:
        if slots and lacks(task.needs, powers) is None:
            slots -= 1
        else:
            yield task


def _surplus(node: NodeSeen) -> int:
    return node.report.pending_count - free_slots_of(node)


def may_run(task: QueuedTask, node: NodeSeen, domains: Sequence[Domain]) -> bool:
    """Whether this work may be run there at all: by domains, needs, pins and state alone."""
    belongs = belongs_to(task, domains)
    return (
        task.state == "READY"
        and not task.pinned
        and touches_never(belongs, node.role) is None
        and is_foreign(task, belongs, node.role, anyone_from=ANYONE_FROM) is None
        and lacks(task.needs, powers_of(node)) is None
    )


def _stranded(
    node: NodeSeen, giver: NodeSeen, task: QueuedTask, rule: Objection | None
) -> Stranded:
    known = (task.uid, giver.name, idle_seconds(node), _ready_s(task, giver))
    if rule is None:
        because = "no rule forbids it; the next look would move it"
        return Stranded(node.name, NOBODY_LOOKED, "", because, *known)
    return Stranded(node.name, "rule", rule.rule, rule.because, *known)


def _ready_s(task: QueuedTask, giver: NodeSeen) -> float | None:
    """Up to the giver's report by its own clock, then by the hub's; below zero: READY after it."""
    if task.ready_at is None:
        return None
    try:
        waits = parse_iso(giver.report.written_at) - parse_iso(task.ready_at)
    except ValueError:
        return None
    return waits.total_seconds() + giver.age_s


def _forbids(
    node: NodeSeen,
    giver: NodeSeen,
    task: QueuedTask,
    policy: tuple[Sequence[Domain], StealLimits, Memory],
) -> Objection | None:
    """Which rule of the policy keeps this task from this node; None: none does, but for caps."""
    domains, limits, memory = policy
    if giver.name == INBOX:
        return None  # the router's to hand out; it has no thresholds of stealing
    return (
        next(iter(task_objections(task, limits)), None)
        or first_objection(busy_rules(limits), giver, limits, memory)
        or first_objection(idle_rules(limits), node, limits, memory)
        or _threshold(task, node, domains, limits)
    )


def _threshold(
    task: QueuedTask, node: NodeSeen, domains: Sequence[Domain], limits: StealLimits
) -> Objection | None:
    """Untagged work that anyone may run, but that the policy keeps for its urgency."""
    return may_do(task, node.role, domains, anyone_from=limits.untagged_from)


def _unread(node: NodeSeen, nodes: dict[str, NodeSeen], queues: Queues) -> Stranded | None:
    """A queue with waiting work that could not be looked into may hold work for this node."""
    for name, queue in sorted(queues.items()):
        if not isinstance(queue, Queue) and name in nodes and _surplus(nodes[name]) > 0:
            return Stranded(
                node.name, NOBODY_LOOKED, "queue_was_read", queue.because, "", name,
                idle_seconds(node), _oldest_s(nodes[name]),
            )  # fmt: skip
    return None


def _oldest_s(giver: NodeSeen) -> float | None:
    """Nothing waits there for longer."""
    oldest_s = giver.report.oldest_ready_s
    return None if oldest_s is None else oldest_s + giver.age_s
