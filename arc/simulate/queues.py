"""A simulated node: its slots and its queue, seen and asked as the hub sees and asks a real one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import merge
from itertools import islice
from types import MappingProxyType

from agent_node.clock import iso
from agent_node.movability import Shape, objection
from agent_node.priority import USUAL_PACE, arriving, base_of, standing, turn_of
from agent_node.queries import Candidates, Wanting
from agent_node.reports import AgentReport, StatusReport
from agent_node.strict import JsonObject
from agent_node.ulid import new_ulid
from arc.decisions.domains import guessed, lacks
from arc.decisions.view import NodeSeen, Queue, QueuedTask

from .scene import MS, Job, Place, Scene

INCARNATION = new_ulid(0, bytes(10))


@dataclass(eq=False, slots=True)
class Task:
    """One job while it waits, is on its way, or runs."""

    job: Job
    shape: Shape
    stands: int  # what its priority is worth before its age counts
    arrived_ms: int  # by the priority's own count, since 1970
    crowd: int  # which nodes may run it: a number of `Crowds`
    node: str = ""
    epoch: int = 1
    ready_ms: int = 0  # when it became READY where it is
    turn: int = 0
    seq: int = 0
    stolen_from: str | None = None
    moves: int = 0
    started_ms: int = -1
    stayed_ms: int = -1  # when it would have started had its last theft not been; -1: not known
    seen: QueuedTask | None = None  # as the planner last saw it; None: it changed since

    @property
    def rank(self) -> int:
        """By what `candidates` is ordered where the least urgent is asked for."""
        return base_of(self.job.priority, None)

    def as_seen(self) -> QueuedTask:
        """As the decisions look at it."""
        if self.seen is None:
            job, shape = self.job, self.shape
            self.seen = QueuedTask(
                job.uid, self.epoch, job.kind.subject, job.priority, shape.skills, shape.needs,
                shape.domain, self.stolen_from, shape.hops, shape.pinned, "human:simulated",
                None, job.expected_s,
            )  # fmt: skip
        return self.seen


Line = list[tuple[int, int, Task]]


@dataclass(eq=False)
class Node:
    """One node's queue. It starts what is first in its own order as soon as a slot is free."""

    place: Place
    scene: Scene
    running: int = 0
    held: int = 0  # on the way here
    escrow: int = 0  # on the way elsewhere
    away: bool = False
    takes_work: bool = True  # False: the hub's own queue, where nothing runs
    idle_since_ms: int | None = 0
    line: Line = field(default_factory=list)  # (turn, seq): in the order of their starts
    unfit: Line = field(default_factory=list)  # what no agent here can run
    pages: Line = field(default_factory=list)  # (rank, seq): by P alone, as stealing goes
    ended_ms: int | None = None  # when the last of its tasks ended; None: none has
    _since: dict[int, int] = field(default_factory=dict)  # seq: since when it waits, oldest first
    _seq: int = 0
    _report: StatusReport | None = None
    _table: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.place.name
        self._powers = (frozenset(self.place.skills),)
        self._origin_ms = round(self.scene.origin.timestamp() * 1000)
        self._table = {
            one.name: {"skills": list(one.skills), "prefix": list(one.prefix),
                       "words": list(one.words)} for one in self.scene.domains
        }  # fmt: skip

    @property
    def free(self) -> int:
        """Slots in which something could start now."""
        return self.place.slots - self.running if self.takes_work and not self.away else 0

    @property
    def waiting(self) -> int:
        """READY tasks."""
        return len(self.pages)

    # What happens here.

    def add(self, task: Task, now_ms: int) -> None:
        """A task becomes READY here, with the age that it brings along."""
        self._seq += 1
        task.node, task.seq, task.ready_ms = self.name, self._seq, now_ms
        order_ms = self._origin_ms + now_ms
        if task.arrived_ms == order_ms:
            task.turn = turn_of(task.stands, USUAL_PACE, order_ms)
        else:
            task.turn = arriving(task.stands, USUAL_PACE, arrived_ms=task.arrived_ms,
                                 now_ms=order_ms)  # fmt: skip
        insort(self._lane(task), (task.turn, task.seq, task))
        insort(self.pages, (task.rank, task.seq, task))
        self._since[task.seq] = now_ms
        self._report = None

    def take(self, task: Task) -> None:
        """The task is not READY here any more."""
        lane = self._lane(task)
        del lane[bisect_left(lane, (task.turn, task.seq))]
        del self.pages[bisect_left(self.pages, (task.rank, task.seq))]
        del self._since[task.seq]
        self._report = None

    def _lane(self, task: Task) -> Line:
        fits = self.takes_work and lacks(task.shape.needs, self._powers) is None
        return self.line if fits or not self.takes_work else self.unfit

    def first(self) -> Task | None:
        """What it would start next; None: nothing, or there is no slot for it."""
        return self.line[0][2] if self.line and self.free > 0 else None

    def changed(self) -> None:
        """The counts are not what they were."""
        self._report = None

    def settle(self, now_ms: int) -> None:
        """Once an instant is over: since when the node has had nothing to do."""
        busy = self.pages or self.running or self.held or self.escrow or not self.takes_work
        if busy or self.away:
            self.idle_since_ms = None
        elif self.idle_since_ms is None:
            self.idle_since_ms = now_ms

    def run_for_s(self, now_ms: int) -> float:
        """As `decisions.usual.run_for_s` reads it out of a node's report."""
        if not self._since or self.unfit or not self.running or self.free:
            return 0.0
        since_ms = next(iter(self._since.values()))
        return (now_ms - max(since_ms, self.ended_ms or since_ms)) / MS

    # What the hub sees.

    def seen(self, now_ms: int) -> NodeSeen:
        """The node with its report of this moment."""
        report = self._report
        if report is None:
            report = self._report = self._written(now_ms)
        elif report.idle:  # only how long it has been so is another
            report = self._report = report._replace(written_at=self._iso(now_ms))
        return NodeSeen(self.name, report, self.place.role)

    def _written(self, now_ms: int) -> StatusReport:
        self.settle(now_ms)
        place, waiting, since = self.place, len(self.pages), self.idle_since_ms
        counts = {"READY": waiting, "RUNNING": self.running, "HELD": self.held,
                  "ESCROW": self.escrow}  # fmt: skip
        full = self.running >= place.slots
        agent = AgentReport(self.name, "full" if full else "available", place.slots, self.running,
                            place.skills, paused=not self.takes_work)  # fmt: skip
        return StatusReport(
            self.name, INCARNATION, 1, "simulated", self._iso(now_ms),
            "running" if self.takes_work else "stopped", since is not None,
            None if since is None else self._iso(since), waiting, self.running, place.slots,
            self.free, "paused" if self.away else "active",
            counts=MappingProxyType({name: count for name, count in counts.items() if count}),
            agents=(agent,) if self.takes_work else (), skills=place.skills,
            unmet_count=len(self.unfit),
        )  # fmt: skip

    def news(self) -> JsonObject:
        """What the node's news are made from."""
        return {"idle": self.idle_since_ms is not None, "free_slots": self.free,
                "pending_count": len(self.pages), "state": "active"}  # fmt: skip

    def candidates(self, query: Candidates) -> Queue:
        """The answer to `candidates`, by the node's own rules."""
        kept: Counter[str] = Counter()
        said: dict[Shape, str | None] = {}
        fit: list[Task] = []
        urgent_first = query.order == "most_urgent"
        for _, _, task in self._by_turn() if urgent_first else reversed(self.pages):
            shape = task.shape
            if shape not in said:
                said[shape] = objection(shape, query, self._table)
            rule = said[shape]
            if rule is None:
                fit.append(task)
            else:
                kept[rule] += 1
        some = fit[: query.limit]
        return Queue(self.name, tuple(task.as_seen() for task in some), dict(kept), len(fit),
                     len(self.pages), query.limit if len(fit) > len(some) else None)  # fmt: skip

    def all_candidates(self, limit: int) -> Queue:
        """The most urgent of all that wait here, without any filter, as routes are planned."""
        first = islice(self._by_turn(), limit)
        some = tuple(task.as_seen() for _, _, task in first if not task.shape.pinned)
        pinned = sum(task.shape.pinned for _, _, task in self.pages)
        fit = len(self.pages) - pinned
        return Queue(self.name, some, {"pinned": pinned} if pinned else {}, fit, len(self.pages),
                     limit if len(self.pages) > limit else None)  # fmt: skip

    def _by_turn(self) -> Iterable[tuple[int, int, Task]]:
        """All that waits, the most urgent first: of one pace that order is the same for ever."""
        return merge(self.line, self.unfit) if self.unfit else self.line

    def _iso(self, now_ms: int) -> str:
        return iso(self.scene.origin + timedelta(milliseconds=now_ms))


