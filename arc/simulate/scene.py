"""Holds what a simulation is about: a fleet, and every task that will come to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from arc.decisions.domains import Domain, Role

INBOX = "inbox"  # the hub's own queue
ORIGIN = datetime(2026, 1, 5, tzinfo=UTC)  # where the clock stands when nobody says; a Monday
MS = 1000  # a second; the simulated clock counts whole milliseconds, so that sums are exact


@dataclass(frozen=True, slots=True)
class Kind:
    """What the rules look at in a task beside its priority; many tasks share one."""

    domain: str | None = None
    skills: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    pinned: bool = False
    subject: str = "simulated"


@dataclass(frozen=True, slots=True)
class Job:
    """A task that will come: when, where, and how long it will run, which no planner knows."""

    number: int  # unique in its scene; decides nothing but draws
    at_ms: int
    home: str  # the node where it is added, or `INBOX`
    takes_ms: int
    kind: Kind
    priority: int = 5
    expected_s: float | None = None  # what it says of itself; None: nothing
    name: str = ""  # what it is called elsewhere: a line of a trace, a uid

    @property
    def uid(self) -> str:
        """Its id in the simulated queues."""
        return f"01S{self.number:023d}"


@dataclass(frozen=True, slots=True)
class Away:
    """A stretch in which a node starts nothing and is given nothing; what runs there goes on."""

    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Place:
    """A simulated node: as many tasks at once as it has slots, by one agent."""

    name: str
    slots: int = 1
    role: Role = field(default_factory=Role)
    skills: tuple[str, ...] = ()  # of its agent; what tasks may need
    away: tuple[Away, ...] = ()


@dataclass(frozen=True)
class Scene:
    """A fleet and its work. `jobs` stand in the order in which they come.

    Measured is what comes, and how the nodes' time goes by, from `measured_from_ms` on, up to
    `measured_to_ms`; 0: until the last task has ended.
    """

    places: tuple[Place, ...]
    jobs: tuple[Job, ...]
    domains: tuple[Domain, ...] = ()
    origin: datetime = ORIGIN
    measured_from_ms: int = 0
    measured_to_ms: int = 0

    @property
    def slots(self) -> int:
        """Of all nodes together."""
        return sum(place.slots for place in self.places)
