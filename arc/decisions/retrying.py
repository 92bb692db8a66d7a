"""Plans where tasks go that everybody on their own node has failed; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .domains import Belonging, Domain
from .explain import Kept, NodeVerdict, Objection, Steal, StealPlan
from .failing import NodeFactsSeen, second_on_trial
from .limits import HealthLimits, StealLimits
from .memory import Memory
from .node_rules import believable_times, first_objection, fresh_report, gives_work_away
from .receiving import Offer, Receiver, Work, named, nobody, offers, receivers, work_of
from .rules import (
    Move,
    Rule,
    cycle_has_room,
    first_of,
    not_pinned,
    not_refused_lately,
    receiver_has_room,
    still_ready,
)
from .view import FleetView, NodeSeen, Queue, QueuedTask, Queues, QueueUnseen

RULE = "retry_elsewhere"
GIVER_RULES = (believable_times, fresh_report, gives_work_away)


def retries(view: FleetView, limits: StealLimits) -> tuple[str, ...]:
    """The nodes that say they have such tasks and may give them away; nobody else is asked."""
    return tuple(
        node.name for node in view.seen
        if node.report.retried_count
        and first_objection(GIVER_RULES, node, limits, Memory()) is None
    )  # fmt: skip


def plan_retries(
    view: FleetView,
    queues: Queues,
    *,
    domains: Sequence[Domain],
    limits: StealLimits,
    mint: Callable[[], str],
    facts: Mapping[str, NodeFactsSeen] | None = None,
    health: HealthLimits | None = None,
    memory: Memory | None = None,
) -> StealPlan:
    """Each such task goes once to a node that may be given it and has not failed it.

    Priority, thresholds and how busy its node is do not count, for there it would only fail again;
    the caps `per_node` and `per_cycle` do. A node with a free slot comes first, then whose work it
    is, then where least waits. A task that nobody takes stays, and its reason is kept.
    """
    known = memory or Memory()
    taken = {} if limits.swift else known.taken  # its bound is no number for each interval
    givers = retries(view, limits)
    fleet = receivers(view, facts=facts or {}, health=health or HealthLimits(),
                      stale_after_s=limits.stale_after_s) if givers else ()  # fmt: skip
    draft = _Draft(fleet, limits, known, mint, Counter(taken))
    for name in givers:
        queue = queues.get(name)
        for task in queue.tasks if isinstance(queue, Queue) else ():
            _place(draft, task, name, work_of(task, domains))
    return StealPlan(
        limits.policy, tuple(draft.steals), tuple(draft.kept),
        nodes=tuple(_blind(name, queues) for name in givers
                    if not isinstance(queues.get(name), Queue)),
        skipped=None if givers else "no retry",
    )  # fmt: skip


@dataclass
class _Draft:
    """The plan as it grows: what it gives a node counts there at once."""

    fleet: tuple[Receiver, ...]
    limits: StealLimits
    memory: Memory
    mint: Callable[[], str]
    given: Counter[str]  # to each node, with what it got in the sliding interval
    mine: Counter[str] = field(default_factory=Counter)  # to each node, by this plan
    steals: list[Steal] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


def _place(draft: _Draft, task: QueuedTask, giver: str, work: Work) -> None:
    chosen = _stays(task, draft.limits) or _taker(draft, task, giver, work)
    if isinstance(chosen, Objection):
        because = f"everybody on {giver} who can run it has failed it; {chosen.rule}"
        draft.kept.append(Kept(task, giver, Objection(RULE, f"{because}: {chosen.because}")))
        return
    name = chosen.receiver.name
    draft.given[name] += 1
    draft.mine[name] += 1
    because = f"everybody on {giver} who can run it has failed it; {chosen.because}"
    draft.steals.append(Steal(draft.mint(), task, giver, name, because, why="retried"))


def _stays(task: QueuedTask, limits: StealLimits) -> Objection | None:
    """What no retry takes along: what no longer waits, and what a person pinned."""
    said = ((rule.__name__, rule(task, limits)) for rule in (still_ready, not_pinned))
    return next((Objection(name, because) for name, because in said if because), None)


def _taker(draft: _Draft, task: QueuedTask, giver: str, work: Work) -> Offer | Objection:
    """Who takes it; where nobody does, what stopped the node that would have been next."""
    others = [one for one in draft.fleet if one.name != giver]
    ranked = sorted(offers(work, others), key=lambda offer: _nearness(draft, offer))
    first: Objection | None = None
    for offer in ranked:
        move = _move(draft, task, giver, work, offer)
        tried = _has_its_trial(draft, offer.receiver)
        objection = (
            second_on_trial(offer.receiver.name) if tried
            else first_of(RETRY_RULES, move, draft.limits)
        )  # fmt: skip
        if objection is None:
            return offer
        first = first or objection
    return first or nobody(work, others)


def _move(draft: _Draft, task: QueuedTask, giver: str, work: Work, offer: Offer) -> Move:
    receiver = offer.receiver
    assert isinstance(receiver.node, NodeSeen), "only who was seen is offered any work"
    return Move(
        task, Belonging(work.domains, work.how), giver, 0, receiver.node, receiver.powers,
        draft.given[receiver.name], draft.given.total(),
        draft.memory.refused_s.get((task.uid, receiver.name)),
    )  # fmt: skip


def _has_its_trial(draft: _Draft, receiver: Receiver) -> bool:
    brought = draft.mine[receiver.name] > 0 or receiver.name in draft.memory.no_work
    return receiver.on_trial and brought


def _nearness(draft: _Draft, offer: Offer) -> tuple[bool, int, int, str]:
    receiver, mine = offer.receiver, draft.mine[offer.receiver.name]
    waits = receiver.waiting + mine
    return receiver.slots_free <= waits, offer.tier, waits, receiver.name


def _blind(name: str, queues: Queues) -> NodeVerdict:
    """A queue that was not read may hold such tasks; an error is never an empty list."""
    queue = queues.get(name)
    because = queue.because if isinstance(queue, QueueUnseen) else "nobody looked into its queue"
    return NodeVerdict(name, "out", Objection("queue_was_read", named(name, because)))


def not_failed_there(move: Move, limits: StealLimits) -> str | None:
    """Where a task has failed before, another try would most likely be another failure."""
    name = move.idle.name
    return f"{name} has failed it already" if name in move.task.failed_on else None


RETRY_RULES: tuple[Rule, ...] = (
    not_failed_there, not_refused_lately, receiver_has_room, cycle_has_room,
)  # fmt: skip
RULES = {rule.__name__: rule for rule in (still_ready, not_pinned, *RETRY_RULES)} | {
    RULE: "A task that everybody on its node has failed goes once to a node that has not tried it.",
}


# --- What a rebalance plans with, once these have gone --------------------------------------------


def view_after(view: FleetView, moves: Sequence[Steal], limits: StealLimits) -> FleetView:
    """Less waits where they leave; `swift` fills free slots, and these are taken by them."""
    left, given = Counter(one.busy for one in moves), Counter(one.idle for one in moves)
    return replace(view, seen=tuple(
        replace(node, report=node.report._replace(
            pending_count=max(node.report.pending_count - left[node.name], 0),
            free_slots=max(node.report.free_slots - given[node.name] * limits.swift, 0),
        )) if left[node.name] or given[node.name] else node
        for node in view.seen
    ))  # fmt: skip


def memory_after(memory: Memory, moves: Sequence[Steal]) -> Memory:
    """What they bring a node counts against its cap; a node on trial has its one task by them."""
    taken = Counter(memory.taken) + Counter(one.idle for one in moves)
    return replace(tried_after(memory, moves), taken=taken)


def tried_after(memory: Memory, moves: Sequence[Steal]) -> Memory:
    """Nodes on trial that have their one task by these moves get no other in this cycle."""
    tried = {one.idle: second_on_trial(one.idle) for one in moves if one.idle in memory.trials}
    return replace(memory, no_work={**memory.no_work, **tried})


def queues_after(queues: Queues, moves: Sequence[Steal]) -> Queues:
    """Without the tasks that go: no task is in two plans of one cycle."""
    gone = {one.task.uid for one in moves}
    return {name: _without(queue, gone) for name, queue in queues.items()} if gone else queues


def _without(queue: Queue | QueueUnseen, gone: set[str]) -> Queue | QueueUnseen:
    if isinstance(queue, QueueUnseen):
        return queue
    left = tuple(task for task in queue.tasks if task.uid not in gone)
    less = len(queue.tasks) - len(left)
    return replace(queue, tasks=left, eligible=queue.eligible - less, total=queue.total - less)
