"""Plans by policy `swift`: a free slot is filled at once, with what gains most by it; pure.

Estimates are rough, and only order the moves; every promise is kept by the rules and the node.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .crowds import Crowd, Stock
from .explain import Objection, Steal, lasting
from .limits import StealLimits
from .memory import Memory
from .pairing import Pairs, Receiver, move_of, whose_work
from .rules import Gain, Move, Rule, first_of, gain_worth_it, has_surplus, slot_or_half
from .view import NodeSeen, QueuedTask

STOPPED_S = 86_400.0  # where no dispatcher runs, nothing starts: as good as a day
Nodes = Mapping[str, NodeSeen]
SWIFT_COUNTS: tuple[Rule, ...] = (has_surplus, slot_or_half, gain_worth_it)


@dataclass(eq=False)
class Line:
    """What waits at a busy node, in seconds: who stands where, and when it would start."""

    stock: Stock
    slots: int
    running_s: float
    usual_s: float  # of one task
    spread: float  # waiting tasks for each one of the page

    def here_s(self, task: QueuedTask) -> float:
        """How long until the task would start if it stayed."""
        waits_s = self.stock.ahead(task) * self.spread * self.usual_s
        return (self.running_s + waits_s) / self.slots

    def rank(self) -> tuple[float, str]:
        """Whoever would finish last stands first."""
        finish_s = (self.running_s + self.stock.left * self.usual_s) / self.slots
        return -finish_s, self.stock.node


@dataclass(frozen=True, slots=True)
class Found:
    """A task worth moving, and where in its crowd it stands."""

    line: Line
    crowd: Crowd
    at: int
    move: Move


def steal_swiftly(
    stocks: Sequence[Stock],
    pairs: Pairs,
    nodes: Nodes,
    mint: Callable[[], str],
    memory: Memory,
) -> list[Steal]:
    """Whoever would start soonest takes next, from whoever would finish last, what gains most.

    So an empty healthy node always comes first. A node gets as many as it has free slots, and one
    more to have at hand, which may come from no more than half of what waits at the busy node.
    """
    lines = [line_of(stock, nodes[stock.node], pairs.limits, memory) for stock in stocks]
    lines.sort(key=Line.rank)
    steals: list[Steal] = []
    hungry = [(_start_s(one), one.node.name, one) for one in pairs.receivers]
    heapq.heapify(hungry)
    while hungry:
        receiver = hungry[0][2]
        found = _best(lines, receiver, pairs)
        if found is None:
            heapq.heappop(hungry)
            continue
        steals.append(_steal(found, receiver, mint))
        heapq.heapreplace(hungry, (_start_s(receiver), receiver.node.name, receiver))
        lines.sort(key=Line.rank)
    return steals


def reasons_swiftly(
    pairs: Pairs, nodes: Nodes, memory: Memory
) -> Callable[[Stock, Crowd | None], Objection | None]:
    """What keeps the rest of a crowd, by the counts as they are at the end of the plan."""
    limits = pairs.limits
    lines: dict[str, Line] = {}
    roomiest = {
        kind: min(some, key=lambda one: one.taken - one.node.report.free_slots)
        for kind, some in pairs.by_kind.items()
    }

    def reason(stock: Stock, crowd: Crowd | None) -> Objection | None:
        if crowd is None or crowd.head is None:
            return None
        doers = pairs.doers(crowd)
        if isinstance(doers, Objection):
            return doers
        if stock.node not in lines:
            lines[stock.node] = line_of(stock, nodes[stock.node], limits, memory)
        line = lines[stock.node]
        able = doers if crowd.alone else [roomiest[one.kind] for one in doers]
        said = [
            first_of(SWIFT_COUNTS, _move(line, crowd, crowd.head, one, limits), limits)
            for one in able
        ]
        return max((one for one in said if one), key=_how_far, default=None)

    return reason


def line_of(stock: Stock, node: NodeSeen, limits: StealLimits, memory: Memory) -> Line:
    """The busy node's queue in seconds; what cannot move stands evenly among what can."""
    page = stock.queue.tasks
    usual_s = _usual_s(page, limits, memory)
    spread = stock.queue.total / len(page) if page else 1.0
    running_s = running_left_s(node, limits, memory)
    return Line(stock, max(node.report.slots, 1), running_s, usual_s, max(spread, 1.0))


