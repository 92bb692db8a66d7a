"""Plans which tasks of the hub's own queue go to which node; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent_node.strict import JsonObject

from .domains import Domain, powers_of
from .explain import Kept, KeptCount, NodeVerdict, Objection, RoutePlan, Steal
from .failing import NodeFactsSeen, second_on_trial
from .limits import HealthLimits, RouteLimits
from .receiving import (
    Offer,
    Receiver,
    Work,
    has_an_agent,
    nobody,
    offers,
    receivers,
    verdicts,
    work_of,
)
from .view import FleetView, NodeSeen, Queue, QueuedTask, QueueUnseen


def plan_routes(
    view: FleetView,
    queue: Queue | QueueUnseen,
    *,
    domains: Sequence[Domain],
    limits: RouteLimits,
    mint: Callable[[], str],
    unclaimed: Mapping[str, int],
    facts: Mapping[str, NodeFactsSeen] | None = None,
    health: HealthLimits | None = None,
) -> RoutePlan:
    """Each task goes to the least loaded node nearest to its work, in the order of the queue.

    `unclaimed` is what the last plan said: for how many cycles nobody wanted a task. The hub's own
    queue is looked into with the most urgent first. Its reasons add up to its READY tasks.
    """
    known = tuple(
        one for one in receivers(view, facts=facts or {}, health=health or HealthLimits(),
                                 stale_after_s=limits.stale_after_s)
        if one.name != queue.node
    )  # fmt: skip
    if isinstance(queue, QueueUnseen):
        blind = NodeVerdict(queue.node, "out", Objection(queue.rule, queue.because))
        return RoutePlan(nodes=(blind, *verdicts(known)), unclaimed=dict(unclaimed))
    draft = _Draft(known, limits, queue.node, mint)
    for task in queue.tasks:
        _place(draft, task, domains, unclaimed.get(task.uid, 0))
    return RoutePlan(
        tuple(draft.routes), tuple(draft.kept), counts_of(queue, draft.kept),
        verdicts(known), draft.unclaimed,
    )  # fmt: skip


def still_hungry(
    plan: RoutePlan,
    view: FleetView,
    *,
    limits: RouteLimits,
    facts: Mapping[str, NodeFactsSeen],
    health: HealthLimits,
) -> list[JsonObject]:
    """The nodes that may be given more than this plan gives them, as `for` of `candidates`.

    Work that stays may fill every page that is read, and what these nodes could do lies behind it.
    """
    known = receivers(view, facts=facts, health=health, stale_after_s=limits.stale_after_s)
    given = Counter(route.idle for route in plan.routes)
    draft = _Draft(known, limits, "", lambda: "", given=given)
    return [
        _entry(one.node)
        for one in known
        if isinstance(one.node, NodeSeen) and one.out is None and _is_full(draft, one) is None
    ]


def _entry(node: NodeSeen) -> JsonObject:
    """Its powers as one set: what is filtered is coarse, and the plan has the last word."""
    role = node.role
    return {
        "node": node.name,
        "domains": [*sorted({*role.owns, *role.also})],
        "never": [*sorted(role.never)],
        "skills": [*sorted(frozenset().union(*powers_of(node)))],
        "untagged_from": 1,
    }


def counts_of(queue: Queue, kept: Iterable[Kept]) -> tuple[KeptCount, ...]:
    """How many stay by which rule: the node's own counts, ours, and those behind the page."""
    counts = Counter(queue.kept)
    texts: dict[str, str] = {}
    for one in kept:
        counts[one.objection.rule] += 1
        texts.setdefault(one.objection.rule, one.objection.because)
    beyond = queue.eligible - len(queue.tasks)
    if beyond > 0:
        counts["not_looked_at"] += beyond
        texts.setdefault("not_looked_at", f"beyond the {len(queue.tasks)} tasks that were read")
    return tuple(
        KeptCount(queue.node, rule, number, texts.get(rule, ""))
        for rule, number in sorted(counts.items())
        if number
    )


@dataclass
class _Draft:
    """The plan as it grows: what it gives a node counts there at once."""

    known: tuple[Receiver, ...]
    limits: RouteLimits
    hub: str
    mint: Callable[[], str]
    routes: list[Steal] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    unclaimed: dict[str, int] = field(default_factory=dict)
    given: Counter[str] = field(default_factory=Counter)
    offers: dict[Work, tuple[Offer, ...]] = field(default_factory=dict)
    answers: dict[Work, Objection] = field(default_factory=dict)  # it can only get fuller


def _place(draft: _Draft, task: QueuedTask, domains: Sequence[Domain], cycles: int) -> None:
    """Give the task to a node, or keep it with the first reason; wanting nothing is counted."""
    limits = draft.limits
    due = limits.fallback if cycles >= limits.fallback_after else None
    work = work_of(task, domains, fallback=due)
    objection = stays(task, limits) or draft.answers.get(work)
    if objection is None:
        chosen = _choose(draft, work)
        if isinstance(chosen, Offer):
            _give(draft, task, chosen)
            return
        objection = draft.answers[work] = chosen
    draft.kept.append(Kept(task, draft.hub, objection))
    wanted = objection.rule in _WAITS
    if cycles or not wanted:
        draft.unclaimed[task.uid] = cycles if wanted else cycles + 1


# By these rules a task waits its turn, or stays by somebody's word; by every other nobody wants it.
_WAITS = frozenset("still_ready not_pinned not_kept_at_the_hub not_ended_elsewhere batch_has_room"
                   " late_binding".split())  # fmt: skip


