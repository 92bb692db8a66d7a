"""Plans where the waiting tasks of draining nodes go; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .domains import Domain
from .explain import Kept, KeptCount, NodeVerdict, Objection, Steal, StealPlan
from .failing import NodeFactsSeen, second_on_trial
from .limits import HealthLimits, StealLimits
from .receiving import Offer, Receiver, Work, named, nobody, offers, receivers, work_of
from .routing import counts_of
from .view import FleetView, NodeSeen, QueuedTask, Queues, QueueUnseen

PINNED = "it is pinned there; a person moves it"
DRAINING = frozenset({"draining", "drained"})


def drains(view: FleetView, limits: StealLimits) -> tuple[str, ...]:
    """The nodes whose waiting tasks are to leave, by name; `drained` ones may still have some."""
    return tuple(
        node.name for node in view.seen
        if node.report.state in DRAINING and node.age_s <= limits.stale_after_s
    )  # fmt: skip


def pinned_there(node: NodeSeen) -> int:
    """How many waiting tasks of this node a person pinned to it: no drain moves them."""
    return max(node.report.pending_count - node.report.movable_count, 0)


def plan_drains(
    view: FleetView,
    queues: Queues,
    *,
    domains: Sequence[Domain],
    limits: StealLimits,
    mint: Callable[[], str],
    facts: Mapping[str, NodeFactsSeen] | None = None,
    health: HealthLimits | None = None,
    inbox: str | None = "inbox",
) -> StealPlan:
    """Every waiting task of a draining node leaves: the machine is to be empty, soon and wholly.

    Priority, earlier steals, how busy anybody is and all caps do not count here; `never`, needs
    and pins do. The owner of the domain comes first, then who also does it, the least loaded of
    them; counted again after every planned move. What none of them may take goes to the hub's
    `inbox`: it executes nothing, so no rule is broken, and the router hands it on as soon as
    somebody may have it. With `inbox` None such a task stays, with the reason. Where nobody
    drains, no node is judged.
    """
    leaving = drains(view, limits)
    known = receivers(view, facts=facts or {}, health=health or HealthLimits(),
                      stale_after_s=limits.stale_after_s) if leaving else ()  # fmt: skip
    draft = _Draft(tuple(one for one in known if one.name != inbox), inbox, mint)
    counts: list[KeptCount] = []
    for name in leaving:
        queue = queues.get(name)
        if queue is None or isinstance(queue, QueueUnseen):
            continue
        before = len(draft.kept)
        for task in queue.tasks:
            _place(draft, task, name, work_of(task, domains))
        counts += counts_of(queue, draft.kept[before:])
    return StealPlan(
        limits.policy, tuple(draft.steals), tuple(draft.kept), tuple(counts),
        _verdicts(known, leaving, queues), None if leaving else "no draining",
    )  # fmt: skip


@dataclass
class _Draft:
    """The plan as it grows: what it gives a node counts there at once."""

    known: tuple[Receiver, ...]
    inbox: str | None
    mint: Callable[[], str]
    steals: list[Steal] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    given: Counter[str] = field(default_factory=Counter)
    offers: dict[Work, tuple[Offer, ...]] = field(default_factory=dict)
    refusals: dict[Work, Objection] = field(default_factory=dict)


def _place(draft: _Draft, task: QueuedTask, giver: str, work: Work) -> None:
    objection = _stays(task)
    if objection is not None:
        draft.kept.append(Kept(task, giver, objection))
        return
    chosen = _taker(draft, work)
    if isinstance(chosen, Objection):
        draft.kept.append(Kept(task, giver, chosen))
        return
    taker, because = chosen
    draft.given[taker] += 1
    draft.steals.append(Steal(draft.mint(), task, giver, taker, because, why="drained"))


def _taker(draft: _Draft, work: Work) -> tuple[str, str] | Objection:
    """Who takes such work next, and why: a node, the inbox, or nobody."""
    if work not in draft.offers:
        draft.offers[work] = offers(work, draft.known)
    tried = [one for one in draft.offers[work]
             if one.receiver.on_trial and draft.given[one.receiver.name]]  # fmt: skip
    may = [one for one in draft.offers[work] if one not in tried] if tried else draft.offers[work]
    best = min(may, key=lambda offer: _nearness(draft, offer), default=None)
    if best is not None:
        return best.receiver.name, best.because
    if work not in draft.refusals:
        draft.refusals[work] = (
            second_on_trial(tried[0].receiver.name) if tried else nobody(work, draft.known)
        )
    refusal = draft.refusals[work]
    if draft.inbox is None:
        return refusal
    return draft.inbox, f"nobody may take it now: {refusal.because}"


def _stays(task: QueuedTask) -> Objection | None:
    """What a drain never takes along: what no longer waits, and what a person pinned."""
    if task.state != "READY":
        return Objection("still_ready", f"it is {task.state}")
    return Objection("not_pinned", PINNED) if task.pinned else None


def _nearness(draft: _Draft, offer: Offer) -> tuple[int, int, str]:
    load = offer.receiver.load + draft.given[offer.receiver.name]
    return offer.tier, load, offer.receiver.name


def _verdicts(
    known: Sequence[Receiver], leaving: Sequence[str], queues: Queues
) -> tuple[NodeVerdict, ...]:
    """Draining nodes are busy, who may be given work is idle; a queue unseen is its own reason."""
    return tuple(
        NodeVerdict(one.name, *_part(one, leaving, queues),
                    one.node.report.pending_count if isinstance(one.node, NodeSeen) else None)
        for one in known
    )  # fmt: skip


def _part(one: Receiver, leaving: Sequence[str], queues: Queues) -> tuple[str, Objection | None]:
    if one.name not in leaving:
        return ("idle", None) if one.out is None else ("out", one.out)
    return "busy", queue_was_read(one.name, queues)


def queue_was_read(name: str, queues: Queues) -> Objection | None:
    """A queue that was not read may hold anything; the drain is not over because none was seen."""
    queue = queues.get(name)
    if queue is None:
        return Objection("queue_was_read", f"{name}: nobody looked into its queue")
    if isinstance(queue, QueueUnseen):
        return Objection("queue_was_read", named(name, queue.because))
    return None


RULES = {"queue_was_read": queue_was_read}
