"""The words in which tasks move between two queues, and in which ownership is taken back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .commands import OWNER, Because, Command, Sender
from .strict import JsonObject
from .task import Task

Why = Literal["stolen", "routed", "drained", "moved", "retried"]


class Move(NamedTuple):
    """One task in a batch, as the giver is asked for it."""

    xfer: str
    uid: str
    epoch: int
    peer_incarnation: str | None = None


@dataclass(frozen=True)
class Escrow(Command["tuple[Transferred, ...]"]):
    """At the giver: set these READY tasks aside for `to`, until the lease ends."""

    to: str
    why: Why
    lease_s: float
    moves: tuple[Move, ...]
    sender: Sender = OWNER
    even_if_pinned: bool = False
    terse: bool = False  # the answers tell each task as text, without what it does not say


class Offer(NamedTuple):
    """One task as the taker is offered it. `weight` is what its graph gives it, in points."""

    xfer: str
    task: Task
    sha256: str
    peer_incarnation: str | None = None
    weight: float = 0.0


class Unread(NamedTuple):
    """An offer that could not be read, and why; `uid` empty: nor which task it is about."""

    xfer: str
    uid: str
    because: Because
    peer_incarnation: str | None = None


@dataclass(frozen=True)
class Hold(Command["tuple[Transferred, ...]"]):
    """At the taker: keep these copies; they do not run before `Activate`.

    The outcomes of what could not be read stand behind those of the offers.
    """

    giver: str
    why: Why
    offers: tuple[Offer, ...]
    sender: Sender = OWNER
    even_if_stopped: bool = False
    unread: tuple[Unread, ...] = ()


class Settle(NamedTuple):
    """One transfer in a batch of commit, abort, settled, activate or drop."""

    xfer: str
    uid: str
    peer: str
    peer_incarnation: str | None = None
    ended: str | None = None  # `settled` only: the task's end, where it is known


@dataclass(frozen=True)
class _Settling(Command["tuple[Transferred, ...]"]):
    moves: tuple[Settle, ...]
    sender: Sender = OWNER


class Commit(_Settling):
    """At the giver, only after a positive hold: the task is the taker's from here on."""


class Abort(_Settling):
    """At the giver: the move will not happen; the task is READY here again."""


class Activate(_Settling):
    """At the taker, only after the commit: the copy becomes READY."""


class Drop(_Settling):
    """At the taker, only with proof of the abort: the copy goes."""


class Settled(_Settling):
    """At the giver: both ends are done with the transfer."""


class Transferred(NamedTuple):
    """The recorded outcome of one transfer at this node, new or repeated.

    `escrowed` carries the task, its hash and its weight; where it was asked for tersely, `told` in
    the task's place, which is its JSON. `too_old` and `unknown` changed nothing.
    """

    xfer: str
    outcome: str
    because: Because | None = None
    task: Task | None = None
    sha256: str | None = None
    told: str | None = None
    weight: float = 0.0


# --- Re-own, fence, quarantine ------------------------------------------------------------------


# How far a re-own goes above every epoch that any node named: nobody counts up to it meanwhile.
REOWN_STEP = 2**20


@dataclass(frozen=True)
class Target:
    """One uid and the epoch S that everybody agreed to put it at."""

    uid: str
    epoch: int


@dataclass(frozen=True)
class Fenced:
    """A node under one incarnation that a person declared dead."""

    node: str
    incarnation: str


@dataclass(frozen=True)
class Bar(Command["tuple[Reowned, ...]"]):
    """At every other node: record that the uid lives elsewhere, at S."""

    targets: tuple[Target, ...]
    fenced: tuple[Fenced, ...] = ()
    nodes: tuple[Fenced, ...] = ()  # every incarnation that the decision was built upon
    evidence: dict[str, tuple[int, ...]] = field(default_factory=dict)
    sender: Sender = OWNER


@dataclass(frozen=True)
class Reown(Command["tuple[Reowned, ...]"]):
    """At the one winner: make the task READY at S."""

    targets: tuple[Target, ...]
    fenced: tuple[Fenced, ...] = ()
    nodes: tuple[Fenced, ...] = ()  # every incarnation that the decision was built upon
    evidence: dict[str, tuple[int, ...]] = field(default_factory=dict)  # uid: attempts on disk
    living: frozenset[str] = frozenset()  # uids of which an attempt is not proven dead
    alone: bool = False  # a person's word that no other copy lives
    sender: Sender = OWNER


@dataclass(frozen=True)
class Reowned:
    """barred, reowned, or refused and why."""

    uid: str
    outcome: Literal["barred", "reowned", "refused"]
    because: Because | None = None


@dataclass(frozen=True)
class Quarantine(Command["None"]):
    """Nothing runs and nothing changes here until a person releases it."""

    reason: str
    sender: Sender = OWNER


@dataclass(frozen=True)
class Release(Command["None"]):
    """A person ends the quarantine of the node, once each of its tasks was decided upon."""

    reason: str
    sender: Sender = OWNER


@dataclass(frozen=True)
class Hello(Command["bool"]):
    """A hub says who it is; a lower term than one seen before commands nothing here.

    The outcome: whether it said anything that was not known.
    """

    fleet: str
    hub: str
    term: int
    boot_id: str
    domains: JsonObject | None = None
    fenced: bool = False
    incarnation: str | None = None  # whom the hub means; a fence of an earlier one is void
    instance: str | None = None  # the hub's own state folder: two hubs of one term differ in it
