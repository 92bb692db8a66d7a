"""Looks into the queues that a plan needs, and plans: what a cycle would move now, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue

from .custody import settled_elsewhere
from .decisions.draining import drains, plan_drains
from .decisions.explain import KeptCount, NodeVerdict, Objection, RoutePlan, Steal, StealPlan
from .decisions.retrying import (
    memory_after,
    plan_retries,
    queues_after,
    retries,
    tried_after,
    view_after,
)
from .decisions.routing import plan_routes, still_hungry
from .decisions.stealing import look_and_plan
from .decisions.view import NodeSeen, NodeUnseen, Queue, QueuedTask, Queues, QueueUnseen
from .decisions.wanting import merged
from .errors import NodeUnreachable
from .looking import INBOX, Look
from .queues import look_into

if TYPE_CHECKING:
    from .hub import Hub

PAGE = 200  # tasks of one queue that a plan of routes or drains looks at at a time
PAGES_MAX = 25  # of the hub's own queue in one cycle


async def steals_now(seen: Look, *, after: Sequence[Steal] = ()) -> tuple[StealPlan, Queues]:
    """What a rebalance would steal now, and the queues it saw. Nothing is changed by it.

    `after` are moves of the same cycle that were planned before: they count as made. Queues are
    asked only where there are an idle and a busy node; at most twice, the second time
    where a page was full of tasks that the hungry node may not do.
    """
    limits, domains = seen.hub.settings.steal, seen.hub.settings.domains
    if after:
        seen = replace(seen, view=view_after(seen.view, after, limits),
                       memory=memory_after(seen.memory, after))  # fmt: skip
    steps = look_and_plan(
        seen.view, domains=domains, limits=limits, mint=seen.hub.mint, memory=seen.memory
    )
    queues: Queues | None = None
    while True:
        try:
            names, asked = next(steps) if queues is None else steps.send(queues)
        except StopIteration as over:
            plan, looked = over.value
            return plan, looked
        looked = await look_into(seen.links, names, asked, hasty=seen.unasked)
        queues = queues_after(looked, after)


async def drains_now(seen: Look) -> StealPlan:
    """Where the waiting tasks of draining nodes would go now; nothing is asked if none drains."""
    settings = seen.hub.settings
    names = [name for name in drains(seen.view, settings.steal) if name in seen.links]
    asked = _all_of("drained", [INBOX])
    queues = await look_into(seen.links, names, asked, hasty=seen.unasked) if names else {}
    return plan_drains(
        seen.view, queues, domains=settings.domains, limits=settings.steal, mint=seen.hub.mint,
        facts=seen.facts, health=settings.health,
    )  # fmt: skip


async def drain_of(seen: Look, name: str) -> StealPlan | QueueUnseen:
    """Where the waiting tasks of this node would go if it drained now, and which would stay."""
    settings, asked = seen.hub.settings, _all_of("drained", [INBOX])
    node = seen.view.node(name)
    if isinstance(node, NodeUnseen):
        return QueueUnseen(name, node.rule, node.because, node.code)
    queue = await _page_of(seen, name, asked)
    named = _uids(queue)
    for _ in range(PAGES_MAX - 1):
        if isinstance(queue, QueueUnseen) or queue.next is None:
            break
        page = await _page_of(seen, name, {**asked, "after": queue.next})
        queue = page if isinstance(page, QueueUnseen) else _further(queue, page, named)
    if isinstance(queue, QueueUnseen):
        return queue
    told = tuple(replace(one, report=one.report._replace(state="draining"))
                 if one.name == name else one for one in seen.view.seen)  # fmt: skip
    return plan_drains(
        replace(seen.view, seen=told), {name: queue}, domains=settings.domains,
        limits=settings.steal, mint=seen.hub.mint, facts=seen.facts, health=settings.health,
    )  # fmt: skip


def _further(queue: Queue, page: Queue, told: set[str]) -> Queue:
    """The queue with this page. One that has nothing but what these pages `told` is the last: where
    no daemon runs nobody remembers where a page ended, and each is the first one again. What lies
    beyond it stays counted as not looked at.
    """
    uids = _uids(page)
    anew = uids <= told
    told |= uids
    return replace(merged(queue, page), next=None if anew else page.next)


def _uids(page: Queue | QueueUnseen) -> set[str]:
    return set() if isinstance(page, QueueUnseen) else {task.uid for task in page.tasks}


async def _page_of(seen: Look, name: str, asked: JsonObject) -> Queue | QueueUnseen:
    return (await look_into(seen.links, [name], asked))[name]


def after_drains(seen: Look, drain: StealPlan) -> Look:
    """The same look for what is planned next: who is on trial has its one task by the drain."""
    return replace(seen, memory=tried_after(seen.memory, drain.steals))


async def retries_now(seen: Look) -> StealPlan:
    """Where tasks would go now that everybody on their node has failed; only who says that it has
    some is asked.
    """
    settings = seen.hub.settings
    names = [name for name in retries(seen.view, settings.steal) if name in seen.links]
    asked = _all_of("retried", [INBOX])
    queues = await look_into(seen.links, names, asked, hasty=seen.unasked) if names else {}
    return plan_retries(
        seen.view, queues, domains=settings.domains, limits=settings.steal, mint=seen.hub.mint,
        facts=seen.facts, health=settings.health, memory=seen.memory,
    )  # fmt: skip


async def routes_now(seen: Look) -> RoutePlan:
    """Where each task of the inbox would go now. An inbox that cannot be read is an error.

    Tasks that nobody takes may stand in front of others, so further pages are read until the
    batch is full or the queue is at its end. What stays grows older, and comes to the front: so at
    last those are asked for that some node with room may do, however far behind they stand.
    """
    if isinstance(seen.inbox, NodeSeen) and seen.inbox.report.state == "quarantined":
        return _set_apart(seen.inbox)
    asked = _all_of("routed", [node.name for node in seen.view.seen] or [INBOX])
    queue = await _inbox_page(seen, asked)
    queue, plan = await _pages(seen, asked, queue, _uids(queue))
    settings = seen.hub.settings
    if not _goes_on(seen, queue, plan):
        return plan
    hungry: list[JsonValue] = [*still_hungry(plan, seen.view, limits=settings.route,
                                             facts=seen.facts, health=settings.health)]  # fmt: skip
    if not hungry:
        return plan
    asked = {**asked, "for": hungry, "keep": list[JsonValue](settings.route.keep)}
    page = await _inbox_page(seen, asked)
    queue = replace(merged(queue, page), next=page.next)
    return (await _pages(seen, asked, queue, _uids(page)))[1]


async def _pages(
    seen: Look, asked: JsonObject, queue: Queue, told: set[str]
) -> tuple[Queue, RoutePlan]:
    """The plan with as much of the queue as it needs, or as a cycle may read. `told`: whom
    the first page of this question named.
    """
    plan = _routes(seen, queue)
    for _ in range(PAGES_MAX - 1):
        if not _goes_on(seen, queue, plan):
            break
        page = await _inbox_page(seen, {**asked, "after": queue.next})
        queue = _further(queue, page, told)
        plan = _routes(seen, queue)
    return queue, plan


def _goes_on(seen: Look, queue: Queue, plan: RoutePlan) -> bool:
    full = len(plan.routes) >= seen.hub.settings.route.batch
    return queue.next is not None and not full and bool(seen.view.seen)


def _set_apart(inbox: NodeSeen) -> RoutePlan:
    """A queue in quarantine gives nothing away until a person has decided on each of its tasks."""
    because = f"the hub's queue is in quarantine: {inbox.report.reason}"
    return RoutePlan(
        counts=(KeptCount(INBOX, "quarantined", inbox.report.pending_count, because),),
        nodes=(NodeVerdict(INBOX, "out", Objection("quarantined", because)),),
    )


async def _inbox_page(seen: Look, asked: JsonObject) -> Queue:
    queue = (await look_into(seen.links, [INBOX], asked))[INBOX]
    if isinstance(queue, QueueUnseen):
        said = queue.because.removeprefix(f"{INBOX}: ")
        raise NodeUnreachable(INBOX, f"the hub's own queue cannot be read: {said}")
    return replace(queue, tasks=with_ends(seen.hub, queue.tasks))


def _routes(seen: Look, queue: Queue) -> RoutePlan:
    settings = seen.hub.settings
    return plan_routes(
        seen.view, queue, domains=settings.domains, limits=settings.route, mint=seen.hub.mint,
        unclaimed=seen.hub.journal.nodes.unclaimed(), facts=seen.facts, health=settings.health,
    )  # fmt: skip


def with_ends(hub: Hub, tasks: Sequence[QueuedTask]) -> tuple[QueuedTask, ...]:
    """Tasks of the hub's own queue, each with its end on another node where one is believed."""
    ends = settled_elsewhere(hub, (task.uid for task in tasks))
    return tuple(
        replace(task, ended_elsewhere=f"{end.state} on {end.node} since {iso(end.at)}")
        if (end := ends.get(task.uid)) else task for task in tasks
    )  # fmt: skip


def _all_of(why: str, receivers: list[str]) -> JsonObject:
    """The most urgent tasks of a queue, without any filter: the plan has a reason for each."""
    wanted: list[JsonValue] = [{"node": name} for name in receivers]
    return {"why": why, "for": wanted, "order": "most_urgent", "limit": PAGE}
