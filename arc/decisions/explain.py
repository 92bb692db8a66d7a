"""The words a decision is explained in; pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from .view import QueuedTask


@dataclass(frozen=True)
class Objection:
    """Why not: the rule by its name, and the reason in a sentence."""

    rule: str
    because: str


@dataclass(frozen=True)
class Steal:
    """One move in a plan; it leaves no choice to whoever carries it out."""

    xfer: str
    task: QueuedTask
    busy: str
    idle: str
    because: str  # which rule lets it go there, in a sentence
    why: str = "stolen"  # on the wire: stolen, routed, drained, moved, retried


@dataclass(frozen=True)
class Kept:
    """One task that stays where it is, and the first rule that keeps it there."""

    task: QueuedTask
    node: str
    objection: Objection


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
    part: str  # idle | busy | neither | out
    objection: Objection | None = None  # None: it is idle or busy
    pending: int | None = None  # None: not known


@dataclass(frozen=True)
class StealPlan:
    """What a rebalance would do: every move, and a reason for every task that stays."""

    policy: str
    steals: tuple[Steal, ...] = ()
    kept: tuple[Kept, ...] = ()
    counts: tuple[KeptCount, ...] = ()
    nodes: tuple[NodeVerdict, ...] = ()
    skipped: str | None = None  # "no idle", "no busy": nothing was asked; None: queues were seen
    caps_hit: tuple[str, ...] = ()


@dataclass(frozen=True)
class RoutePlan:
    """Where each task of the hub's inbox goes, and why the others stay."""

    routes: tuple[Steal, ...] = ()  # busy is the inbox, why is "routed"
    kept: tuple[Kept, ...] = ()
    counts: tuple[KeptCount, ...] = ()
    nodes: tuple[NodeVerdict, ...] = ()
    unclaimed: dict[str, int] = field(default_factory=dict)  # uid: cycles that nobody wanted it
