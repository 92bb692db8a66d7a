"""Draws scenes by a seed: a stream of tasks at some load, or a backlog that waits already."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from random import Random

from arc.decisions.domains import Domain, Role

from .lengths import Lengths, draw_priority
from .scene import INBOX, MS, Job, Kind, Place, Scene

SHARED = "shared"  # the domain of portable work; every other task is its node's own
NAMES: tuple[str, ...] = ("forge", "iris", "loom", "spark", "arc")
WARM_UP_SHARE = 0.1  # of a stream, until its queues look as they do later
WARM_UP_MAX_S = 3600.0
GUESS_SIGMA = 0.8  # of the logarithm: by how much a task is wrong about its own length
_SHARED = Kind(domain=SHARED)


@dataclass(frozen=True)
class Stream:
    """What comes to one node: tasks at `load`, a share of what it can do, each as by chance.

    `portable` of them are of the kinds that others may run too, the others are its own alone.
    """

    place: Place
    load: float
    portable: float
    lengths: Lengths
    shared: tuple[Kind, ...]
    own: tuple[Kind, ...]

    @property
    def rate(self) -> float:
        """Tasks a second."""
        return self.load * self.place.slots / self.lengths.mean_s


@dataclass(frozen=True)
class Streams:
    """A fleet and what comes to it for so many days; `at_hub` of it to the hub's own queue.

    `told`: tasks say how long they will run, within a factor of about two.
    """

    streams: tuple[Stream, ...]
    domains: tuple[Domain, ...]
    days: float
    at_hub: float = 0.0
    told: bool = False

    @property
    def tasks(self) -> float:
        """How many will come, about."""
        return sum(one.rate for one in self.streams) * self.days * 86_400


@dataclass(frozen=True)
class Backlog:
    """A fleet of nodes alike, and tasks that all wait from the start, `share` of them on one."""

    nodes: int
    slots: int
    tasks: int
    share: float
    portable: float
    lengths: Lengths


def draw_streams(streams: Streams, seed: int) -> Scene:
    """The scene of this seed; the same for every policy."""
    chance = Random(f"stream {seed}")  # noqa: S311 - a simulation
    end_s = streams.days * 86_400
    rates = [*accumulate(one.rate for one in streams.streams)]
    jobs: list[Job] = []
    at_s = chance.expovariate(rates[-1]) if rates[-1] else end_s
    while at_s < end_s:
        (stream,) = chance.choices(streams.streams, cum_weights=rates)
        jobs.append(_job(streams, stream, chance, number=len(jobs) + 1, at_ms=round(at_s * MS)))
        at_s += chance.expovariate(rates[-1])
    warm_s = min(WARM_UP_SHARE * end_s, WARM_UP_MAX_S)
    return Scene(tuple(one.place for one in streams.streams), tuple(jobs), streams.domains,
                 measured_from_ms=round(warm_s * MS), measured_to_ms=round(end_s * MS))  # fmt: skip


def _job(streams: Streams, stream: Stream, chance: Random, *, number: int, at_ms: int) -> Job:
    kinds = stream.shared if chance.random() < stream.portable else stream.own
    kind = chance.choice(kinds) if len(kinds) > 1 else kinds[0]
    at_hub = streams.at_hub and chance.random() < streams.at_hub
    takes_s = stream.lengths.draw(chance)
    expected_s = takes_s * chance.lognormvariate(0, GUESS_SIGMA) if streams.told else None
    return Job(number, at_ms, INBOX if at_hub else stream.place.name,
               max(round(takes_s * MS), 1), kind, draw_priority(chance), expected_s)  # fmt: skip


def alike(
    nodes: int, slots: int, *, load: float, portable: float, lengths: Lengths
) -> tuple[Stream, ...]:
    """The same stream to each of so many nodes alike."""
    return tuple(
        Stream(place, load, portable, lengths, (_SHARED,), (Kind(domain=f"own-{place.name}"),))
        for place in fleet_of(nodes, slots)
    )


def draw_backlog(backlog: Backlog, seed: int) -> Scene:
    """The scene of this seed: the first node has its share, the others what is left, evenly."""
    chance = Random(f"backlog {seed}")  # noqa: S311 - a simulation
    places = fleet_of(backlog.nodes, backlog.slots)
    first = round(backlog.tasks * backlog.share) if backlog.nodes > 1 else backlog.tasks
    jobs: list[Job] = []
    for number in range(backlog.tasks):
        others = places[1:]
        place = places[0] if number < first else others[(number - first) % len(others)]
        kind = _kind(place.name, portable=chance.random() < backlog.portable)
        takes_ms = max(round(backlog.lengths.draw(chance) * MS), 1)
        jobs.append(Job(number + 1, 0, place.name, takes_ms, kind, draw_priority(chance)))
    return Scene(places, tuple(jobs), domains_of(places))


def fleet_of(nodes: int, slots: int) -> tuple[Place, ...]:
    """So many nodes alike; each owns work of its own, and also takes what all may do."""
    names = NAMES
    if nodes > len(NAMES):
        names = tuple(f"node-{number:03d}" for number in range(1, nodes + 1))
    return tuple(
        Place(name, slots, Role((f"own-{name}",), (SHARED,))) for name in names[:nodes]
    )


def domains_of(places: tuple[Place, ...]) -> tuple[Domain, ...]:
    """The domains that these nodes own or also take."""
    names = dict.fromkeys(name for one in places for name in (*one.role.owns, *one.role.also))
    return tuple(map(Domain, names))


def _kind(place: str, *, portable: bool) -> Kind:
    return _SHARED if portable else Kind(domain=f"own-{place}")
