"""Plans by policy `swift`: a free slot is filled at once, with what gains most by it; pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from .crowds import Crowd, Stock
from .explain import Objection, Steal, lasting
from .failing import second_on_trial
from .limits import StealLimits
from .lines import Line
from .pairing import Pairs, Receiver, move_of, whose_work
from .reckoning import NOBODY_ELSE
from .rules import Gain, Rule, first_of, gain_worth_it, has_surplus, slot_or_half
from .view import QueuedTask

ROOM_COUNTS: tuple[Rule, ...] = (has_surplus, slot_or_half)
SWIFT_COUNTS: tuple[Rule, ...] = (*ROOM_COUNTS, gain_worth_it)
LONG_SHARE = 1 / 4  # of what a task takes it has to start sooner, that a long one is worth moving
ALIKE_S = 0.2  # two moves that save as much to a tenth of a second are closer than this


@dataclass(frozen=True, slots=True)
class Found:
    """A task worth moving: how many stand before it, and how much sooner it starts there."""

    line: Line
    ahead: int
    sooner_s: float


def steal_swiftly(lines: Sequence[Line], pairs: Pairs, mint: Callable[[], str]) -> list[Steal]:
    """Whoever would start soonest takes next, from whoever would finish last, what gains most.

    Of those that would start as soon the one with least to do: so an empty healthy node always
    comes first, and nobody is given a second task before it has one. A node gets as many as it
    has free slots, and one more to have at hand, which may come from no more than half of what
    waits at the busy node.
    """
    steals: list[Steal] = []
    givers = Givers(lines)
    hungry = [(*_turn(one), one) for one in pairs.receivers]
    heapq.heapify(hungry)
    while hungry:
        receiver = hungry[0][3]
        found = givers.best_for(receiver, pairs)
        if found is None:
            heapq.heappop(hungry)
            continue
        steals.append(_steal(found, receiver, mint))
        heapq.heapreplace(hungry, (*_turn(receiver), receiver))
    return steals


class Givers:
    """The busy nodes of a plan. Who has nothing for one receiver is not asked for the next alike.

    For while a plan is made what waits only starts sooner where it is, and whoever takes next only
    later: a move that is not worth it now will not be, for any receiver of that kind.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self._ranked = sorted((line.rank(), line) for line in lines if line.stock.queue.tasks)
        self._names = frozenset(line.stock.node for line in lines)
        self._heaps: dict[object, list[tuple[tuple[float, str], Line]]] = {}

    def best_for(self, receiver: Receiver, pairs: Pairs) -> Found | None:
        """From the node that would finish last, and has anything for this receiver, the best task.

        None: nobody has, or it got one more than its free slots.
        """
        extra = _extra(receiver)
        if extra > 0:
            return None
        heap = self._heap(receiver, at_hand=extra == 0)
        while heap:
            rank, line = heap[0]
            if rank != (now := line.rank()):
                heapq.heapreplace(heap, (now, line))
                continue
            found = _best_in(line, receiver, pairs)
            if found is not None:
                return found
            heapq.heappop(heap)
        return None

    def _heap(
        self, receiver: Receiver, *, at_hand: bool
    ) -> list[tuple[tuple[float, str], Line]]:
        """Who refused something is like no other of its kind; who also gives, gives to others."""
        name = receiver.node.name
        kind = name if receiver.refused_s or name in self._names else receiver.kind
        heap = self._heaps.get((kind, at_hand))
        if heap is None:
            heap = [one for one in self._ranked if one[1].stock.node != name]
            self._heaps[kind, at_hand] = heap
        return heap


def _best_in(line: Line, receiver: Receiver, pairs: Pairs) -> Found | None:
    """The task of this line that saves most waiting; None: none would start enough sooner.

    That is its own waiting and that of all who stand behind it; then the most urgent goes. Of a
    crowd that says nothing of how long it takes, the first that is worth it saves as much as any
    behind it.
    """
    there_s, least_s = _there_s(receiver, pairs.limits), _least_s(pairs.limits)
    crowds = _crowds_for(line, receiver, pairs)
    most_s, best, found = -math.inf, (0.0, 0), None
    for ahead, task in enumerate(line.waiting) if crowds else ():
        crowd = line.crowd_of[task.uid]
        if crowd not in crowds:
            continue
        sooner_s = line.here_s(ahead) - there_s
        if sooner_s <= least_s or sooner_s <= (task.expected_s or 0.0) * LONG_SHARE:
            continue
        saves_s = sooner_s + line.relief_s(ahead, task)
        if saves_s > most_s - ALIKE_S:
            order = -round(saves_s, 1), task.priority
            if found is None or order < best:
                most_s, best, found = saves_s, order, Found(line, ahead, sooner_s)
        if not crowds[crowd]:
            del crowds[crowd]
    return found


