"""The bound that no fleet reaches: one queue for all, no hub, no transfer, nothing but the work."""

from __future__ import annotations

import heapq
from collections import defaultdict
from itertools import count

from agent_node.movability import Shape
from agent_node.priority import USUAL_PACE, turn_of
from arc.decisions.domains import lacks
from arc.decisions.stranded import may_run

from .ledger import Ended, Ledger
from .policies import Policy
from .queues import Crowds, Node, Task, task_of
from .scene import Scene

ENDS, COMES = 0, 1


def run_centrally(scene: Scene, policy: Policy) -> Ended:
    """Whatever waits first of what a free node may run starts there at once, wherever it came in.

    First is who has the best effective priority, as in a node's own queue. Of several free nodes
    the task's own takes it, else one that fewest kinds of waiting work could use, by name.
    """
    return _Bound(scene, policy).to_the_end()


def able_of(scene: Scene) -> dict[int, frozenset[str]]:
    """Which nodes may run each job, by its number; a pinned one runs where it is, and only there.

    Empty: no node of the fleet may.
    """
    bound = _Bound(scene, Policy("central", central=True))
    shapes: dict[tuple[object, ...], Shape] = {}
    return {job.number: bound.able(task_of(job, scene, job.at_ms, shapes)) for job in scene.jobs}


class _Bound:
    def __init__(self, scene: Scene, policy: Policy) -> None:
        self.scene, self.policy = scene, policy
        places = sorted(scene.places, key=lambda place: place.name)
        self.nodes = {place.name: Node(place, scene) for place in places}
        self.crowds = Crowds(self.nodes, lambda task, node: may_run(task, node, scene.domains))
        self.ledger = Ledger(scene, self.nodes, self.crowds.members)
        self.waiting: defaultdict[int, list[tuple[int, int, Task]]] = defaultdict(list)
        self.tasks: list[Task] = []
        self._events: list[tuple[int, int, int, Task]] = []
        self._order = count()
        self._known: dict[tuple[Shape, str], int] = {}

    def to_the_end(self) -> Ended:
        """Run until the last task has ended."""
        shapes: dict[tuple[object, ...], Shape] = {}
        for job in self.scene.jobs:
            task = task_of(job, self.scene, job.at_ms, shapes)
            task.crowd = self._crowd(task)
            self.tasks.append(task)
            heapq.heappush(self._events, (job.at_ms, COMES, next(self._order), task))
        last_ms = 0
        while self._events:
            now, what, _, task = heapq.heappop(self._events)
            self.ledger.passes_to(now)
            if what == ENDS:
                last_ms = now
                self._ends(task, now)
            else:
                self._comes(task, now)
        return self.ledger.closed(self.policy.name, self.tasks, last_ms)

    def able(self, task: Task) -> frozenset[str]:
        """Which nodes may run this task."""
        return self.crowds.members[self._crowd(task)]

    def _crowd(self, task: Task) -> int:
        """Besides those of the rules: whatever its own node has the powers for may run there."""
        key = (task.shape, task.job.home)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._number(task)
        return known

    def _number(self, task: Task) -> int:
        members, home = self.crowds.members, self.nodes.get(task.job.home)
        able = frozenset() if task.shape.pinned else members[self.crowds.of(task)]
        if home is not None and lacks(task.shape.needs, (frozenset(home.place.skills),)) is None:
            able |= {home.name}
        if able not in members:
            members.append(able)
        return members.index(able)

    def _comes(self, task: Task, now: int) -> None:
        able = self.crowds.members[task.crowd]
        free = [name for name in able if self.nodes[name].free > 0]
        if free:
            best = min(free, key=lambda name: (name != task.job.home, -self.nodes[name].free, name))
            self._starts(task, self.nodes[best], now)
            return
        task.turn = turn_of(task.stands, USUAL_PACE, task.arrived_ms)
        heapq.heappush(self.waiting[task.crowd], (task.turn, task.job.number, task))

    def _starts(self, task: Task, node: Node, now: int) -> None:
        node.running += 1
        self.ledger.running += 1
        task.node, task.started_ms = node.name, now
        ends = now + task.job.takes_ms
        heapq.heappush(self._events, (ends, ENDS, next(self._order), task))

    def _ends(self, task: Task, now: int) -> None:
        node = self.nodes[task.node]
        node.running -= 1
        self.ledger.running -= 1
        heads = [
            (line[0][:2], crowd) for crowd, line in self.waiting.items()
            if line and node.name in self.crowds.members[crowd]
        ]  # fmt: skip
        if heads:
            _, crowd = min(heads)
            self._starts(heapq.heappop(self.waiting[crowd])[2], node, now)

