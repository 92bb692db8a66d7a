"""Measures the plan alone, for more nodes than anybody has: what it costs, and how it grows."""

from __future__ import annotations

import gc
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median

from agent_node.clock import iso
from agent_node.reports import AgentReport, StatusReport
from arc.decisions.domains import Domain, Role
from arc.decisions.limits import StealLimits
from arc.decisions.stealing import plan_steals
from arc.decisions.view import FleetView, NodeSeen, Queue, QueuedTask

from .machine import load
from .measuring import Place, Row, in_turns, milliseconds

AT = datetime(2026, 3, 10, 3, 45, tzinfo=UTC)
READY = 200
SIZES = (125, 250, 500)
DOMAINS = tuple(
    Domain(name, skills=(f"{name}-skill",), prefix=(f"{name.title()}:",), words=(f"{name}s",))
    for name in ("protocol", "research", "integration", "infra")
)
# What a task brings: mostly nothing, else a tag, a prefix or a word that names its domain.
TAGS: tuple[tuple[str, ...], ...] = ((), (), (), ("research-skill",), ("infra-skill", "unheard"))
SUBJECTS = ("look at the figures", "Protocol: a thing", "read the researchs", "Infra: restart")


@dataclass(frozen=True)
class Fleet:
    """So many busy nodes with their queues known, and idle ones beside them."""

    view: FleetView
    queues: dict[str, Queue]

    def plan(self, limits: StealLimits) -> int:
        """How many moves were planned; every task that stays has its reason counted."""
        numbers = itertools.count(1)
        plan = plan_steals(self.view, self.queues, domains=DOMAINS, limits=limits,
                           mint=lambda: f"00XFER{next(numbers):020d}")  # fmt: skip
        if not plan.steals:
            raise RuntimeError(f"nothing was planned: {plan.skipped}")
        return len(plan.steals)


def fleet_of(busy: int, ready: int) -> Fleet:
    """A tenth as many idle nodes as busy ones, so that there is something to plan."""
    chance = random.Random(busy)
    names = [f"n{number:03d}" for number in range(busy)]
    idle = [f"z{number:03d}" for number in range(max(1, busy // 10))]
    seen = [_node(name, place, waiting=ready) for place, name in enumerate(names)]
    seen += [_node(name, place, waiting=0) for place, name in enumerate(idle)]
    queues = {name: _queue(name, place * ready, ready, chance) for place, name in enumerate(names)}
    return Fleet(FleetView(AT, tuple(seen)), queues)


def _node(name: str, place: int, *, waiting: int) -> NodeSeen:
    running = 1 if waiting else 0
    agent = AgentReport(name, "full" if running else "available", 1, running)
    report = StatusReport(
        node=name, incarnation="01NC" + "0" * 22, generation=1, version="0.1.0",
        written_at=iso(AT), dispatcher="running", idle=not waiting,
        idle_since=None if waiting else iso(AT - timedelta(seconds=240)), pending_count=waiting,
        running_count=running, slots=1, free_slots=1 - running, state="active",
        counts={"READY": waiting, "RUNNING": running}, agents=(agent,),
    )  # fmt: skip
    own, other = DOMAINS[place % 4].name, DOMAINS[(place + 1) % 4].name
    return NodeSeen(name, report, Role(owns=(own,), also=(other,)))


def _queue(node: str, first: int, ready: int, chance: random.Random) -> Queue:
    tasks = tuple(
        QueuedTask(
            uid=f"{first + number:026d}", epoch=1, subject=chance.choice(SUBJECTS),
            priority=chance.randint(1, 10), skills=chance.choice(TAGS),
            expected_s=chance.choice((None, 30.0, 600.0)),
        )
        for number in range(ready)
    )  # fmt: skip
    return Queue(node, tasks, {}, ready, ready)


def plan_rows(place: Place) -> Iterator[Row]:
    """Each policy: the largest fleet in milliseconds, and the growth up to it."""
    sizes = [place.size(size, number + 2) for number, size in enumerate(SIZES)]
    fleets = [fleet_of(size, place.size(READY, 10)) for size in sizes]
    for policy in ("arc0", "swift"):
        limits = StealLimits(policy=policy)
        yield from _rows_of(policy, sizes, [partial(one.plan, limits) for one in fleets], place)


def _rows_of(
    policy: str, sizes: Sequence[int], plans: Sequence[Callable[[], int]], place: Place
) -> Iterator[Row]:
    gc.collect()
    for plan in plans:
        moves = plan()
    took = [median(side) for side in in_turns(place.rounds(9), *map(milliseconds, plans))]
    smaller: dict[str, float | str] = {
        f"{size} nodes, ms": one for size, one in zip(sizes[:-1], took[:-1], strict=True)
    }
    yield Row(
        f"plan-500-{policy}", f"plan for {sizes[-1]} nodes x {READY} READY, {policy}: every reason",
        took[-1], None, "ms", took[-1], 100.0, load=load(),
        more={"moves planned": float(moves), **smaller},
    )  # fmt: skip
    grew, may = took[-1] / took[0], n_log_n(sizes[-1]) / n_log_n(sizes[0])
    yield Row(
        f"plan-growth-{policy}", f"growth from {sizes[0]} to {sizes[-1]} nodes : that of n log n",
        grew, may, "x", grew / may, 1.0, load=load(), against="n log n",
    )  # fmt: skip


def n_log_n(count: int) -> float:
    """What the cost may be proportional to."""
    return count * math.log2(count)
