"""Fleets by chance: nodes in every condition, queues as their nodes would answer for them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agent_node.strict import JsonObject
from arc.decisions.changes import Situation
from arc.decisions.domains import Role
from arc.decisions.limits import StealLimits
from arc.decisions.memory import Memory
from arc.decisions.stealing import asking, busy_to_ask
from arc.decisions.view import FleetView, NodeSeen, NodeUnseen, Queue, QueuedTask, QueueUnseen

from ..fleet_builders import (
    DOMAINS,
    a_busy_node,
    a_node,
    a_queued,
    a_view,
    an_agent_report,
    an_idle_node,
    an_unseen_node,
    looked_into,
)

NAMES = ("ada", "bob", "cy", "dot", "eve", "fay")
DOMAIN_NAMES = tuple(domain.name for domain in DOMAINS)

some_domains = st.lists(st.sampled_from(DOMAIN_NAMES), max_size=2, unique=True).map(tuple)
roles = st.builds(Role, some_domains, some_domains, some_domains.map(lambda some: some[:1]))


@st.composite
def limits_by_chance(draw: st.DrawFn, policy: str | None = None) -> StealLimits:
    return StealLimits(
        policy=policy or draw(st.sampled_from(["arc0", "swift"])),
        busy_over=draw(st.integers(0, 6)),
        steal_from=draw(st.integers(1, 10)),
        anyone_from=draw(st.integers(1, 10)),
        per_node=draw(st.integers(1, 4)),
        per_cycle=draw(st.integers(1, 10)),
        hops_max=draw(st.integers(0, 2)),
    )


@st.composite
def tasks_by_chance(draw: st.DrawFn, first: int, least: int = 0) -> list[QueuedTask]:
    count = draw(st.integers(least, 14))
    subjects = st.sampled_from(["work", "Research: a thing", "read the paper", "Ops: restart"])
    skills = st.sampled_from([(), (), ("arc-research",), ("stacks-js",), ("unheard-of",),
                              ("ci", "deploy")])  # fmt: skip
    found = []
    for number in range(first, first + count):
        hops = draw(st.sampled_from([0, 0, 0, 1, 3]))
        found.append(a_queued(
            number, priority=draw(st.integers(1, 10)), subject=draw(subjects),
            skills=draw(skills), domain=draw(st.sampled_from([None, None, *DOMAIN_NAMES])),
            needs=draw(st.sampled_from([(), (), ("gpu",), ("gpu", "docker")])), hops=hops,
            stolen_from="eve" if hops else None, pinned=draw(st.integers(0, 9)) == 0,
            expected_s=draw(st.sampled_from([None, None, 20.0, 4000.0])),
        ))  # fmt: skip
    return found


KINDS = ("fine",) * 6 + ("unseen", "stale", "paused", "stopped", "failing")


def _node(
    draw: st.DrawFn, name: str, waits: list[QueuedTask], *, fine: bool
) -> NodeSeen | NodeUnseen:
    kind = "fine" if fine else draw(st.sampled_from(KINDS))
    if kind == "unseen":
        return an_unseen_node(name, role=draw(roles))
    slots = draw(st.integers(1, 3))
    skills = draw(st.sampled_from([(), ("gpu",), ("gpu", "docker")]))
    unmet = sum(not {*task.needs} <= {*skills} for task in waits)
    fields: dict[str, Any] = {
        "role": draw(roles), "slots": slots, "unmet_count": unmet,
        "agents": (an_agent_report(name, slots=slots, skills=skills),),
    }  # fmt: skip
    if kind == "stale":
        fields["age_s"] = 700.0
    if kind == "paused":
        fields["state"] = draw(st.sampled_from(["paused", "draining", "quarantined"]))
    if kind == "stopped":
        fields["dispatcher"] = "stopped"
    if kind == "failing":
        fields["agents"] = (an_agent_report(name, slots=slots, state="failing"),)
    if waits:
        return a_busy_node(name, len(waits), running_count=draw(st.integers(0, slots)), **fields)
    if kind == "fine" and (fine or draw(st.booleans())):
        return an_idle_node(name, idle_s=draw(st.sampled_from([120.0, 999.0, 60.0, 119.0])),
                            **fields)  # fmt: skip
    return a_node(name, running_count=draw(st.integers(0, slots)), **fields)


@st.composite
def fleets(draw: st.DrawFn, policy: str | None = None) -> tuple[Situation, dict[str, Any]]:
    """A situation as a cycle would see it, and every READY task of each node."""
    limits = draw(limits_by_chance(policy))
    ready: dict[str, list[QueuedTask]] = {}
    nodes = []
    pair = draw(st.integers(0, 4)) > 0  # mostly there is a busy node and an idle one
    for place, name in enumerate(NAMES[: draw(st.integers(2, 6))]):
        least = 7 if pair and place == 0 else 0
        empty = place == 1 or draw(st.booleans())
        some = [] if empty and not least else draw(tasks_by_chance(100 * place + 1, least))
        if not least and draw(st.integers(0, 4)) == 0:  # nothing there that every agent can run
            some = [task for task in some if task.needs]
        ready[name] = some
        nodes.append(_node(draw, name, some, fine=pair and place < 2))
    view = a_view(*nodes)
    every = [task.uid for tasks in ready.values() for task in tasks]
    pairs = st.tuples(st.sampled_from(every or ["none"]), st.sampled_from(NAMES))
    memory = Memory(refused_s=draw(st.dictionaries(pairs, st.sampled_from([5.0, 599.0, 601.0]),
                                                   max_size=4)))  # fmt: skip
    queues = seen_queues(draw, view, limits, memory, ready)
    return Situation(view, queues, DOMAINS, limits, memory), ready


def seen_queues(
    draw: st.DrawFn, view: FleetView, limits: StealLimits, memory: Memory, ready: dict[str, Any]
) -> dict[str, Queue | QueueUnseen]:
    request: JsonObject = asking(view, limits, DOMAINS, memory)
    page = draw(st.sampled_from([2, 5, 200]))
    queues: dict[str, Queue | QueueUnseen] = {}
    for verdict in busy_to_ask(view, limits, memory):
        name = verdict.name
        if draw(st.integers(0, 9)) == 0:
            queues[name] = QueueUnseen(name, "silent", "no answer within 10 s", "ARC-SILENT")
            continue
        queues[name] = looked_into(
            name, ready[name], request["for"],
            steal_from=request.get("steal_from"), order=request["order"], limit=page,
        )  # fmt: skip
    return queues


def whole(situation: Situation, ready: dict[str, Any]) -> Situation:
    """The same with every queue whole and unfiltered, as `arc why` asks for them."""
    queues = {
        name: Queue(name, tuple(ready[name]), {}, len(ready[name]), len(ready[name]))
        for name in situation.queues
    }
    for node in situation.view.seen:
        some = ready[node.name]
        queues.setdefault(node.name, Queue(node.name, tuple(some), {}, len(some), len(some)))
    return Situation(situation.view, queues, situation.domains, situation.limits,
                     situation.memory)  # fmt: skip
