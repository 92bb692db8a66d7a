"""Policy `swift` moves what a planner without any shortcut moves, who asks every rule each time."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from arc.decisions.changes import Situation
from arc.decisions.domains import Role, belongs_to, powers_of
from arc.decisions.limits import StealLimits
from arc.decisions.lines import STOPPED_S, running_left_s
from arc.decisions.memory import Memory
from arc.decisions.node_rules import free_slots_of
from arc.decisions.rules import Gain, Move, objections
from arc.decisions.stealing import plan_steals
from arc.decisions.view import NodeSeen, Queue, QueuedTask

from ..fleet_builders import (
    DOMAINS,
    a_busy_node,
    a_node,
    a_queue,
    a_queued,
    a_view,
    an_agent_report,
    minting,
    queues,
)

ROLES = (Role(), Role(("research",)), Role(("protocol",), ("research",)), Role(never=("research",)))
TAKES_S = ((None,), (None, 20.0, 4000.0), (600.0, 30.0), (None, 610.0, 590.0, 1200.0))


@pytest.mark.parametrize("seed", range(150))
def test_swift_moves_what_a_planner_without_shortcuts_moves(seed: int) -> None:
    """Guards: each of these alone fails several of the fleets: a node is given none beyond its free
    slots; all kinds of receivers share one heap of givers; so do nodes that refused something; a
    giver keeps its first rank; who also gives shares the heap of its kind, or takes from itself.
    """
    situation = a_fleet_by(Random(seed))
    plan = plan_steals(
        situation.view, situation.queues, domains=situation.domains, limits=situation.limits,
        mint=minting(), memory=situation.memory,
    )  # fmt: skip
    idle = [one.name for one in plan.nodes if one.takes]

    found = [] if plan.skipped else Plainly(situation, idle).steals()
    assert [(steal.task.uid, steal.busy, steal.idle) for steal in plan.steals] == found


def a_fleet_by(chance: Random) -> Situation:
    """Up to four busy nodes and six with a free slot; some refused something, some run on for long,
    and on some of the latter waits what no agent there can run, and what came after their report.
    """
    some = [
        a_queue(name, *tasks_by(chance, 100 * place, chance.randint(1, 16)))
        for place, name in enumerate(("iris", "juno", "kit", "lark")[: chance.randint(1, 4)])
    ]
    busy = [
        a_busy_node(queue.node, queue.total, slots=slots, running_count=chance.randint(0, slots))
        for queue in some
        for slots in [chance.randint(1, 3)]
    ]
    names = ("ada", "bob", "cy", "dot", "eve", "fay")[: chance.randint(1, 6)]
    idle, own = [], []
    for place, name in enumerate(names):
        gpu = ("gpu",) * (chance.random() < 0.3)
        waits = tasks_by(chance, 1000 + 100 * place, chance.choice((0, 0, 1, 7)), ((), ("gpu",)))
        unmet = 0 if gpu else sum(task.needs != () for task in waits)
        own += [a_queue(name, *waits)] if unmet else []
        slots = chance.randint(1, 3)
        idle.append(a_node(
            name, role=chance.choice(ROLES), slots=slots, pending_count=unmet, unmet_count=unmet,
            running_count=chance.randrange(slots), agents=(an_agent_report(name, skills=gpu),),
        ))  # fmt: skip
    if len(idle) > 1:  # alone it is not asked
        some += own
    every = [task.uid for queue in some for task in queue.tasks]
    refused = {(chance.choice(every), chance.choice(names)): 5.0
               for _ in range(chance.choice((0, 2, 2 * len(every))))}  # fmt: skip
    left_s = {node.name: chance.choice((0.0, 33.0, 900.0)) for node in busy[1:]}
    limits = StealLimits(policy="swift", gain_min_s=chance.choice((30.0, 700.0)))
    return Situation(a_view(*busy, *idle), queues(*some), DOMAINS, limits,
                     Memory(refused_s=refused, running_left_s=left_s))  # fmt: skip


def tasks_by(
    chance: Random, first: int, count: int, needs: tuple[tuple[str, ...], ...] = ((),)
) -> list[QueuedTask]:
    """Most urgent first, as a node gives them."""
    takes_s, subjects = chance.choice(TAKES_S), ("work", "Research: a thing")
    found = [
        a_queued(first + number, priority=chance.randint(1, 10), subject=chance.choice(subjects),
                 skills=chance.choice(((), (), ("arc-research",), ("clarity",))),
                 pinned=chance.random() < 0.1, expected_s=chance.choice(takes_s),
                 needs=chance.choice(needs))
        for number in range(count)
    ]  # fmt: skip
    return sorted(found, key=lambda task: (task.priority, task.uid))


@dataclass
class Giver:
    """A busy node, what waits there, and how long one of it takes."""

    node: NodeSeen
    page: list[QueuedTask]
    left: int
    spread: float
    usual_s: float
    running_s: float
    spare: int

    def until_s(self, ahead: float) -> float:
        return (self.running_s + ahead * self.usual_s) / self.node.report.slots


@dataclass
class Taker:
    node: NodeSeen
    taken: int = 0
    load_s: float = 0.0

    def start_s(self) -> float:
        report = self.node.report
        return 0.0 if self.taken < report.free_slots else self.load_s / report.slots

    def turn(self) -> tuple[float, int, str]:
        report = self.node.report
        has = report.running_count + report.pending_count + self.taken
        return self.start_s(), has, self.node.name


class Plainly:
    """Looks at every node and every task for every move."""

    def __init__(self, situation: Situation, idle: list[str]) -> None:
        self.situation = situation
        nodes = {node.name: node for node in situation.view.seen}
        self.takers = [Taker(nodes[name]) for name in idle]
        self.givers = [
            self._giver(nodes[name], queue)
            for name, queue in situation.queues.items() if isinstance(queue, Queue)
        ]  # fmt: skip

    def _giver(self, node: NodeSeen, queue: Queue) -> Giver:
        limits, page = self.situation.limits, [*queue.tasks]
        takes_s = [task.expected_s or limits.default_task_s for task in page]
        return Giver(
            node, page, queue.total, max(queue.total / len(page), 1.0) if page else 1.0,
            sum(takes_s) / len(page) if page else limits.default_task_s,
            running_left_s(node, limits, self.situation.memory),
            max(queue.total - free_slots_of(node), 0) // 2,
        )  # fmt: skip

    def steals(self) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        while True:
            for taker in sorted(self.takers, key=Taker.turn):
                best = self._best_for(taker)
                if best is not None:
                    found.append(self._take(taker, *best))
                    break
            else:
                return found

    def _best_for(self, taker: Taker) -> tuple[Giver, QueuedTask] | None:
        last_first = sorted(self.givers, key=lambda one: (-one.until_s(one.left), one.node.name))
        for giver in last_first:
            if giver.node.name == taker.node.name:
                continue
            fit = [task for task in giver.page if not self._objections(giver, task, taker)]
            if fit:
                return giver, min(fit, key=lambda task: self._order(giver, task, taker))
        return None

    def _objections(self, giver: Giver, task: QueuedTask, taker: Taker) -> tuple[Any, ...]:
        limits, memory = self.situation.limits, self.situation.memory
        here_s, there_s = self._here_and_there_s(giver, task, taker)
        worth_s = max(limits.gain_min_s, limits.transfer_s / 2, (task.expected_s or 0.0) / 4)
        refused_s = memory.refused_s.get((task.uid, taker.node.name))
        return objections(
            Move(task, belongs_to(task, self.situation.domains), giver.node.name, giver.left,
                 taker.node, powers_of(taker.node), taker.taken, 0, refused_s,
                 free_slots_of(giver.node), giver.spare, Gain(here_s, there_s, worth_s)),
            limits,
        )  # fmt: skip

    def _here_and_there_s(
        self, giver: Giver, task: QueuedTask, taker: Taker
    ) -> tuple[float, float]:
        here_s = giver.until_s(giver.page.index(task) * giver.spread)
        here_s = STOPPED_S if _unfit(task, giver) else here_s
        return here_s, self.situation.limits.transfer_s + taker.start_s()

    def _order(self, giver: Giver, task: QueuedTask, taker: Taker) -> tuple[float, int]:
        """What saves most waiting, its own and that of all behind it; then the most urgent."""
        here_s, there_s = self._here_and_there_s(giver, task, taker)
        behind = giver.left - 1 - giver.page.index(task) * giver.spread
        one_s = (task.expected_s or giver.usual_s) / giver.node.report.slots
        one_s = 0.0 if _unfit(task, giver) else one_s  # nobody behind it waits for its sake
        return -round(here_s - there_s + max(behind, 0.0) * one_s, 1), task.priority

    def _take(self, taker: Taker, giver: Giver, task: QueuedTask) -> tuple[str, str, str]:
        giver.spare -= taker.taken >= taker.node.report.free_slots
        giver.page.remove(task)
        giver.left -= 1
        taker.taken += 1
        taker.load_s += task.expected_s or giver.usual_s
        return task.uid, giver.node.name, taker.node.name


def _unfit(task: QueuedTask, giver: Giver) -> bool:
    return not any(power >= set(task.needs) for power in powers_of(giver.node))
