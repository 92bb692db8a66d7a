"""A simulated hub: when it looks, and what it moves; every decision is the product's own."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count

from arc.decisions.explain import Steal
from arc.decisions.limits import HealthLimits
from arc.decisions.memory import Memory
from arc.decisions.routing import plan_routes
from arc.decisions.stealing import look_and_plan
from arc.decisions.stranded import Stranded, stranded_asking, stranded_now
from arc.decisions.view import FleetView, Queues
from arc.decisions.waking import REBALANCE, ROUTER, woken_by

from .experience import Experience
from .policies import Policy
from .queues import Node, asked_of
from .scene import INBOX, MS, Scene

PAGE = 200


@dataclass(eq=False)
class SimulatedHub:
    """What the hub knows between its cycles: news, and which of its sensors are due.

    As the real one, it does one thing after the other: while moves are under way nothing is
    planned, and what comes in meanwhile is served by the next cycle, all of it together.
    """

    scene: Scene
    policy: Policy
    nodes: Mapping[str, Node]  # by name, sorted; without the inbox
    inbox: Node
    experience: Experience
    carry: Callable[[Sequence[Steal]], None]  # the engine's: these moves begin now
    frozen_until_ms: int = 0
    due: set[str] = field(default_factory=set)
    news: dict[str, set[str]] = field(default_factory=dict)
    unclaimed: Mapping[str, int] = field(default_factory=dict)
    cycles: int = 0
    _taken: deque[tuple[int, str]] = field(default_factory=deque)
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _health: HealthLimits = field(default_factory=HealthLimits)

    def mint(self) -> str:
        """The id of the next transfer."""
        return f"00S{next(self._numbers):023d}"

    def heard(self, node: str, event: str) -> None:
        """A node told this; under `swift` it may start a cycle."""
        if self.policy.steal.swift:
            for sensor in woken_by(event, at_the_hub=node == INBOX):
                self.wake(sensor, node)

    def wake(self, sensor: str, node: str) -> None:
        """A cycle of this sensor is to run for the sake of this node."""
        if self.policy.steals or sensor == ROUTER:
            self.news.setdefault(sensor, set()).add(node)

    def serve(self, now_ms: int, *, may_steal: bool) -> None:
        """Run what is due, one after the other, until some moves begin.

        `may_steal`: some slot is free and something waits elsewhere that may run there; without it
        no plan can hold a theft.
        """
        while now_ms >= self.frozen_until_ms and (self.due or self.news):
            for sensor in (ROUTER, REBALANCE):
                counted = sensor in self.due
                self.due.discard(sensor)
                woken = self.news.pop(sensor, None)
                if not counted and not woken:
                    continue
                moves: Sequence[Steal] = ()
                if sensor == ROUTER and self.inbox.waiting:
                    moves = self._route(now_ms, counted=counted)
                elif sensor == REBALANCE and may_steal and self.policy.steals:
                    moves = self._steal(now_ms)
                if moves:
                    self.frozen_until_ms = now_ms + round(self.policy.transfer_s * MS)
                    self.carry(moves)
                    return

    def view(self, now_ms: int, *, whole: bool = False) -> FleetView:
        """Every node as it is now; `whole`: the inbox too."""
        at = self.scene.origin + timedelta(milliseconds=now_ms)
        seen = [node.seen(now_ms) for node in self.nodes.values()]
        return FleetView(at, (*seen, self.inbox.seen(now_ms)) if whole else tuple(seen))

    def memory(self, now_ms: int, view: FleetView) -> Memory:
        """What the hub remembers: how long work usually takes and, with `on_idle`, who got some."""
        taken: Mapping[str, int] = {}
        if self.policy.on_idle:
            since = now_ms - round(self.policy.every_s * MS)
            while self._taken and self._taken[0][0] < since:
                self._taken.popleft()
            taken = Counter(name for _, name in self._taken)
        if not self.policy.steal.swift:  # arc0 asks for nobody's length
            return Memory(taken=taken)
        prior_s = self.policy.steal.default_task_s
        known = self.experience.memory(now_ms, view.seen, taken, prior_s)
        ran = ((name, node.run_for_s(now_ms)) for name, node in self.nodes.items())
        return replace(known, runs_for_s={name: seconds for name, seconds in ran if seconds})

    def _steal(self, now_ms: int) -> tuple[Steal, ...]:
        self.cycles += 1
        view = self.view(now_ms)
        steps = look_and_plan(
            view, domains=self.scene.domains, limits=self.policy.steal, mint=self.mint,
            memory=self.memory(now_ms, view),
        )  # fmt: skip
        queues: Queues | None = None
        while True:
            try:
                names, request = next(steps) if queues is None else steps.send(queues)
            except StopIteration as over:
                plan, _ = over.value
                break
            asked = asked_of(request)
            queues = {name: self.nodes[name].candidates(asked) for name in names}
        steals: tuple[Steal, ...] = plan.steals
        self._taken.extend((now_ms, steal.idle) for steal in steals)
        return steals

    def _route(self, now_ms: int, *, counted: bool) -> tuple[Steal, ...]:
        self.cycles += 1
        view, limit = self.view(now_ms), PAGE
        while True:
            queue = self.inbox.all_candidates(limit)
            plan = plan_routes(
                view, queue, domains=self.scene.domains, limits=self.policy.route, mint=self.mint,
                unclaimed=self.unclaimed, health=self._health,
            )  # fmt: skip
            if queue.next is None or len(plan.routes) >= self.policy.route.batch:
                break
            limit += PAGE
        if counted:
            self.unclaimed = plan.unclaimed
        return plan.routes

    def stranded(self, now_ms: int) -> tuple[Stranded, ...]:
        """Who is stranded now, and by what, as fleet-health counts it."""
        view, limits = self.view(now_ms, whole=True), self.policy.steal
        memory = self.memory(now_ms, view)
        names, request = stranded_asking(view, limits, memory)
        if not names:
            return ()
        asked = asked_of(request)
        every = {**self.nodes, INBOX: self.inbox}
        queues = {name: every[name].candidates(asked) for name in names}
        return stranded_now(view, queues, domains=self.scene.domains, limits=limits, memory=memory)
