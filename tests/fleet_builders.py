"""Builds reports, nodes, queues and views for tests of the hub: a test shows what matters to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from agent_node.clock import iso
from agent_node.queries import Candidates, Wanting
from agent_node.reports import AgentReport, StatusReport
from agent_node.store.candidates import Shape, objection
from agent_node.strict import JsonObject
from arc.decisions.domains import Domain, Role
from arc.decisions.view import FleetView, NodeSeen, NodeUnseen, Queue, QueuedTask, Queues

from .builders import START, uid

# The seed's fleet: four domains, each with its owner, some also taken by a neighbour when idle.
DOMAINS = (
    Domain("protocol", skills=("stacks-js", "clarity")),
    Domain("research", skills=("arc-research",), prefix=("Research:",), words=("paper",)),
    Domain("integrations", skills=("defi-zest", "defi-bitflow", "ci")),
    Domain("infrastructure", skills=("deploy", "host"), prefix=("Ops:",)),
)
ROLES: Mapping[str, Role] = {
    "forge": Role(owns=("infrastructure",), also=("integrations",)),
    "iris": Role(owns=("research",)),
    "loom": Role(owns=("integrations",), also=("research",)),
    "spark": Role(owns=("protocol",), never=("infrastructure",)),
}


def a_report(name: str = "iris", **fields: Any) -> StatusReport:
    """A report written at START by a healthy node with one slot, on which nothing happens.

    It is of one mind with itself: naming `pending_count` or `running_count` makes it not idle.
    """
    running = fields.setdefault("running_count", 0)
    slots = fields.setdefault("slots", 1)
    fields.setdefault("pending_count", 0)
    fields.setdefault("free_slots", max(0, slots - running))
    fields.setdefault("state", "active")
    fields.setdefault("dispatcher", "running")
    works = fields["state"] == "active" and fields["dispatcher"] == "running"
    idle = fields.setdefault("idle", works and not fields["pending_count"] and not running)
    fields.setdefault("idle_since", iso(START - timedelta(seconds=240)) if idle else None)
    fields.setdefault("counts", {"READY": fields["pending_count"], "RUNNING": running})
    fields.setdefault("movable_count", fields["pending_count"])
    fields.setdefault("agents", (an_agent_report(name, slots=slots, running=running),))
    given = {"incarnation": "01NC" + "0" * 22, "generation": 12, "version": "0.1.0",
             "written_at": iso(START), **fields}  # fmt: skip
    return StatusReport(node=name, **given)


def an_agent_report(name: str = "iris", **fields: Any) -> AgentReport:
    """An agent of one slot: full when that slot is taken, else available."""
    slots, running = fields.setdefault("slots", 1), fields.setdefault("running", 0)
    fields.setdefault("state", "full" if running >= slots else "available")
    return AgentReport(name=name, **fields)


def a_node(name: str = "iris", *, role: Role | None = None, **fields: Any) -> NodeSeen:
    """A node that answered just now; its role is the seed's unless given.

    `age_s`, `took_s` and `clock_off_s` are the hub's; every other field is the report's.
    """
    hubs = {key: fields.pop(key) for key in ("age_s", "took_s", "clock_off_s") if key in fields}
    role = ROLES.get(name, Role()) if role is None else role
    return NodeSeen(name, a_report(name, **fields), role, **hubs)


def an_idle_node(name: str = "loom", *, idle_s: float = 240.0, **fields: Any) -> NodeSeen:
    """A node with nothing to do for so long, by its own clock."""
    since = iso(START - timedelta(seconds=idle_s))
    return a_node(name, idle_since=since, **fields)


def a_busy_node(name: str = "iris", pending: int = 9, **fields: Any) -> NodeSeen:
    """A node with one task running and so many waiting."""
    return a_node(name, pending_count=pending, **{"running_count": 1, **fields})


def an_unseen_node(name: str = "forge", **fields: Any) -> NodeUnseen:
    """A node that did not answer."""
    given = {"rule": "unreachable", "because": "no answer within 10 s",
             "code": "ARC-SSH-UNREACHABLE", "role": ROLES.get(name, Role()), **fields}  # fmt: skip
    return NodeUnseen(name, **given)


def a_view(*nodes: NodeSeen | NodeUnseen) -> FleetView:
    """These nodes side by side, by name, seen at START."""
    ordered = sorted(nodes, key=lambda node: node.name)
    return FleetView(
        START,
        tuple(node for node in ordered if isinstance(node, NodeSeen)),
        tuple(node for node in ordered if isinstance(node, NodeUnseen)),
    )


def a_queued(number: int = 1, **fields: Any) -> QueuedTask:
    """A READY task of priority 8 without tags, which anyone may do, unless the test says more."""
    given = {"uid": uid(number), "epoch": 1, "subject": f"work {number}", "priority": 8, **fields}
    return QueuedTask(**given)


def some_queued(count: int, start: int = 1, **fields: Any) -> tuple[QueuedTask, ...]:
    """So many alike, numbered from `start`."""
    return tuple(a_queued(number, **fields) for number in range(start, start + count))


def a_queue(node: str, *tasks: QueuedTask, **fields: Any) -> Queue:
    """A queue of which these are the candidates and there are no others, unless the test says so.

    Its tasks stand in the order given; `kept` are the node's own counts of others.
    """
    kept = fields.setdefault("kept", {})
    eligible = fields.setdefault("eligible", len(tasks))
    fields.setdefault("total", eligible + sum(kept.values()))
    return Queue(node, tasks, **fields)


def queues(*some: Any) -> Queues:
    """These queues by the names of their nodes."""
    return {queue.node: queue for queue in some}


def minting() -> Callable[[], str]:
    """Transfer ids in order: 00XFER…01, …02, and so on."""
    numbers = iter(range(1, 10**6))
    return lambda: f"00XFER{next(numbers):020d}"


def domain_table(domains: Iterable[Domain] = DOMAINS) -> JsonObject:
    """The table as hello carries it."""
    return {"version": "1"} | {
        domain.name: {"skills": list(domain.skills), "prefix": list(domain.prefix),
                      "words": list(domain.words)}
        for domain in domains
    }  # fmt: skip


def looked_into(
    node: str, tasks: Sequence[QueuedTask], wanting: Any, **asked: Any
) -> Queue:
    """What a node with these READY tasks would answer to `candidates`: its own rules, then a page.

    Runs the node's own objections, so that a test of a plan needs no store. `asked` are the other
    fields of the request: `steal_from`, `order`, `limit`, `why`, and `domains` (the fleet's).
    """
    named = asked.pop("domains", DOMAINS)
    limit = asked.pop("limit", 100)
    query = Candidates(
        why=asked.pop("why", "stolen"), wanting=tuple(map(_wanting, wanting)), limit=limit, **asked
    )
    table = {key: entry for key, entry in domain_table(named).items() if key != "version"}
    said = [(task, objection(_shape(task), query, table)) for task in tasks]
    sign = -1 if query.order == "least_urgent" else 1
    fit = sorted((task for task, rule in said if rule is None),
                 key=lambda task: (sign * task.priority, task.uid))  # fmt: skip
    kept = Counter(rule for _, rule in said if rule is not None)
    return Queue(node, tuple(fit[:limit]), dict(kept), len(fit), len(tasks))


def _shape(task: QueuedTask) -> Shape:
    return Shape(
        pinned=task.pinned, priority=task.priority, domain=task.domain, skills=task.skills,
        needs=task.needs, hops=task.hops, stolen=task.stolen_from is not None,
    )  # fmt: skip


def _wanting(entry: JsonObject) -> Wanting:
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    return Wanting(**given)


def moved_task(queue: Queue, task: QueuedTask) -> Queue:
    """The queue without this task, which has left."""
    left = tuple(one for one in queue.tasks if one.uid != task.uid)
    return replace(queue, tasks=left, eligible=queue.eligible - 1, total=queue.total - 1)
