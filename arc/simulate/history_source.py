"""Makes a scene of what really came to this fleet, out of the history that its hub keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject
from arc.decisions.domains import Role
from arc.durations import BadWord, parse_duration
from arc.errors import NoFleet, NoHistory, WrongUse
from arc.history import Arrival, History, Sample, Stint

from .engine import jobs_in_order
from .scene import INBOX, MS, Away, Job, Kind, Place, Scene
from .wanted import TASKS_MAX, Source, Wanted, only

if TYPE_CHECKING:
    from arc.settings import FleetSettings

BACK_MAX_S = 366 * 86_400.0
UNKNOWN_S = 600.0  # a task of which nobody ever ended one
AWAY = frozenset({"paused", "draining", "drained", "quarantined", "stopped"})


@dataclass(frozen=True)
class Remembered:
    """The scene of a stretch of history, which task is which, and what could not be known."""

    scene: Scene
    since: datetime
    until: datetime
    came: Mapping[str, Arrival] = field(default_factory=dict)
    guessed: int = 0  # tasks whose length was not known: taken at the usual one
    never_ran: int = 0  # tasks that ended without ever having run: left out
    cut: str = ""  # what of the stretch is missing, in a sentence

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the figures do not say, a sentence each."""
        said = [self.cut] if self.cut else []
        if self.guessed:
            said.append(f"{self.guessed} tasks had not ended: each is taken to run as long as "
                        "usual")  # fmt: skip
        if self.never_ran:
            said.append(f"{self.never_ran} tasks never ran and are left out")
        return tuple(said)


def remembered(wanted: Wanted, fleet: FleetSettings | None) -> Source:
    """What came to this fleet in the last so-and-so long, up to the last that its hub knows."""
    only(wanted, "--from-history", "from_history")
    if fleet is None:
        raise NoFleet("--from-history: there is no fleet.yaml here, so no hub has kept a history")
    try:
        back_s = parse_duration(wanted.from_history)
    except BadWord as error:
        raise WrongUse(f"--from-history: {error}") from error
    if not 0 < back_s <= BACK_MAX_S:
        raise WrongUse("--from-history: should lie above 0 and within a year")
    history = History(fleet.state)
    span = history.span()
    since = max(span.since, span.until - timedelta(seconds=back_s))
    found = scene_of_history(history, fleet, since, span.until, tasks_max=TASKS_MAX)
    if not found.scene.jobs:
        raise NoHistory(f"{history.path}: no task is known to have come since {iso(since)}",
                        where=str(history.path))  # fmt: skip
    facts: JsonObject = {"kind": "history", "since": iso(found.since), "until": iso(found.until),
                         "guessed": found.guessed, "never_ran": found.never_ran}  # fmt: skip
    said = f"what came from {iso(found.since)} to {iso(found.until)}"
    return Source(said, facts, lambda seed: found.scene, 1, found.doubts, fleet)


def scene_of_history(
    history: History, fleet: FleetSettings, since: datetime, until: datetime, *, tasks_max: int
) -> Remembered:
    """The tasks that came in this stretch, and those that ran or waited when it began.

    A task runs as long as all its attempts did, wherever it runs. Slots are the most that a node
    was seen with; a node that was paused or stopped starts nothing meanwhile. Of more tasks than
    `tasks_max` the newest are taken.
    """
    arrivals = history.arrivals(since, until, limit=tasks_max + 1)
    cut = ""
    if len(arrivals) > tasks_max:
        arrivals = arrivals[-tasks_max:]
        since = arrivals[0].at
        cut = f"only what came since {iso(since)}: {tasks_max:,} tasks"
    stints = history.stints(since, until)
    samples = history.samples(since, until)
    places = _places(fleet, samples, arrivals, stints, (since, until))
    made = _jobs(arrivals, stints, {place.name for place in places}, (since, until))
    jobs = jobs_in_order([job for job, _ in made.jobs])
    length_ms = round((until - since).total_seconds() * MS)
    scene = Scene(places, jobs, fleet.domains, since, measured_to_ms=length_ms)
    return Remembered(scene, since, until, {job.uid: one for job, one in made.jobs if one},
                      made.guessed, made.never_ran, cut)  # fmt: skip


