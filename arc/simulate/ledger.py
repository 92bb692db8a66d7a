"""Keeps the books of one simulated run: how long slots were free beside work, and what moved."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from arc.decisions.explain import Steal

from .queues import Node, Task
from .scene import MS, Scene

FIRST, LAST = "P1-P3", "P7-P10"
BANDS = ((3, FIRST), (6, "P4-P6"), (10, LAST))


class Stretch(NamedTuple):
    """A node was stranded so long, as the looks of fleet-health found it, and as they are written
    into the hub's own history: back to the one before, as far as task and slot were there.
    """

    node: str
    since_ms: int
    until_ms: int


class Moved(NamedTuple):
    """A move as it began."""

    at_ms: int
    uid: str
    busy: str
    idle: str
    why: str


@dataclass(frozen=True)
class Ended:
    """What one run came to. Seconds, node-seconds and shares of one; None: nothing was measured."""

    policy: str
    tasks: int
    makespan_s: float
    waits_s: Mapping[str, tuple[float, ...]]  # by band of priority, and "all", sorted
    idle_beside_work: float | None  # of the nodes' time: a free slot, and work for it elsewhere
    utilisation: float | None  # of the slots' time
    stranded_s: Mapping[tuple[str, str], float]  # by node and rule, look by look
    thefts: int
    routes: int
    regrets: int  # tasks whose last theft made them start no earlier
    cycles: int  # in which the planner was asked
    never_started: int  # tasks that no node which has them can run, and that nothing moves
    starts: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # uid: where, and when (ms)
    stretches: tuple[Stretch, ...] = ()  # only where they were asked for
    moves: tuple[Moved, ...] = ()
    stolen: int = 0  # tasks that were stolen at all
    thefts_counted: int = 0  # of the tasks that count, which are those of `tasks`


@dataclass(eq=False)
class Ledger:
    """What is written down while a run goes on; time is told in whole milliseconds."""

    scene: Scene
    nodes: Mapping[str, Node]
    members: Sequence[frozenset[str]]  # of each crowd, which grows
    free: set[str] = field(default_factory=set)
    beside_ms: int = 0  # of all nodes: idle beside work
    working_ms: int = 0
    window_ms: int = 0
    running: int = 0
    thefts: int = 0
    routes: int = 0
    cycles: int = 0
    by_rule_s: defaultdict[tuple[str, str], float] = field(
        default_factory=lambda: defaultdict(float)
    )
    _holders: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _ghosts: defaultdict[str, list[tuple[int, int, int, Task]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _stretches: list[Stretch] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)  # by node: the place of its last stretch
    _moves: list[Moved] = field(default_factory=list)
    _beside: int = 0  # nodes that are idle beside work now
    _stale: bool = True
    _at_ms: int = 0

    def passes_to(self, now_ms: int) -> None:
        """Time goes by with everything as it is."""
        until = self.scene.measured_to_ms
        end = min(now_ms, until) if until else now_ms
        spent = end - max(self._at_ms, self.scene.measured_from_ms)
        if self._stale and now_ms > self._at_ms:
            self._beside, self._stale = len(self._who()), False
        self._at_ms = now_ms
        if spent > 0:
            self.window_ms += spent
            self.beside_ms += spent * self._beside
            self.working_ms += spent * self.running

    def measures(self, now_ms: int) -> bool:
        """Whether this moment lies in what is measured."""
        until = self.scene.measured_to_ms
        return self.scene.measured_from_ms <= now_ms and (not until or now_ms < until)

    def is_free(self, name: str, *, free: bool) -> None:
        """A node has a slot and nothing of its own for it, or no longer."""
        if free != (name in self.free):
            (self.free.add if free else self.free.discard)(name)
            self._stale = True

    def waits(self, task: Task) -> None:
        """A task waits in the queue of its node."""
        able = self.members[task.crowd]
        if len(able) > 1 or (able and task.node not in able):
            self._holders[task.crowd][task.node] += 1
            self._stale = True

    def leaves(self, task: Task) -> None:
        """It does not wait there any more."""
        holders = self._holders.get(task.crowd)
        if holders is not None and task.node in holders:
            holders[task.node] -= 1
            if not holders[task.node]:
                del holders[task.node]
            if not holders:
                del self._holders[task.crowd]
            self._stale = True

    @property
    def something_waits(self) -> bool:
        """Whether any task waits in a queue that another node might run."""
        return bool(self._holders)

    def strand(self, nodes: Iterable[tuple[str, int]], until_ms: int) -> None:
        """A look found these stranded since some moment each; a stretch that reaches up to there
        goes on.
        """
        for name, since_ms in nodes:
            if since_ms >= until_ms:
                continue
            place = self._last.get(name)
            if place is not None and self._stretches[place].until_ms == since_ms:
                self._stretches[place] = self._stretches[place]._replace(until_ms=until_ms)
                continue
            self._last[name] = len(self._stretches)
            self._stretches.append(Stretch(name, since_ms, until_ms))

    def moved(self, now_ms: int, steal: Steal) -> None:
        """A move begins, and is kept."""
        self._moves.append(Moved(now_ms, steal.task.uid, steal.busy, steal.idle, steal.why))

    def _who(self) -> set[str]:
        """Every node with a free slot and nothing of its own for it, while anything that it may
        run waits or travels elsewhere: one task may make many of them count.
        """
        found: set[str] = set()
        for crowd, holders in self._holders.items():
            able = self.free & self.members[crowd]
            if len(holders) == 1:
                able.difference_update(holders)
            found |= able
        return found

    # Regret.

    def stolen(self, task: Task) -> None:
        """The task leaves its node by a theft: from now on a ghost of it waits there."""
        self.thefts += 1
        task.moves += 1
        task.stayed_ms = -1
        ghost = (task.turn, task.seq, task.moves, task)
        heapq.heappush(self._ghosts[task.node], ghost)

    def starts(self, node: str, place: tuple[int, int] | None, now_ms: int) -> None:
        """The node starts whoever stands at this place of its order, or has nothing left to start.

        Ghosts before that place would have started now.
        """
        ghosts = self._ghosts.get(node)
        while ghosts and (place is None or ghosts[0][:2] < place):
            _, _, moves, task = heapq.heappop(ghosts)
            if task.moves == moves:  # else it was stolen again since
                task.stayed_ms = now_ms

    # The end.

    def closed(self, policy: str, tasks: Sequence[Task], last_ms: int) -> Ended:
        """What the run came to."""
        counted = [task for task in tasks if self.measures(task.job.at_ms)]
        waits: dict[str, list[float]] = {"all": []}
        for task in counted:
            if task.started_ms < 0:
                continue  # it never does: told by itself
            wait_s = (task.started_ms - task.job.at_ms) / MS
            waits["all"].append(wait_s)
            waits.setdefault(band_of(task.job.priority), []).append(wait_s)
        moved = [task for task in tasks if task.stolen_from is not None]
        first_ms = min((task.job.at_ms for task in tasks), default=0)
        nodes_ms, slots_ms = (self.window_ms * len(self.scene.places),
                              self.window_ms * self.scene.slots)  # fmt: skip
        return Ended(
            policy, len(counted), (last_ms - first_ms) / MS,
            {band: tuple(sorted(some)) for band, some in sorted(waits.items())},
            self.beside_ms / nodes_ms if nodes_ms else None,
            self.working_ms / slots_ms if slots_ms else None,
            dict(self.by_rule_s), self.thefts, self.routes,
            sum(0 <= task.stayed_ms <= task.started_ms for task in moved), self.cycles,
            sum(task.started_ms < 0 for task in tasks),
            {task.job.uid: (task.node, task.started_ms) for task in tasks},
            tuple(self._stretches), tuple(self._moves), len(moved),
            sum(task.moves for task in counted),
        )  # fmt: skip


def band_of(priority: int) -> str:
    """P1-P3, P4-P6 or P7-P10."""
    return next(name for most, name in BANDS if priority <= most)
