"""The fleet as seen at one moment, including what could not be seen; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agent_node.reports import StatusReport

from .domains import Role


@dataclass(frozen=True)
class NodeSeen:
    """A node that answered. `age_s` counts from the receipt, by the hub's own clock alone."""

    name: str
    report: StatusReport
    role: Role = field(default_factory=Role)
    age_s: float = 0.0
    took_s: float = 0.0
    clock_off_s: float | None = None  # by the half of the round trip; None: not measured


@dataclass(frozen=True)
class NodeUnseen:
    """A node about which nothing is known now: why, and what that may have left undone."""

    name: str
    rule: str  # unreachable, host_key, login, silent, unreadable, suspended, …
    because: str
    code: str = ""  # the error's, for `arc explain`
    role: Role = field(default_factory=Role)


@dataclass(frozen=True)
class FleetView:
    """All nodes side by side, by name: those that answered and those that did not."""

    at: datetime
    seen: tuple[NodeSeen, ...] = ()
    unseen: tuple[NodeUnseen, ...] = ()

    @property
    def silent(self) -> tuple[NodeUnseen, ...]:
        """Those that were asked and told nothing; a suspended node is not asked."""
        return tuple(node for node in self.unseen if node.rule != "suspended")

    @property
    def unheard(self) -> frozenset[str]:
        """The names of all that told nothing, whether they were asked or not."""
        return frozenset(node.name for node in self.unseen)

    def node(self, name: str) -> NodeSeen | NodeUnseen | None:
        """The node of this name; None: the fleet has none."""
        every: tuple[NodeSeen | NodeUnseen, ...] = (*self.seen, *self.unseen)
        return next((node for node in every if node.name == name), None)


@dataclass(frozen=True, slots=True)
class QueuedTask:
    """A READY task as the decisions look at it."""

    uid: str
    epoch: int
    subject: str
    priority: int
    skills: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    domain: str | None = None
    stolen_from: str | None = None
    hops: int = 0
    pinned: bool = False
    source: str = "human:unknown"
    ready_at: str | None = None  # by the clock of the node that has it
    expected_s: float | None = None
    state: str = "READY"
    ended_elsewhere: str = ""  # how and where, of a copy whose task ended on another node
    failed_on: tuple[str, ...] = ()  # the nodes of its failed attempts, as far as they are known


@dataclass(frozen=True)
class Queue:
    """What a node said may move from it: its candidates, and how many others stay by which rule.

    `kept` and `eligible` add up to `total`, all its READY tasks. `tasks` are the first of the
    eligible ones, in the order that was asked for.
    """

    node: str
    tasks: tuple[QueuedTask, ...] = ()
    kept: Mapping[str, int] = field(default_factory=dict)
    eligible: int = 0
    total: int = 0
    next: int | None = None  # where the next page starts; None: this was the last
    last_first: bool = False  # of one priority who came last stands first, as arc0 takes them


@dataclass(frozen=True)
class QueueUnseen:
    """A queue that could not be looked into: an error is never an empty queue."""

    node: str
    rule: str
    because: str
    code: str = ""


Queues = Mapping[str, Queue | QueueUnseen]
