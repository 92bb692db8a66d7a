"""Turns what came to a fleet, and what was there before, into the jobs of a scene."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import NamedTuple

from arc.history import Arrival, Standing, Stint

from .scene import INBOX, MS, Job, Kind

GUESSED, NEVER_RAN, BLOCKED, NEVER_READY, GONE = (
    "guessed", "never_ran", "blocked", "never_ready", "gone")  # fmt: skip
UNKNOWN_S = 600.0  # a task of which nobody ever ended one
USUAL_PRIORITY = 5
# After such an attempt a task waits in no queue: for a person, for its children, or nobody knows.
HELD_BACK = frozenset({"parked", "waiting", "unknown"})
RAN, WAITED = 0, 1  # at one moment: what ran when the stretch began has its slot already


@dataclass(frozen=True)
class Made:
    """Jobs in the order in which they come, which of them came in the stretch, by uid, and how many
    tasks are not quite as they were, by what was done about it.
    """

    jobs: tuple[Job, ...] = ()
    came: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)


class _Coming(NamedTuple):
    """A job before it has its number; in this order they come."""

    at_ms: int
    rank: int
    priority: int
    since: datetime  # when it came really
    uid: str
    home: str
    takes_ms: int
    came: Arrival | None  # None: its coming is not remembered
    kind: Kind


@dataclass
class _Stretch:
    """The stretch of history, and what is found out about it on the way."""

    since: datetime
    until: datetime
    nodes: set[str]
    usual: Mapping[str, float]
    counts: Counter[str] = field(default_factory=Counter)
    coming: list[_Coming] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)


def jobs_of(
    arrivals: Sequence[Arrival], stood: Sequence[Standing], stints: Sequence[Stint], *,
    nodes: set[str], since: datetime, until: datetime,
) -> Made:  # fmt: skip
    """What came, what stood there when it began, and whatever else ran in it.

    What was over before it ran is no work. What was blocked comes when it was READY. A task that
    ran when the stretch began runs on for what was left of it, where it was.
    """
    ran: defaultdict[str, list[Stint]] = defaultdict(list)
    for stint in stints:
        ran[stint.uid].append(stint)
    work = _Stretch(since, until, nodes, _usual(stints))
    for one in arrivals:
        _add(work, one, ran.pop(one.uid, []), node=one.node, fresh=True)
    for known in stood:
        some = ran.pop(known.came.uid, [])
        if some or known.last not in HELD_BACK:
            _add(work, known.came, some, node=known.node, fresh=False)
    for uid in sorted(ran):
        _put(work, None, ran[uid], home=_home(work, ran[uid][0].node), at=since)
    return _numbered(work)


def _add(
    work: _Stretch, came: Arrival, stints: Sequence[Stint], *, node: str, fresh: bool
) -> None:  # fmt: skip
    """`node`: where it was added, or where it stood when the stretch began."""
    ready = came.ready_at
    if stints:  # whatever was not heard: it was ready when it was claimed
        ready = min(ready or came.at, stints[0].claimed_at)
    if not stints and came.ended_at is not None and came.ended_at < work.until:
        work.counts[NEVER_RAN] += 1
        return
    if ready is None or ready >= work.until:
        work.counts[NEVER_READY] += 1
        return
    if not fresh and not stints and node not in work.nodes and node != INBOX:
        work.counts[GONE] += 1
        return
    if ready > max(came.at, work.since):
        work.counts[BLOCKED] += 1
    if fresh:
        work.fresh.add(came.uid)
    _put(work, came, stints, home=_home(work, node), at=max(ready, work.since))


def _put(
    work: _Stretch, came: Arrival | None, stints: Sequence[Stint], *, home: str, at: datetime
) -> None:  # fmt: skip
    running = bool(stints) and stints[0].claimed_at < work.since
    if running:
        home = _home(work, stints[0].node)
    domain = (came.domain if came else stints[0].domain) or ""
    priority = (came.priority if came else stints[0].priority) or USUAL_PRIORITY
    kind = Kind(domain or None)
    if came is not None:
        kind = Kind(domain or None, came.skills or (), came.needs or (), bool(came.pinned))
    work.coming.append(_Coming(
        round((at - work.since).total_seconds() * MS), RAN if running else WAITED, priority,
        came.at if came else work.since, came.uid if came else stints[0].uid, home,
        max(round(_takes_s(work, stints, domain) * MS), 1), came, kind,
    ))  # fmt: skip


def _home(work: _Stretch, node: str) -> str:
    return node if node in work.nodes else INBOX


def _takes_s(work: _Stretch, stints: Sequence[Stint], domain: str) -> float:
    took = [_length_s(one, work.since) for one in stints]
    ended = [one for one in took if one is not None]
    if took and len(ended) == len(took):
        return sum(ended)
    work.counts[GUESSED] += 1
    return max(sum(ended), work.usual.get(domain, work.usual.get("", UNKNOWN_S)))


def _length_s(stint: Stint, since: datetime) -> float | None:
    """How long the attempt ran from the stretch's beginning on; None: it had not ended."""
    if stint.ended_at is None:
        return None
    began = max(stint.started_at or stint.claimed_at, since)
    return max((stint.ended_at - began).total_seconds(), 0.0)


def _numbered(work: _Stretch) -> Made:
    """As they come. What waited when the stretch began is looked at as one queue, the most urgent
    first; later ones of one moment as they came.
    """
    def order(one: _Coming) -> tuple[object, ...]:
        return one.at_ms, one.rank, one.priority if one.at_ms == 0 else 0, one.since, one.uid

    jobs = tuple(
        Job(number, one.at_ms, one.home, one.takes_ms, one.kind, one.priority,
            one.came.expected_s if one.came else None, one.uid)
        for number, one in enumerate(sorted(work.coming, key=order), 1)
    )  # fmt: skip
    return Made(jobs, frozenset(job.uid for job in jobs if job.name in work.fresh), work.counts)


def _usual(stints: Iterable[Stint]) -> dict[str, float]:
    """How long a task of each domain usually took; under "" of any."""
    by_domain: defaultdict[str, list[float]] = defaultdict(list)
    for stint in stints:
        if stint.ended_at is not None and stint.outcome == "completed":
            took_s = (stint.ended_at - (stint.started_at or stint.claimed_at)).total_seconds()
            for name in {stint.domain or "", ""}:
                by_domain[name].append(max(took_s, 0.0))
    return {name: median(some) for name, some in by_domain.items()}