class Crowds:
    """Numbers for tasks by which nodes may run them: so each rule is asked once for a kind."""

    def __init__(
        self, nodes: Mapping[str, Node], may_run: Callable[[QueuedTask, NodeSeen], bool]
    ) -> None:
        self._may_run = may_run
        self._fresh = [node.seen(0) for node in nodes.values() if node.takes_work]
        self._known: dict[Shape, int] = {}
        self.members: list[frozenset[str]] = []

    def of(self, task: Task) -> int:
        """The number of the task's crowd."""
        known = self._known.get(task.shape)
        if known is None:
            seen = task.as_seen()
            able = frozenset(node.name for node in self._fresh if self._may_run(seen, node))
            if able not in self.members:
                self.members.append(able)
            known = self._known[task.shape] = self.members.index(able)
        return known


def task_of(job: Job, scene: Scene, now_ms: int, shapes: dict[tuple[object, ...], Shape]) -> Task:
    """The job as a task that has just come; tasks that look alike share one shape."""
    kind = job.kind
    key = (kind, job.priority)
    shape = shapes.get(key)
    if shape is None:
        untagged = not kind.skills and kind.domain is None
        guess = guessed(kind.subject, scene.domains) if untagged else None
        shape = shapes[key] = Shape(
            kind.pinned, job.priority, kind.domain, kind.skills, kind.needs, 0, stolen=False,
            guess=guess,
        )  # fmt: skip
    came_ms = round(scene.origin.timestamp() * 1000) + now_ms
    return Task(job, shape, standing(base_of(job.priority, None)), came_ms, -1)


def asked_of(request: JsonObject) -> Candidates:
    """The request as the node reads it."""
    entries = request["for"]
    assert isinstance(entries, list)
    limit, steal_from = request.get("limit", 100), request.get("steal_from")
    return Candidates(
        why="stolen",
        wanting=tuple(_wanting(entry) for entry in entries if isinstance(entry, dict)),
        steal_from=steal_from if isinstance(steal_from, int) else None,
        order="most_urgent" if request.get("order") == "most_urgent" else "least_urgent",
        limit=limit if isinstance(limit, int) else 100,
    )


def _wanting(entry: JsonObject) -> Wanting:
    untagged, hops = entry.get("untagged_from"), entry.get("hops_max")
    return Wanting(
        node=str(entry["node"]),
        domains=_words(entry["domains"]) if "domains" in entry else None,
        never=_words(entry.get("never", [])),
        skills=_words(entry["skills"]) if "skills" in entry else None,
        untagged_from=untagged if isinstance(untagged, int) else None,
        hops_max=hops if isinstance(hops, int) else None,
    )


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