def running_left_s(node: NodeSeen, limits: StealLimits, memory: Memory) -> float:
    """How long what runs there goes on: as remembered, else half of what a task usually takes."""
    report = node.report
    if report.dispatcher != "running":
        return STOPPED_S * max(report.slots, 1)
    usual_s = memory.typical_s.get("", limits.default_task_s)
    return memory.running_left_s.get(node.name, report.running_count * usual_s / 2)


def _best(lines: Sequence[Line], receiver: Receiver, pairs: Pairs) -> Found | None:
    """From the node that would finish last, and has anything for this receiver, the best task."""
    extra = receiver.taken - receiver.node.report.free_slots
    if extra > 0:
        return None
    for line in lines:
        if extra == 0 and line.stock.spare <= 0:
            continue
        found = [
            one
            for crowd in line.stock.movable
            if pairs.fits(crowd, receiver)
            and (one := _best_of(line, crowd, receiver, pairs.limits))
        ]
        if found:
            return min(found, key=_order)
    return None


def _best_of(line: Line, crowd: Crowd, receiver: Receiver, limits: StealLimits) -> Found | None:
    """The task of the crowd that gains most; None: none would start enough sooner.

    Of tasks that say nothing of how long they take the first that is worth it gains as much as
    any behind it.
    """
    last = _move(line, crowd, crowd.tasks[-1], receiver, limits)
    if first_of((has_surplus, slot_or_half), last, limits):
        return None
    if last.gain.here_s - last.gain.there_s <= limits.gain_min_s:
        return None
    left = crowd.left
    worth_it = (
        Found(line, crowd, at, move)
        for at, task in enumerate(left)
        if gain_worth_it(move := _move(line, crowd, task, receiver, limits), limits) is None
    )
    if any(task.expected_s is not None for task in left):
        return min(worth_it, key=_order, default=None)
    return next(worth_it, None)


def _order(found: Found) -> tuple[float, int, int]:
    """What saves most waiting, its own and that of all who stand behind it; then the most urgent.

    With tasks that take equally long every choice saves the same, so the most urgent one goes.
    """
    line, move = found.line, found.move
    behind = max(move.busy_left - 1 - line.stock.ahead(move.task) * line.spread, 0.0)
    relief_s = behind * (move.task.expected_s or line.usual_s) / line.slots
    saved_s = move.gain.here_s - move.gain.there_s + relief_s
    return -round(saved_s, 1), move.task.priority, line.stock.place(move.task)


def _move(
    line: Line, crowd: Crowd, task: QueuedTask, receiver: Receiver, limits: StealLimits
) -> Move:
    gain = Gain(
        line.here_s(task),
        limits.transfer_s + _start_s(receiver),
        max(limits.gain_min_s, limits.transfer_s / 2, (task.expected_s or 0.0) / 4),
    )
    return move_of(task, crowd, line.stock, receiver, gain=gain)


def _start_s(receiver: Receiver) -> float:
    """When the next task planned for this node would start there; at once where a slot is free."""
    report = receiver.node.report
    if receiver.taken < report.free_slots:
        return 0.0
    return receiver.load_s / max(report.slots, 1)


def _steal(found: Found, receiver: Receiver, mint: Callable[[], str]) -> Steal:
    line, crowd, move = found.line, found.crowd, found.move
    if receiver.taken >= receiver.node.report.free_slots:
        line.stock.spare -= 1
    task = line.stock.take(crowd, found.at)
    receiver.taken += 1
    receiver.load_s += task.expected_s or line.usual_s
    sooner = max(move.gain.here_s - move.gain.there_s, 0.0)
    because = f"{whose_work(crowd, receiver.node)}; starts about {lasting(sooner)} sooner there"
    return Steal(mint(), task, line.stock.node, receiver.node.name, because)


def _usual_s(page: Sequence[QueuedTask], limits: StealLimits, memory: Memory) -> float:
    """How long one of these takes: what they say, else what is usual for their domains."""
    prior_s = memory.typical_s.get("", limits.default_task_s)
    said = [
        task.expected_s or memory.typical_s.get(task.domain or "", prior_s)
        for task in page
        if task.expected_s or task.domain
    ]
    return (sum(said) + prior_s * (len(page) - len(said))) / len(page) if page else prior_s


def _how_far(objection: Objection) -> int:
    """Of several receivers the one that came furthest gives the reason."""
    return [rule.__name__ for rule in SWIFT_COUNTS].index(objection.rule)