@dataclass
class _Made:
    jobs: list[tuple[Job, Arrival | None]] = field(default_factory=list)
    guessed: int = 0
    never_ran: int = 0


def _jobs(
    arrivals: Sequence[Arrival], stints: Sequence[Stint], names: set[str],
    window: tuple[datetime, datetime],
) -> _Made:  # fmt: skip
    since, until = window
    ran: defaultdict[str, list[Stint]] = defaultdict(list)
    for stint in stints:
        ran[stint.uid].append(stint)
    usual = _usual(stints)
    made = _Made()
    for arrival in arrivals:
        home = arrival.node if arrival.node in names else INBOX
        _add(made, ran.pop(arrival.uid, []), arrival, home, usual, window)
    for uid, some in sorted(ran.items()):  # they ran, or waited, when the stretch began
        home = some[0].node if some[0].node in names else INBOX
        _add(made, ran[uid], None, home, usual, (since, until))
    return made


def _add(
    made: _Made, stints: Sequence[Stint], arrival: Arrival | None, home: str,
    usual: Mapping[str, float], window: tuple[datetime, datetime],
) -> None:  # fmt: skip
    since, until = window
    took = [_length_s(one, since) for one in stints]
    ended = [one for one in took if one is not None]
    if not stints and arrival is not None and (until - arrival.at).total_seconds() < 0:
        return
    domain = (arrival.domain if arrival else stints[0].domain) or ""
    takes_s = sum(ended)
    if len(ended) < len(took) or not took:
        made.guessed += 1
        takes_s = max(takes_s, usual.get(domain, usual.get("", UNKNOWN_S)))
    at = arrival.at if arrival else since
    priority = arrival.priority if arrival else stints[0].priority
    kind = Kind(domain or None)
    if arrival is not None:
        kind = Kind(domain or None, arrival.skills or (), arrival.needs or (),
                    bool(arrival.pinned))  # fmt: skip
    name = arrival.uid if arrival else stints[0].uid
    made.jobs.append((
        Job(len(made.jobs) + 1, max(round((at - since).total_seconds() * MS), 0), home,
            max(round(takes_s * MS), 1), kind, priority or 5,
            arrival.expected_s if arrival else None, name), arrival,
    ))  # fmt: skip


def _length_s(stint: Stint, since: datetime) -> float | None:
    """How long the attempt ran within the stretch; None: it had not ended."""
    if stint.ended_at is None:
        return None
    began = max(stint.started_at or stint.claimed_at, since)
    return max((stint.ended_at - began).total_seconds(), 0.0)


def _usual(stints: Iterable[Stint]) -> dict[str, float]:
    """How long a task of each domain usually took; under "" of any."""
    by_domain: defaultdict[str, list[float]] = defaultdict(list)
    for stint in stints:
        if stint.ended_at is not None and stint.outcome == "completed":
            took_s = (stint.ended_at - (stint.started_at or stint.claimed_at)).total_seconds()
            for name in {stint.domain or "", ""}:
                by_domain[name].append(max(took_s, 0.0))
    return {name: median(some) for name, some in by_domain.items()}


def _places(
    fleet: FleetSettings, samples: Sequence[Sample], arrivals: Sequence[Arrival],
    stints: Sequence[Stint], window: tuple[datetime, datetime],
) -> tuple[Place, ...]:  # fmt: skip
    slots: defaultdict[str, int] = defaultdict(int)
    away: defaultdict[str, list[Away]] = defaultdict(list)
    since, until = window
    for sample in samples:
        slots[sample.node] = max(slots[sample.node], sample.slots)
        if sample.state in AWAY:
            begin, end = max(sample.at, since), min(sample.until, until)
            away[sample.node].append(Away(*(
                round((moment - since).total_seconds() * MS) for moment in (begin, end)
            )))  # fmt: skip
    needs = {one.uid: one.needs for one in arrivals if one.needs}
    skills: defaultdict[str, set[str]] = defaultdict(set)
    for stint in stints:  # what it ran, it was able to run
        skills[stint.node].update(needs.get(stint.uid, ()))
    return tuple(
        Place(node.name, max(slots[node.name], 1), Role(node.owns, node.also, node.never),
              tuple(sorted(skills[node.name])), tuple(away[node.name]))
        for node in fleet.nodes
    )  # fmt: skip
