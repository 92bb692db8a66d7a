"""Plans which tasks move from busy nodes to idle ones, and why every other task stays; pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from operator import attrgetter

from agent_node.strict import JsonObject

from .crowds import Crowd, Likeness, Sorter, Stock
from .domains import Domain
from .explain import NodeVerdict, Objection, Steal, StealPlan
from .failing import second_on_trial
from .limits import StealLimits
from .lines import lines_of
from .memory import Memory
from .node_rules import free_slots_of, judge_nodes
from .pairing import Pairs, Receiver, receivers_of, whose_work
from .reckoning import Reason, Reckoning
from .rules import cycle_is_full, no_room, too_few_left
from .swift import reasons_swiftly, steal_swiftly
from .view import FleetView, NodeSeen, Queue, QueuedTask, Queues
from .wanting import asking, merged, still_wanting, wanting

__all__ = (
    "asking", "busy_to_ask", "look_and_plan", "merged", "plan_steals", "still_wanting", "wanting",
)  # fmt: skip


_PRIORITY = attrgetter("priority")


def busy_to_ask(
    view: FleetView, limits: StealLimits, memory: Memory | None = None
) -> tuple[NodeVerdict, ...]:
    """The nodes whose queues a plan needs to see; none where no other node waits for them."""
    return _to_ask(judge_nodes(view, limits, memory))


def _to_ask(verdicts: Sequence[NodeVerdict]) -> tuple[NodeVerdict, ...]:
    idle = {one.name for one in verdicts if one.takes}
    return tuple(one for one in verdicts if one.gives and idle - {one.name})


Looking = Generator[tuple[tuple[str, ...], JsonObject], Queues, tuple[StealPlan, Queues]]


def look_and_plan(
    view: FleetView,
    *,
    domains: Sequence[Domain],
    limits: StealLimits,
    mint: Callable[[], str],
    memory: Memory | None = None,
) -> Looking:
    """A whole cycle's plan, step by step: yields whom to ask what, and is sent the queues.

    Queues are asked only where there are an idle and a busy node; at most twice, the second time
    where a page was full of tasks that the hungry node may not do. Returns the plan and the queues.
    """
    verdicts = judge_nodes(view, limits, memory)  # once: of many nodes they cost most of a plan

    def planned(queues: Queues) -> StealPlan:
        return plan_steals(view, queues, domains=domains, limits=limits, mint=mint, memory=memory,
                           verdicts=verdicts)  # fmt: skip

    names = tuple(one.name for one in _to_ask(verdicts))
    request = asking(view, limits, domains, memory, verdicts=verdicts) if names else {}
    queues = (yield names, request) if names else {}
    plan = planned(queues)
    hidden, again = still_wanting(plan, view, queues, limits, memory, verdicts=verdicts)
    if not hidden:
        return plan, queues
    more = _both(queues, (yield hidden, again))
    return planned(more), more


def _both(first: Queues, again: Queues) -> Queues:
    """A second look that failed takes nothing away from the first."""
    found = dict(first)
    for name, queue in again.items():
        before = found.get(name)
        if isinstance(before, Queue) and isinstance(queue, Queue):
            found[name] = merged(before, queue)
    return found


def plan_steals(
    view: FleetView,
    queues: Queues,
    *,
    domains: Sequence[Domain],
    limits: StealLimits,
    mint: Callable[[], str],
    memory: Memory | None = None,
    verdicts: tuple[NodeVerdict, ...] | None = None,
) -> StealPlan:
    """The moves that the policy of `limits` makes, and the first reason why every other task stays.

    `queues` has an entry for each of `busy_to_ask`; a missing one counts as not looked into. The
    counts of a node add up to its READY tasks, so that nothing is kept in silence. Same view, same
    queues, same limits: the same plan, but for the transfer ids, which `mint` makes. `verdicts` are
    those of `judge_nodes`, where somebody has them already.
    """
    known = memory or Memory()
    if verdicts is None:
        verdicts = judge_nodes(view, limits, known)
    idle = [one.name for one in verdicts if one.takes]
    busy = [one.name for one in _to_ask(verdicts)]
    if not idle or not busy:
        return Reckoning(view, verdicts, limits, known).skipped("no busy" if idle else "no idle")
    nodes = {node.name: node for node in view.seen}
    if limits.swift:  # its bound is the free slots, not a number for each interval
        known = replace(known, taken={})
    receivers = receivers_of([nodes[name] for name in idle], known)
    sorter = Sorter(domains, limits, frozenset(uid for uid, _ in known.refused_s))
    stocks = [
        stock_of(nodes[name], queue, sorter)
        for name in busy
        if isinstance(queue := queues.get(name), Queue)
    ]
    pairs = Pairs(receivers, limits)
    if limits.swift:
        lines = lines_of(stocks, nodes, limits, known)
        steals = steal_swiftly(lines, pairs, mint)
        reason = reasons_swiftly(lines, pairs)
    else:
        steals = steal_as_arc0(stocks, pairs, mint, known)
        reason = reasons_as_arc0(pairs, len(steals) + sum(known.taken.values()))
    reckoning = Reckoning(view, verdicts, limits, known)
    return reckoning.plan(queues, stocks, steals, reason)


def stock_of(node: NodeSeen, queue: Queue, sorter: Sorter) -> Stock:
    """A queue as the plan uses it up. What it says of itself is newer than the node's report."""
    slots = free_slots_of(node)
    urgent_last: Sequence[QueuedTask] = queue.tasks
    if not sorter.limits.swift:  # the sort is stable: within a P the node's own order stands
        urgent_last = sorted(queue.tasks, key=_PRIORITY, reverse=True)
    crowds = sorter.crowds_of(urgent_last)
    spare = max(queue.total - slots, 0) // 2
    return Stock(node.name, queue, crowds, queue.total, slots, spare)