def _crowds_for(line: Line, receiver: Receiver, pairs: Pairs) -> dict[Crowd, bool]:
    """What this receiver may be given, and whether any of it says how long it takes."""
    if not line.waiting or _no_room(line, receiver, pairs.limits):
        return {}
    return {
        crowd: any(task.expected_s is not None for task in crowd.left)
        for crowd in line.stock.movable
        if pairs.fits(crowd, receiver)
    }


def _steal(found: Found, receiver: Receiver, mint: Callable[[], str]) -> Steal:
    line = found.line
    stock = line.stock
    if _extra(receiver) >= 0:
        stock.spare -= 1
    task, crowd = line.take(found.ahead)
    receiver.taken += 1
    receiver.planned += 1
    receiver.load_s += task.expected_s or line.usual_s
    sooner = f"starts about {lasting(max(found.sooner_s, 0.0))} sooner there"
    gain = f"no agent on {stock.node} can run it" if task.uid in line.unfit else sooner
    because = f"{whose_work(crowd, receiver.node)}; {gain}"
    return Steal(mint(), task, stock.node, receiver.node.name, because)


def reasons_swiftly(
    lines: Sequence[Line], pairs: Pairs
) -> Callable[[Stock, Crowd | None], Objection | None]:
    """What keeps the rest of a crowd, by the counts as they are at the end of the plan."""
    line_of = {line.stock.node: line for line in lines}
    by_room = {kind: heapq.nsmallest(2, some, key=_extra) for kind, some in pairs.by_kind.items()}
    full = cache(partial(_no_room, limits=pairs.limits))

    def reason(stock: Stock, crowd: Crowd | None) -> Objection | None:
        if crowd is None or crowd.head is None:
            return None
        doers = pairs.doers(crowd)
        if isinstance(doers, Objection):
            return doers
        line, head = line_of[stock.node], crowd.head
        able = doers if crowd.alone else [*_roomiest(doers, by_room, stock.node)]
        if not able:
            return NOBODY_ELSE
        most = 0 if stock.spare > 0 else -1
        roomy = [one for one in able if _extra(one) <= most]  # who comes furthest has the reason
        said = [
            full(line, one) or _no_gain(line, crowd, head, one, pairs.limits)
            for one in roomy or able[:1]
        ]
        return max((one for one in said if one), key=_how_far, default=None)

    return reason


def _roomiest(
    doers: Sequence[Receiver], by_room: dict[int, list[Receiver]], giver: str
) -> Iterator[Receiver]:
    """Of each kind the one with most room, but for the giver itself, which may be short of work."""
    for kind in doers:
        for one in by_room[kind.kind]:
            if one.node.name != giver:
                yield one
                break


def _no_room(line: Line, receiver: Receiver, limits: StealLimits) -> Objection | None:
    """Which count forbids any move between these two; None: neither does."""
    if receiver.tried:
        return second_on_trial(receiver.node.name)
    crowd = line.stock.crowds[0]
    return first_of(ROOM_COUNTS, move_of(crowd.tasks[-1], crowd, line.stock, receiver), limits)


def _no_gain(
    line: Line, crowd: Crowd, task: QueuedTask, receiver: Receiver, limits: StealLimits
) -> Objection | None:
    here_s, there_s = line.here_s(line.stock.ahead(task)), _there_s(receiver, limits)
    gain = Gain(here_s, there_s, _worth_s(task, limits))
    return first_of((gain_worth_it,), move_of(task, crowd, line.stock, receiver, gain=gain), limits)


def _extra(receiver: Receiver) -> int:
    """How many it gets beyond its free slots: 0 has one more to come, above that nothing has."""
    return 1 if receiver.tried else receiver.taken - receiver.node.report.free_slots


def _there_s(receiver: Receiver, limits: StealLimits) -> float:
    """When a task would start there if it moved now."""
    return limits.transfer_s + _start_s(receiver)


def _turn(receiver: Receiver) -> tuple[float, int, str]:
    """Who takes next: the least of these. A name decides only between those that are alike."""
    report = receiver.node.report
    has = report.running_count + report.pending_count + receiver.taken
    return _start_s(receiver), has, receiver.node.name


def _start_s(receiver: Receiver) -> float:
    """When the next task planned for this node would start there; at once where a slot is free."""
    report = receiver.node.report
    if _extra(receiver) < 0:
        return 0.0
    return receiver.load_s / max(report.slots, 1)


def _worth_s(task: QueuedTask, limits: StealLimits) -> float:
    """How much sooner it has to start there: more than the move costs, and more if it is long."""
    return max(_least_s(limits), (task.expected_s or 0.0) * LONG_SHARE)


def _least_s(limits: StealLimits) -> float:
    return max(limits.gain_min_s, limits.transfer_s / 2)


def _how_far(objection: Objection) -> int:
    """Of several receivers the one that came furthest gives the reason."""
    return _PLACES[objection.rule]


_PLACES = {"work_succeeds": -1} | {
    rule.__name__: place for place, rule in enumerate(SWIFT_COUNTS)
}
