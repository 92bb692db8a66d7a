"""Runs one scene by one policy on a virtual clock, event by event, to the end of its last task."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from agent_node.movability import Shape
from agent_node.news import Seen, news_between
from arc.decisions.explain import Steal
from arc.decisions.stranded import LastLook, Stranded, add_up, charge, may_run
from arc.decisions.waking import REBALANCE, ROUTER

from .experience import Experience
from .hub import SimulatedHub
from .ledger import Ended, Ledger
from .policies import Policy
from .queues import Crowds, Node, Task, task_of
from .scene import INBOX, MS, Job, Place, Scene

# The order of what happens in one millisecond.
GOES_AWAY, ENDS, LANDS, COMES, IS_DUE, IS_COUNTED = range(6)
STUCK_ROUNDS = 4  # of the slower sensor: what nobody wanted for two cycles goes to the fallback


@dataclass(frozen=True)
class Landing:
    """Moves that are under way, and what they move."""

    steals: tuple[tuple[Steal, Task], ...]


class Run:
    """One simulated run. `hurried` skips plans that cannot hold a move; a test shows that they do
    not. `watched`: every stranded stretch and every move is kept, and the run ends with the first
    look behind what is measured. `work_max`: it ends early once its cycles have looked at so many
    nodes altogether; 0: never.
    """

    def __init__(
        self, scene: Scene, policy: Policy, *, hurried: bool = True, watched: bool = False,
        work_max: int = 0,
    ) -> None:  # fmt: skip
        self.scene, self.policy, self.hurried = scene, policy, hurried
        self._cycles_max = work_max // max(len(scene.places), 1)
        self._look_ms = round(policy.look_s * MS)
        goes_to_ms = scene.measured_to_ms if watched else 0
        self._ends_ms = goes_to_ms + self._look_ms if goes_to_ms else 0  # 0: with the last task
        self.now_ms = self.last_ms = 0
        self.tasks: list[Task] = []
        self.left = len(scene.jobs)
        places = sorted(scene.places, key=lambda place: place.name)
        self.nodes = {place.name: Node(place, scene) for place in places}
        self.inbox = Node(Place(INBOX, 0), scene, takes_work=False)
        self.every = {**self.nodes, INBOX: self.inbox}
        self.crowds = Crowds(self.every, lambda task, node: may_run(task, node, scene.domains))
        self.ledger = Ledger(scene, self.nodes, self.crowds.members)
        self._watched = watched
        self._free = frozenset(self.nodes)  # at the last look; before the first nobody knows
        self.experience = Experience(scene)
        self.hub = SimulatedHub(scene, policy, self.nodes, self.inbox, self.experience, self._carry)
        self._by_uid: dict[str, Task] = {}
        self._events: list[tuple[int, int, int, Callable[..., None], object]] = []
        self._order = count()
        self._shapes: dict[tuple[object, ...], Shape] = {}
        self._touched: set[str] = set()
        self._idle: dict[str, int] = {}  # since when a node has been idle whose minimum runs
        self._stirs = self._stirred_ms = 0  # what will happen beside looks, and when last it did
        self._told: dict[str, Seen] = dict.fromkeys(self.every, (False, 0, 0, "active", False))
        self._begin()

    def _begin(self) -> None:
        """Jobs come one after the other; sensors run at once, and then at their intervals."""
        for name in self.nodes:
            self._settle_one(name)
        if self.scene.jobs:
            self._at(self.scene.jobs[0].at_ms, COMES, self._comes, 0)
        if not self.policy.central:
            self._at(0, IS_DUE, self._ticks, (ROUTER, self.policy.router_s))
            if self.policy.steals:
                self._at(0, IS_DUE, self._ticks, (REBALANCE, self.policy.every_s))
            self._at(self._look_ms, IS_COUNTED, self._counts, None)
        for node in self.nodes.values():
            for away in node.place.away:
                self._at(away.since_ms, GOES_AWAY, self._goes_away, (node, True))
                self._at(away.until_ms, GOES_AWAY, self._goes_away, (node, False))

    def _at(self, at_ms: int, rank: int, act: Callable[..., None], arg: object) -> None:
        self._stirs += rank < IS_DUE
        heapq.heappush(self._events, (at_ms, rank, next(self._order), act, arg))

    def to_the_end(self) -> Ended:
        """Run until the last task has ended, or as far as this run goes."""
        events, ledger = self._events, self.ledger
        while events and self.left and not self._stuck() and not self.worn_out:
            if 0 < self._ends_ms < events[0][0]:
                break
            now = self.now_ms = events[0][0]
            ledger.passes_to(now)
            while events and events[0][0] == now:
                _, rank, _, act, arg = heapq.heappop(events)
                if rank < IS_DUE:
                    self._stirs, self._stirred_ms = self._stirs - 1, now
                act(arg)
            self._settle()
            self.hub.serve(now, may_steal=not self.hurried or self._may_steal())
            self._settle()
        ledger.cycles = self.hub.cycles
        return ledger.closed(self.policy.name, self.tasks, self.last_ms)

    @property
    def worn_out(self) -> bool:
        """Whether the run ended, or ends, before everything did, because it was too much."""
        return 0 < self._cycles_max <= self.hub.cycles

    def _stuck(self) -> bool:
        """Whether what is left will never start: nothing happens but looks that find nothing. Where
        these looks are what is asked for, they go on.
        """
        if self._ends_ms:
            return False
        patience_s = STUCK_ROUNDS * max(self.policy.every_s, self.policy.router_s)
        return not self._stirs and self.now_ms - self._stirred_ms > patience_s * MS

    def _may_steal(self) -> bool:
        return bool(self.ledger.free) and self.ledger.something_waits

    # What happens.

    def _comes(self, number: int) -> None:
        job = self.scene.jobs[number]
        if number + 1 < len(self.scene.jobs):
            self._at(self.scene.jobs[number + 1].at_ms, COMES, self._comes, number + 1)
        task = task_of(job, self.scene, self.now_ms, self._shapes)
        task.crowd = self.crowds.of(task)
        self.tasks.append(task)
        self._by_uid[job.uid] = task
        self._is_ready(task, self.every[job.home])
        self._start(self.every[job.home])

    def _is_ready(self, task: Task, node: Node) -> None:
        node.add(task, self.now_ms)
        self.ledger.waits(task)
        self._touched.add(node.name)

    def _start(self, node: Node) -> None:
        """Whatever can start here starts now."""
        while (task := node.first()) is not None:
            node.take(task)
            self.ledger.leaves(task)
            self.ledger.starts(node.name, (task.turn, task.seq), self.now_ms)
            node.running += 1
            self.ledger.running += 1
            node.changed()
            task.started_ms = self.now_ms
            self.experience.starts(task)
            self._at(self.now_ms + task.job.takes_ms, ENDS, self._ends, task)
            self.hub.heard(node.name, "task_started")
        if node.free > 0:
            self.ledger.starts(node.name, None, self.now_ms)
        self._touched.add(node.name)

    def _ends(self, task: Task) -> None:
        node = self.nodes[task.node]
        node.running -= 1
        node.ended_ms = self.now_ms
        self.ledger.running -= 1
        node.changed()
        self.left -= 1
        self.last_ms = self.now_ms
        self.experience.ends(task)
        self._start(node)

    def _goes_away(self, change: tuple[Node, bool]) -> None:
        node, away = change
        node.away = away
        node.changed()
        self._start(node)

    def _ticks(self, sensor: tuple[str, float]) -> None:
        name, every_s = sensor
        self.hub.due.add(name)
        self._at(self.now_ms + round(every_s * MS), IS_DUE, self._ticks, sensor)

    def _counts(self, _: None) -> None:
        """fleet-health: it hears the nodes, and counts the stranded time since its last look."""
        self.experience.hear(self.now_ms)
        measured = self.ledger.measures(self.now_ms)
        if (measured or self._watched) and self._may_steal():
            found = self.hub.stranded(self.now_ms)
            since = [(one, self._since_ms(one)) for one in found]
            charged = ((one, (self.now_ms - since_ms) / MS) for one, since_ms in since)
            for key, seconds in add_up(charged).items() if measured else ():
                self.ledger.by_rule_s[key] += seconds
            if self._watched:
                self.ledger.strand(((one.node, since_ms) for one, since_ms in since), self.now_ms)
        self._free = frozenset(self.ledger.free)
        self._at(self.now_ms + self._look_ms, IS_COUNTED, self._counts, None)

    def _since_ms(self, one: Stranded) -> int:
        """Since when it counts as stranded: in a watched run as in the hub's own history. Else each
        look stands for its whole interval, which over many looks is right on the average.
        """
        if not self._watched:
            return self.now_ms - self._look_ms
        ready_s = (self.now_ms - self._by_uid[one.uid].ready_ms) / MS
        last = LastLook(self.policy.look_s, frozenset((one.node,)), self._free)
        return self.now_ms - round(MS * charge(replace(one, ready_s=ready_s), last))

    def _idle_for_the_minimum(self, waited: tuple[str, int]) -> None:
        name, since_ms = waited
        if self.nodes[name].idle_since_ms == since_ms:
            self.hub.wake(REBALANCE, name)

    # Moves.

    def _carry(self, steals: Sequence[Steal]) -> None:
        """The moves begin. In the books a task on its way still waits: nobody runs it."""
        moving: list[tuple[Steal, Task]] = []
        for steal in steals:
            task, giver = self._by_uid[steal.task.uid], self.every[steal.busy]
            if self._watched:
                self.ledger.moved(self.now_ms, steal)
            if steal.why == "stolen":
                self.ledger.stolen(task)
            else:
                self.ledger.routes += 1
            giver.take(task)
            giver.escrow += 1
            taker = self.nodes[steal.idle]
            taker.held += 1
            taker.changed()
            self._touched |= {giver.name, taker.name}
            moving.append((steal, task))
        self._at(self.hub.frozen_until_ms, LANDS, self._lands, Landing(tuple(moving)))

    def _lands(self, landing: Landing) -> None:
        """All of them are READY before any of them starts, as one transaction makes them."""
        for steal, task in landing.steals:
            giver, taker = self.every[steal.busy], self.nodes[steal.idle]
            giver.escrow -= 1
            taker.held -= 1
            giver.changed()
            self._touched.add(giver.name)
            self.ledger.leaves(task)
            task.epoch, task.seen = task.epoch + 1, None
            if steal.why == "stolen":
                task.stolen_from = giver.name
                task.shape = replace(task.shape, hops=task.shape.hops + 1, stolen=True)
            self._is_ready(task, taker)
        for name in sorted({steal.idle for steal, _ in landing.steals}):
            self._start(self.nodes[name])

    # What the instant left.

    def _settle(self) -> None:
        """What changed is told to the hub, and to the books."""
        touched, self._touched = self._touched, set()
        for name in sorted(touched):
            self._settle_one(name)

    def _settle_one(self, name: str) -> None:
        node = self.every[name]
        node.settle(self.now_ms)
        if node.takes_work:
            self.ledger.is_free(name, free=node.free > 0 and not node.line)
        idle = node.idle_since_ms
        if self.policy.waits_to_be_idle and idle is not None and idle != self._idle.get(name):
            self._idle[name] = idle
            due_ms = idle + round(self.policy.steal.idle_min_s * MS)
            self._at(due_ms, IS_DUE, self._idle_for_the_minimum, (name, idle))
        if self.policy.steal.swift:
            events, self._told[name] = news_between(self._told[name], node.news())
            for event in events:
                self.hub.heard(name, event)


def simulate(scene: Scene, policy: Policy) -> Ended:
    """What this scene comes to by this policy; the same scene, the same result."""
    if policy.central:
        from .central import run_centrally

        return run_centrally(scene, policy)
    return Run(scene, policy).to_the_end()


def jobs_in_order(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """As they come; of one moment, in the order of their numbers."""
    return tuple(sorted(jobs, key=lambda job: (job.at_ms, job.number)))
