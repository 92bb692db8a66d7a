"""What the simulated hub has learnt of how long work takes, from what it heard of the nodes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from arc.decisions.memory import Memory
from arc.decisions.usual import Runs, lefts_of, typical_of
from arc.decisions.view import NodeSeen
from arc.journal_history import TYPICAL_OF

from .queues import Task
from .scene import MS, Scene


@dataclass(eq=False)
class Experience:
    """How long a task will take is known to nobody before; what others took, once it was heard.

    As with the real hub that is when fleet-health runs, and not when something ends.
    """

    scene: Scene
    _running: dict[str, set[Task]] = field(default_factory=lambda: defaultdict(set))
    _ended: list[tuple[str, float]] = field(default_factory=list)  # since the last hearing
    _lasted: dict[str, deque[float]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=TYPICAL_OF))
    )
    _heard_ms: int | None = None
    _typical_s: Mapping[str, float] = field(default_factory=dict)
    _heard: Mapping[str, list[Runs]] = field(default_factory=dict)

    def starts(self, task: Task) -> None:
        """A task starts on its node."""
        self._running[task.node].add(task)

    def ends(self, task: Task) -> None:
        """It has ended there."""
        self._running[task.node].discard(task)
        self._ended.append((task.shape.domain or "", task.job.takes_ms / MS))

    def hear(self, now_ms: int) -> None:
        """The hub hears what has ended since the last time, and what runs now."""
        for domain, seconds in self._ended:
            self._lasted[domain].append(seconds)
        self._ended.clear()
        self._heard_ms = now_ms
        self._typical_s = typical_of({name: [*some] for name, some in self._lasted.items()})
        self._heard = {
            name: [self._runs(task) for task in some] for name, some in self._running.items()
        }

    def _runs(self, task: Task) -> Runs:
        since = self.scene.origin + timedelta(milliseconds=task.started_ms)
        return Runs(since, task.shape.domain or "", task.job.expected_s)

    def memory(
        self, now_ms: int, nodes: Iterable[NodeSeen], taken: Mapping[str, int], prior_s: float
    ) -> Memory:
        """What a plan is told at this moment."""
        heard_at = None
        if self._heard_ms is not None:
            heard_at = self.scene.origin + timedelta(milliseconds=self._heard_ms)
        left_s = lefts_of(
            nodes, self._heard, self._typical_s, prior_s=prior_s,
            now=self.scene.origin + timedelta(milliseconds=now_ms), heard_at=lambda _: heard_at,
        )  # fmt: skip
        return Memory(taken=taken, typical_s=self._typical_s, running_left_s=left_s)