def _give(draft: _Draft, task: QueuedTask, offer: Offer) -> None:
    name = offer.receiver.name
    draft.given[name] += 1
    route = Steal(draft.mint(), task, draft.hub, name, offer.because, why="routed")
    draft.routes.append(route)


def stays(task: QueuedTask, limits: RouteLimits) -> Objection | None:
    """The first rule of ROUTE_RULES that keeps a task at the hub, wherever it would go."""
    said = ((rule.__name__, rule(task, limits)) for rule in ROUTE_RULES)
    return next((Objection(name, because) for name, because in said if because), None)


def still_ready(task: QueuedTask, limits: RouteLimits) -> str | None:
    """Only what waits may move; what runs, or is on its way, is never touched."""
    return None if task.state == "READY" else f"it is {task.state}"


def not_pinned(task: QueuedTask, limits: RouteLimits) -> str | None:
    """A person said that it stays where it is."""
    return "it is pinned to the hub" if task.pinned else None


def not_kept_at_the_hub(task: QueuedTask, limits: RouteLimits) -> str | None:
    """Priorities that fleet.yaml keeps are the operator's own to hand out."""
    if task.priority not in limits.keep:
        return None
    return f"P{task.priority} stays at the hub by router/keep"


def not_ended_elsewhere(task: QueuedTask, limits: RouteLimits) -> str | None:
    """A copy of a task that has ended would run it again; only a person may want that."""
    if not task.ended_elsewhere:
        return None
    return f"it is {task.ended_elsewhere} already; whether it runs again is a person's word"


RouteRule = Callable[[QueuedTask, RouteLimits], "str | None"]
ROUTE_RULES: tuple[RouteRule, ...] = (still_ready, not_pinned, not_ended_elsewhere,
                                      not_kept_at_the_hub)  # fmt: skip


# --- Which of those that may ---------------------------------------------------------------------


def _choose(draft: _Draft, work: Work) -> Offer | Objection:
    """The best offer while the batch has room; that nobody wants it is the better reason."""
    best, turn = _best(draft, work), batch_has_room(draft)
    return Objection("batch_has_room", turn) if turn and isinstance(best, Offer) else best


def _best(draft: _Draft, work: Work) -> Offer | Objection:
    """The offer to take, or why there is none: what stopped the node nearest to the work."""
    if work not in draft.offers:
        draft.offers[work] = offers(work, draft.known)
    may = draft.offers[work]
    if not may:
        return nobody(work, draft.known)
    said = [(offer, _is_full(draft, offer.receiver)) for offer in may]
    room = [offer for offer, objection in said if objection is None]
    if room:
        return min(room, key=lambda offer: _nearness(draft, offer))
    nearest, objection = min(said, key=lambda one: _nearness(draft, one[0]))
    return objection or Objection("load_below_hard", f"{nearest.receiver.name} is full")


def _nearness(draft: _Draft, offer: Offer) -> tuple[bool, bool, int, int, str]:
    """Below the soft load before above it, the owner before others, then least loaded, by name.

    An empty node has the smallest load there is. Under `swift` a slot that is free now goes before
    everything else: waiting for the owner costs more than it brings.
    """
    load = _load(draft, offer.receiver)
    later = draft.limits.policy == "swift" and _room(draft, offer.receiver) <= 1
    return later, load >= draft.limits.soft, offer.tier, load, offer.receiver.name


def _is_full(draft: _Draft, receiver: Receiver) -> Objection | None:
    """A node at its hard load gets nothing, and under `swift` none more than it can soon start."""
    if receiver.on_trial and draft.given[receiver.name]:
        return second_on_trial(receiver.name)
    said = ((rule.__name__, rule(draft, receiver)) for rule in LOAD_RULES)
    return next((Objection(name, because) for name, because in said if because), None)


def load_below_hard(draft: _Draft, receiver: Receiver) -> str | None:
    """A queue that long is better served by waiting here, where the next free node can take it."""
    load, hard = _load(draft, receiver), draft.limits.hard
    return None if load < hard else f"{receiver.name} has {load} to do; we stop at {hard}"


def late_binding(draft: _Draft, receiver: Receiver) -> str | None:
    """What is bound late is bound well: a node gets what it can start, and one task to follow."""
    if draft.limits.policy != "swift" or _room(draft, receiver) > 0:
        return None
    free = receiver.slots_free
    return f"{receiver.name} has {free} free slots and enough waiting; the rest stays at the hub"


LoadRule = Callable[[_Draft, Receiver], "str | None"]
LOAD_RULES: tuple[LoadRule, ...] = (load_below_hard, late_binding)


def batch_has_room(draft: _Draft) -> str | None:
    """A mistake in fleet.yaml moves one batch at a time, and can be seen before the next."""
    batch = draft.limits.batch
    return None if len(draft.routes) < batch else f"{batch} tasks a cycle leave the hub"


_ALL: tuple[Callable[..., object], ...] = (
    *ROUTE_RULES, *LOAD_RULES, batch_has_room, has_an_agent,
)  # fmt: skip
RULES = {rule.__name__: rule for rule in _ALL}


def _load(draft: _Draft, receiver: Receiver) -> int:
    return receiver.load + draft.given[receiver.name]


def _room(draft: _Draft, receiver: Receiver) -> int:
    """How many more a node may get: its free slots and one to follow, less what waits there."""
    return receiver.slots_free + 1 - receiver.waiting - draft.given[receiver.name]
