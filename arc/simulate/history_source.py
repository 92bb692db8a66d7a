"""Makes a scene of what really came to this fleet, out of the history that its hub keeps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.strict import JsonObject
from agent_node.text import counted, safe_text
from arc.decisions.domains import Role
from arc.durations import BadWord, parse_duration
from arc.errors import NoFleet, NoHistory, WrongUse
from arc.history import Arrival, History, Sample, Stint

from .history_jobs import BLOCKED, GONE, GUESSED, NEVER_RAN, NEVER_READY, jobs_of
from .scene import MS, Away, Place, Scene
from .wanted import TASKS_MAX, Source, Wanted, only

if TYPE_CHECKING:
    from arc.settings import FleetSettings

BACK_MAX_S = 366 * 86_400.0
AWAY = frozenset({"paused", "draining", "drained", "quarantined", "stopped"})
DOUBTS = {
    GUESSED: "had not ended: each is taken to run as long as usual",
    NEVER_RAN: "ended without having run: left out",
    BLOCKED: "waited for other tasks or for their time before: each comes here when it was ready "
    "in reality, whatever might have let it go earlier",
    NEVER_READY: "never came to be ready: left out",
    GONE: "waited on nodes that fleet.yaml does not name: left out",
}


@dataclass(frozen=True)
class Remembered:
    """The scene of a stretch of history, which task is which, and what could not be known."""

    scene: Scene
    since: datetime
    until: datetime
    came: frozenset[str] = frozenset()  # the uids of jobs that came in it, and not before
    counts: Counter[str] = field(default_factory=Counter)  # of what is told in `DOUBTS`
    cut: str = ""  # what of the stretch is missing, in a sentence

    @property
    def guessed(self) -> int:
        """Tasks whose length was not known: taken at the usual one."""
        return self.counts[GUESSED]

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the figures do not say, a sentence each."""
        said = [self.cut] if self.cut else []
        said += [f"{counted(self.counts[name], 'task')} {told}" for name, told in DOUBTS.items()
                 if self.counts[name]]  # fmt: skip
        return tuple(said)


def remembered(wanted: Wanted, fleet: FleetSettings | None) -> Source:
    """What came to this fleet in the last so-and-so long, up to the last that its hub knows."""
    only(wanted, "--from-history", "from_history until")
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
    until = min(span.until, _moment(wanted.until)) if wanted.until else span.until
    if until <= span.since:  # before anything is subtracted: `until` may be the year 1
        raise NoHistory(f"{history.path}: nothing was remembered yet at {iso(until)}",
                        where=str(history.path))  # fmt: skip
    since = max(span.since, until - timedelta(seconds=back_s))
    found = scene_of_history(history, fleet, since, until, tasks_max=TASKS_MAX)
    if not found.scene.jobs:
        raise NoHistory(f"{history.path}: no task is known to have come since {iso(since)}",
                        where=str(history.path))  # fmt: skip
    facts: JsonObject = {"kind": "history", "since": iso(found.since), "until": iso(found.until),
                         "guessed": found.guessed, "never_ran": found.counts[NEVER_RAN],
                         "blocked": found.counts[BLOCKED] + found.counts[NEVER_READY]}  # fmt: skip
    said = f"what came from {iso(found.since)} to {iso(found.until)}"
    return Source(said, facts, lambda seed: found.scene, 1, found.doubts, fleet)


def _moment(text: str) -> datetime:
    try:
        return parse_iso(text)
    except ValueError as error:
        raise WrongUse(f"--until: {safe_text(text, 40)!r} is no zoned time, as "
                       "2026-03-10T03:45:00Z") from error  # fmt: skip


def scene_of_history(
    history: History, fleet: FleetSettings, since: datetime, until: datetime, *, tasks_max: int
) -> Remembered:
    """The tasks that came in this stretch, and those that ran or waited when it began.

    A task runs as long as all its attempts did, wherever it runs. Slots are the most that a node
    was seen with; a node that was paused or stopped starts nothing meanwhile. Of more tasks than
    `tasks_max` that came the newest are taken, and likewise of those that were there before.
    """
    arrivals = history.arrivals(since, until, limit=tasks_max + 1)
    cut = ""
    if len(arrivals) > tasks_max:
        arrivals = arrivals[-tasks_max:]
        since = arrivals[0].at
        cut = f"only what came since {iso(since)}: {tasks_max:,} tasks"
    stood = history.standing(since, limit=tasks_max + 1)
    if len(stood) > tasks_max:
        stood = stood[-tasks_max:]
        cut += ("; " if cut else "") + f"of what was there before, the newest {tasks_max:,} tasks"
    stints = history.stints(since, until)
    samples = history.samples(since, until)
    known = [*arrivals, *(one.came for one in stood)]
    places = _places(fleet, samples, known, stints, since=since, until=until)
    made = jobs_of(arrivals, stood, stints, nodes={place.name for place in places}, since=since,
                   until=until)  # fmt: skip
    length_ms = round((until - since).total_seconds() * MS)
    scene = Scene(places, made.jobs, fleet.domains, since, measured_to_ms=length_ms)
    return Remembered(scene, since, until, made.came, made.counts, cut)


def _places(
    fleet: FleetSettings, samples: Sequence[Sample], arrivals: Sequence[Arrival],
    stints: Sequence[Stint], *, since: datetime, until: datetime,
) -> tuple[Place, ...]:  # fmt: skip
    slots: defaultdict[str, int] = defaultdict(int)
    away: defaultdict[str, list[Away]] = defaultdict(list)
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
