"""Policy `swift` moves what a planner without any shortcut moves, who asks every rule each time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arc.decisions.changes import Situation
from arc.decisions.domains import belongs_to, powers_of
from arc.decisions.lines import running_left_s
from arc.decisions.node_rules import free_slots_of
from arc.decisions.rules import Gain, Move, objections
from arc.decisions.stealing import plan_steals
from arc.decisions.view import NodeSeen, Queue, QueuedTask

from ..fleet_builders import minting
from .fleets import fleets

Fleet = tuple[Situation, dict[str, Any]]
known_s = st.dictionaries(st.sampled_from(["ada", "bob", "cy", "dot"]),
                          st.sampled_from([0.0, 33.0, 900.0]), max_size=3)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(fleets("swift"), known_s)
def test_swift_moves_what_a_planner_without_shortcuts_moves(
    fleet: Fleet, left_s: dict[str, float]
) -> None:
    """Guard: with `<` for `<=` where a plan looks at how many a node got, or with a giver that
    stays out for every kind of receiver, this fails.
    """
    memory = replace(fleet[0].memory, running_left_s=left_s)
    situation = replace(fleet[0], memory=memory)
    plan = plan_steals(
        situation.view, situation.queues, domains=situation.domains, limits=situation.limits,
        mint=minting(), memory=memory,
    )  # fmt: skip
    idle = [one.name for one in plan.nodes if one.part == "idle"]

    found = [] if plan.skipped else Plainly(situation, idle).steals()
    assert [(steal.task.uid, steal.busy, steal.idle) for steal in plan.steals] == found


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
            for taker in sorted(self.takers, key=lambda one: (one.start_s(), one.node.name)):
                best = self._best_for(taker)
                if best is not None:
                    found.append(self._take(taker, *best))
                    break
            else:
                return found

    def _best_for(self, taker: Taker) -> tuple[Giver, QueuedTask] | None:
        last_first = sorted(self.givers, key=lambda one: (-one.until_s(one.left), one.node.name))
        for giver in last_first:
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
        return here_s, self.situation.limits.transfer_s + taker.start_s()

    def _order(self, giver: Giver, task: QueuedTask, taker: Taker) -> tuple[float, int]:
        """What saves most waiting, its own and that of all behind it; then the most urgent."""
        here_s, there_s = self._here_and_there_s(giver, task, taker)
        behind = giver.left - 1 - giver.page.index(task) * giver.spread
        one_s = (task.expected_s or giver.usual_s) / giver.node.report.slots
        return -round(here_s - there_s + max(behind, 0.0) * one_s, 1), task.priority

    def _take(self, taker: Taker, giver: Giver, task: QueuedTask) -> tuple[str, str, str]:
        giver.spare -= taker.taken >= taker.node.report.free_slots
        giver.page.remove(task)
        giver.left -= 1
        taker.taken += 1
        taker.load_s += task.expected_s or giver.usual_s
        return task.uid, giver.node.name, taker.node.name
