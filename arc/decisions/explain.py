"""The words a decision is explained in; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import overload

from .objections import Objection
from .view import QueuedTask

__all__ = (
    "Kept", "KeptCount", "KeptGroup", "KeptTasks", "NodeVerdict", "Objection", "RoutePlan", "Steal",
    "StealPlan", "lasting",
)  # fmt: skip


@dataclass(frozen=True)
class Steal:
    """One move in a plan; it leaves no choice to whoever carries it out."""

    xfer: str
    task: QueuedTask
    busy: str
    idle: str
    because: str  # which rule lets it go there, in a sentence
    why: str = "stolen"  # on the wire: stolen, routed, drained, moved, retried


def ends_of(steals: Iterable[Steal]) -> set[str]:
    """The nodes that these moves change: what they said before is not so any more."""
    return {end for steal in steals for end in (steal.busy, steal.idle)}


@dataclass(frozen=True)
class Kept:
    """One task that stays where it is, and the first rule that keeps it there."""

    task: QueuedTask
    node: str
    objection: Objection


@dataclass(frozen=True, slots=True)
class KeptGroup:
    """Tasks of one node that one objection keeps there; alike for every rule, judged once."""

    node: str
    tasks: Sequence[QueuedTask]
    objection: Objection


@dataclass(frozen=True)
class KeptTasks(Sequence[Kept]):
    """Every kept task of a plan, made only when it is looked at: there may be a hundred thousand.

    Use it as a sequence of `Kept`; use `groups` where the tasks need not be told apart.
    """

    groups: tuple[KeptGroup, ...] = ()

    def __iter__(self) -> Iterator[Kept]:
        for group in self.groups:
            for task in group.tasks:
                yield Kept(task, group.node, group.objection)

    def __len__(self) -> int:
        return sum(len(group.tasks) for group in self.groups)

    @overload
    def __getitem__(self, at: int) -> Kept: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Kept, ...]: ...
    def __getitem__(self, at: int | slice) -> Kept | tuple[Kept, ...]:
        if isinstance(at, slice):
            return tuple(islice(self, *at.indices(len(self))))
        place = at if at >= 0 else len(self) + at
        for kept in islice(self, max(place, 0), None):
            if place >= 0:
                return kept
        raise IndexError(at)


@dataclass(frozen=True)
class KeptCount:
    """How many tasks of one node stay by one rule; the counts of a node add up to its READY."""

    node: str
    rule: str
    count: int
    because: str = ""  # of one of them


@dataclass(frozen=True)
class NodeVerdict:
    """What a node was in a plan: idle, busy, neither, or not to be used; and why."""

    name: str
    part: str  # idle | busy | both | neither | out
    objection: Objection | None = None  # None: it is idle, busy or both
    pending: int | None = None  # None: not known

    @property
    def takes(self) -> bool:
        """Whether it may be given work."""
        return self.part in ("idle", "both")

    @property
    def gives(self) -> bool:
        """Whether work may be taken from it; of `both`, what no agent there can run."""
        return self.part in ("busy", "both")


@dataclass(frozen=True)
class StealPlan:
    """What a rebalance would do: every move, and a reason for every task that stays."""

    policy: str
    steals: tuple[Steal, ...] = ()
    kept: Sequence[Kept] = ()  # of the pages that were read; `counts` has all of them
    counts: tuple[KeptCount, ...] = ()
    nodes: tuple[NodeVerdict, ...] = ()
    skipped: str | None = None  # "no idle", "no busy": nothing was asked; None: queues were seen
    caps_hit: tuple[str, ...] = ()

    def why_kept(self, node: str) -> list[str]:
        """The reasons why tasks of this node stay, each once, in the order they were found."""
        return [*dict.fromkeys(kept.objection.because for kept in self.kept if kept.node == node)]


@dataclass(frozen=True)
class RoutePlan:
    """Where each task of the hub's inbox goes, and why the others stay."""

    routes: tuple[Steal, ...] = ()  # busy is the inbox, why is "routed"
    kept: tuple[Kept, ...] = ()
    counts: tuple[KeptCount, ...] = ()
    nodes: tuple[NodeVerdict, ...] = ()
    unclaimed: dict[str, int] = field(default_factory=dict)  # uid: cycles that nobody wanted it


def lasting(seconds: float) -> str:
    """A duration for people, cut and never rounded up: 40s, 12m, 3h 5m, 2d 4h."""
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours}h"
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m" if minutes else f"{left}s"
