"""Holds what a fleet's history is made of: arrivals, stints, samples, stretches, moves, runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

ADDED, ARRIVED = "added", "arrived"
TAKEN = "taker_has_it"  # the rule of a doubt that was settled so
# Of the journal's moves: whether the task came to its taker by it.
CAME = f"(outcome = 'moved' OR rule = '{TAKEN}')"
UNKNOWN = "unknown"  # a sample of a node that did not answer, and the end of a stint nobody saw
RUNS = ""  # the outcome of a stint that is not over, as far as was heard
# What a node's sample may say; of those that are not `running`, nothing is started there. The hub's
# own queue, `inbox`, is `running` without any slots.
STATES = ("running", "paused", "draining", "drained", "quarantined", "stopped", UNKNOWN)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A task as it came to the fleet. None: not known, for its node is too old to tell it or the
    task was gone by the time it was asked; never a guess.
    """

    at: datetime  # by the hub's clock
    uid: str
    node: str  # where it was added: a node, or `inbox`, the hub's own queue
    how: str  # `added`; `arrived`: it was there before this history began, and came by a move
    priority: int | None = None  # 1-10
    domain: str | None = None  # "": it has none
    skills: tuple[str, ...] | None = None
    needs: tuple[str, ...] | None = None
    pinned: bool | None = None  # True: it never moves by itself
    expected_s: float | None = None  # what it said of itself; None also where it said nothing
    source: str | None = None  # who made it, by kind: human, agent, cron, …
    ready_at: datetime | None = None  # None: it was never READY, as far as was heard
    ended_at: datetime | None = None  # None: it is not over, as far as was heard


@dataclass(frozen=True, slots=True)
class Standing:
    """A task that had come before some moment and was not over then."""

    came: Arrival
    node: str  # where it was at that moment: where it came, or where it was moved to last
    last: str  # how its last attempt before that moment ended: as a stint's outcome; "": it ran, or
    # there was none


@dataclass(frozen=True, slots=True)
class Stint:
    """One attempt of a task on one node."""

    node: str
    uid: str
    n: int  # the attempt's number
    agent: str
    claimed_at: datetime  # by the hub's clock, as all here
    started_at: datetime | None  # None: its program has not begun, or that was not heard
    ended_at: datetime | None  # None: it runs, as far as was heard (`NodeKnown.heard_at`)
    # "" runs | completed | failed | interrupted | cancelled | parked | waiting | unknown
    outcome: str
    error_kind: str = ""
    domain: str | None = None  # "": none; None: not known
    priority: int | None = None
    cost_usd: Decimal | None = None  # None: not known


@dataclass(frozen=True, slots=True)
class Sample:
    """How a node was from `at` to `until`: it was looked at often enough to say so.

    Between `until` and the next sample's `at` nobody looked: that is a gap, and no flat line.
    """

    node: str
    at: datetime
    until: datetime
    state: str  # one of STATES
    because: str = ""  # of an unknown one: unreachable, silent, host_key, …
    pending: int = 0  # READY; the counts of an unknown one say nothing
    running: int = 0
    slots: int = 0
    free: int = 0
    idle_since: datetime | None = None  # None: it was not idle

    @property
    def idle(self) -> bool:
        """By its own word: nothing waits, nothing runs, and it would start something."""
        return self.idle_since is not None


@dataclass(frozen=True, slots=True)
class StrandedStretch:
    """A free slot stood beside work that it might have run. The seconds are those that
    `arc status` counts: they add up to its table, and may be fewer than `until` less `since`.
    """

    node: str
    since: datetime
    until: datetime
    seconds: float
    cause: str  # `rule`, or `nobody_looked`
    rule: str  # which; of nobody_looked why nobody did, or ""
    beside: str = ""  # where the work waits
    uid: str = ""  # of one such task; "": the queue could not be looked into

    def seconds_in(self, since: datetime, until: datetime) -> float:
        """Its seconds that fall into a window: of one that reaches beyond it, that share."""
        whole_s = (self.until - self.since).total_seconds()
        inside_s = (min(self.until, until) - max(self.since, since)).total_seconds()
        return self.seconds * max(inside_s, 0.0) / whole_s if whole_s > 0 else self.seconds