def steal_as_arc0(
    stocks: Sequence[Stock], pairs: Pairs, mint: Callable[[], str], memory: Memory
) -> list[Steal]:
    """Each idle node in turn takes from the busiest node that has work for it, counted anew.

    The turn goes by name: whoever comes first takes up to `per_node` before the next one is
    looked at, as the seed has it, and the same view gives the same plan. Of a node's tasks the
    least urgent goes first.
    """
    limits = pairs.limits
    steals: list[Steal] = []
    before = sum(memory.taken.values())
    heaps = {kind: [(-stock.left, stock.node, stock) for stock in stocks] for kind in pairs.by_kind}
    for heap in heaps.values():
        heapq.heapify(heap)
    for receiver in pairs.receivers:
        heap = heaps[receiver.kind]
        if memory.refused_s:  # then nodes of one kind are not alike
            heap = [(-stock.left, stock.node, stock) for stock in stocks]
            heapq.heapify(heap)
        while _has_room(receiver, limits) and before + len(steals) < limits.per_cycle:
            found = _busiest_with_work(heap, receiver, pairs)
            if found is None:
                break
            stock, crowd = found
            steals.append(_steal(stock, crowd, receiver, mint))
    return steals


def _has_room(receiver: Receiver, limits: StealLimits) -> bool:
    return receiver.taken < limits.per_node and not receiver.tried


def _busiest_with_work(
    heap: list[tuple[int, str, Stock]], receiver: Receiver, pairs: Pairs
) -> tuple[Stock, Crowd] | None:
    """The busiest node that may still give and has something for this receiver; None: none has.

    Who has nothing for one receiver has nothing for the next of its kind either, for queues only
    shrink while a plan is made: it leaves the heap for good.
    """
    while heap:
        count, name, stock = heap[0]
        if -count != stock.left:
            heapq.heapreplace(heap, (-stock.left, name, stock))
            continue
        if stock.left <= pairs.limits.busy_over:
            return None
        crowd = _least_urgent(stock, receiver, pairs)
        if crowd is not None:
            return stock, crowd
        heapq.heappop(heap)
    return None


def _least_urgent(stock: Stock, receiver: Receiver, pairs: Pairs) -> Crowd | None:
    """The crowd with the least urgent task that this receiver may be given; None: it may none.

    By P, and within one P in the order that the node itself gave, which knows of deadlines.
    """
    best: Crowd | None = None
    for crowd in stock.movable:
        if pairs.fits(crowd, receiver) and (best is None or _goes_before(stock, crowd, best)):
            best = crowd
    return best


def _goes_before(stock: Stock, one: Crowd, other: Crowd) -> bool:
    mine, its = one.tasks[one.given], other.tasks[other.given]
    if mine.priority != its.priority:
        return mine.priority > its.priority
    return stock.place(mine) < stock.place(its)


def _steal(stock: Stock, crowd: Crowd, receiver: Receiver, mint: Callable[[], str]) -> Steal:
    before = stock.left
    task = stock.take(crowd)
    receiver.taken += 1
    receiver.planned += 1
    idle = receiver.node
    because = f"{whose_work(crowd, idle)}; {stock.node} has {before} waiting, {idle.name} is idle"
    return Steal(mint(), task, stock.node, idle.name, because)


def reasons_as_arc0(pairs: Pairs, planned: int) -> Reason:
    """What keeps the rest of a crowd, by the counts as they are at the end of the plan.

    Asked without a crowd: what keeps tasks of which nothing is known but that somebody may do
    them; None then means that nothing is known to keep them.
    """
    limits = pairs.limits
    roomy = {one.kind for one in pairs.receivers if _has_room(one, limits)}
    known: dict[Likeness, Objection | None] = {}

    def of_receivers(crowd: Crowd | None) -> Objection | None:
        doers = pairs.doers(crowd) if crowd else pairs.receivers
        if isinstance(doers, Objection):
            return doers
        if not any(one.kind in roomy for one in doers):
            if doers[0].tried:
                return second_on_trial(doers[0].node.name)
            full = no_room(doers[0].node.name, doers[0].taken, limits)
            return Objection("receiver_has_room", full) if full else None
        full = cycle_is_full(planned, limits)
        return Objection("cycle_has_room", full) if full else None

    def reason(stock: Stock, crowd: Crowd | None) -> Objection | None:
        said = too_few_left(stock.node, stock.left, limits)
        if said is not None:
            return Objection("busy_node_is_busy", said)
        if crowd is None or crowd.alone:
            return of_receivers(crowd)
        if crowd.like not in known:
            known[crowd.like] = of_receivers(crowd)
        return known[crowd.like]

    return reason
