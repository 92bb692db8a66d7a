"""Says how long work waits where it is: a busy node's queue in seconds, as a plan uses it up; pure.

Estimates are rough, and only order the moves; every promise is kept by the rules and the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .crowds import Crowd, Stock
from .domains import lacks, powers_of
from .limits import StealLimits
from .memory import Memory
from .node_rules import starts_nothing
from .view import NodeSeen, QueuedTask

UNHEARD_OF = 10.0  # times what is usual: beside what runs for so long, that says nothing
STOPPED_S = 86_400.0  # where it never starts, for want of a dispatcher or an agent: like a day


@dataclass(eq=False)
class Line:
    """What waits at a busy node, in seconds: who stands where, and when it would start."""

    stock: Stock
    slots: int
    running_s: float
    usual_s: float  # of one task
    spread: float  # waiting tasks for each one of the page
    unfit: frozenset[str] = frozenset()  # uids of those that no agent there can run

    @cached_property
    def waiting(self) -> list[QueuedTask]:
        """All of the page that is not planned away, in the node's own order."""
        return [*self.stock.queue.tasks]

    @cached_property
    def crowd_of(self) -> dict[str, Crowd]:
        """By uid."""
        return {task.uid: crowd for crowd in self.stock.crowds for task in crowd.tasks}

    def here_s(self, ahead: int) -> float:
        """How long until a task with so many of the page before it would start if it stayed."""
        if self.unfit and self.waiting[ahead].uid in self.unfit:
            return STOPPED_S
        return (self.running_s + ahead * self.spread * self.usual_s) / self.slots

    def relief_s(self, ahead: int, task: QueuedTask) -> float:
        """How much waiting it would save those behind it, all together, if this task left."""
        if task.uid in self.unfit:
            return 0.0
        behind = self.stock.left - 1 - ahead * self.spread
        return behind * (task.expected_s or self.usual_s) / self.slots if behind > 0 else 0.0

    def rank(self) -> tuple[float, str]:
        """Whoever would finish last stands first. It only falls back while a plan is made."""
        finish_s = (self.running_s + self.stock.left * self.usual_s) / self.slots
        return -finish_s, self.stock.node

    def take(self, ahead: int) -> tuple[QueuedTask, Crowd]:
        """Plan the task away that has so many of the page before it."""
        crowd = self.crowd_of[self.waiting.pop(ahead).uid]
        before = sum(self.crowd_of[task.uid] is crowd for task in self.waiting[:ahead])
        return self.stock.take(crowd, before), crowd


def lines_of(
    stocks: Sequence[Stock], nodes: Mapping[str, NodeSeen], limits: StealLimits, memory: Memory
) -> list[Line]:
    """The queues of these busy nodes in seconds."""
    return [_line_of(stock, nodes[stock.node], limits, memory) for stock in stocks]


def _line_of(stock: Stock, node: NodeSeen, limits: StealLimits, memory: Memory) -> Line:
    """What cannot move stands evenly among what can."""
    page = stock.queue.tasks
    spread = max(stock.queue.total / len(page), 1.0) if page else 1.0
    running_s = running_left_s(node, limits, memory)
    usual_s, powers = _usual_s(page, limits, memory), powers_of(node)
    ran_s = memory.runs_for_s.get(node.name, 0.0)
    if ran_s > usual_s:
        running_s = max(running_s, node.report.running_count * ran_s)
        if ran_s > UNHEARD_OF * usual_s:
            usual_s = _usual_s(page, limits, memory, least_s=ran_s)
    unfit = frozenset(
        task.uid for task in page if task.needs and lacks(task.needs, powers) is not None
    )
    return Line(stock, max(node.report.slots, 1), running_s, usual_s, spread, unfit)


def running_left_s(node: NodeSeen, limits: StealLimits, memory: Memory) -> float:
    """How long what runs there goes on: as remembered, else half of what a task usually takes."""
    report = node.report
    if report.dispatcher != "running" or starts_nothing(node):
        return STOPPED_S * max(report.slots, 1)
    usual_s = memory.typical_s.get("", limits.default_task_s)
    return memory.running_left_s.get(node.name, report.running_count * usual_s / 2)


def _usual_s(
    page: Sequence[QueuedTask], limits: StealLimits, memory: Memory, *, least_s: float = 0.0
) -> float:
    """How long one of these takes: what they say, else what is usual for their domains."""
    typical_s = memory.typical_s
    prior_s = max(typical_s.get("", limits.default_task_s), least_s)
    if least_s:
        typical_s = {domain: max(seconds, least_s) for domain, seconds in typical_s.items()}
    said = [
        task.expected_s or typical_s.get(task.domain or "", prior_s)
        for task in page
        if task.expected_s or task.domain
    ]
    return (sum(said) + prior_s * (len(page) - len(said))) / len(page) if page else prior_s