@dataclass(frozen=True, slots=True)
class MoveSeen:
    """A move as the hub wrote it down."""

    at: datetime
    uid: str
    busy: str
    idle: str
    outcome: str  # moved | kept | in_doubt | settled
    why: str  # stolen | routed | drained | moved | retried
    rule: str
    because: str
    priority: int | None
    run: int | None  # None: a person moved it
    xfer: str

    @property
    def arrived(self) -> bool:
        """Whether the task is with its taker by it; so may a doubt end that was settled."""
        return self.outcome == "moved" or self.rule == TAKEN


@dataclass(frozen=True, slots=True)
class RunSeen:
    """A run of a sensor."""

    id: int
    sensor: str
    at: datetime  # when it began
    because: str  # interval, by hand, or which news
    outcome: str  # done | skipped | could_not_look | failed
    skipped: str
    summary: str
    code: str  # of the error that ended it
    looked: int
    unseen: int
    decided: int
    acted: int
    requests: int
    took_s: float
    kept: Mapping[str, int]  # tasks that stay, by the rule that keeps them


@dataclass(frozen=True, slots=True)
class KeptSeen:
    """What one run said of tasks that stay: so many of a node by a rule, or one by its uid."""

    node: str
    rule: str
    count: int
    because: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Feed:
    """So many tasks went from one node to another."""

    busy: str
    idle: str
    why: str
    moves: int


@dataclass(frozen=True, slots=True)
class NodeKnown:
    """A node of which there is any history; it may have left the fleet."""

    name: str
    since: datetime  # its first sample that is still kept
    until: datetime  # up to when its last one is confirmed
    heard_at: datetime | None  # its stints are whole up to here; None: it was never heard


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when there is history."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class NodeShares:
    """One node's time, bucket by bucket. The five shares of a bucket are of its whole length and
    add up to 1, but for its part that lies in the future or before the history: that is unknown.

    Each moment counts once, in this order: unknown (nobody looked, or no answer), paused (nothing
    would be started: paused, draining, drained, quarantined, stopped), stranded (a free slot beside
    work that it might run), busy (something runs or waits), idle.
    """

    node: str
    busy: tuple[float, ...]
    idle: tuple[float, ...]
    stranded: tuple[float, ...]
    paused: tuple[float, ...]
    unknown: tuple[float, ...]
    depth: tuple[float | None, ...]  # mean READY over the time that is known; None: none is
    running: tuple[float | None, ...]  # mean, likewise
    cost_usd: tuple[float, ...]  # of the attempts that ended in it

    @property
    def stranded_share(self) -> float:
        """Over all buckets."""
        return sum(self.stranded) / len(self.stranded)


@dataclass(frozen=True, slots=True)
class Shares:
    """`nodes` by name; bucket `n` begins at `since` + n times `step_s`."""

    since: datetime
    step_s: float
    nodes: tuple[NodeShares, ...]


@dataclass(frozen=True, slots=True)
class NodeDepths:
    """One node's queue, bucket by bucket; None: nothing is known of it."""

    node: str
    mean: tuple[float | None, ...]  # READY
    most: tuple[int | None, ...]
    running: tuple[float | None, ...]
    slots: tuple[int | None, ...]  # the most it had


@dataclass(frozen=True, slots=True)
class Depths:
    """`nodes` by name; bucket `n` begins at `since` + n times `step_s`."""

    since: datetime
    step_s: float
    nodes: tuple[NodeDepths, ...]
    more: int = 0  # nodes that were left out, for their queues were never as long


@dataclass(frozen=True, slots=True)
class Spent:
    """What attempts cost that ended in each bucket, in dollars by node; who spent nothing is not
    in it.
    """

    since: datetime
    step_s: float
    nodes: Mapping[str, tuple[float, ...]]
