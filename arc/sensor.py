"""Says what every sensor is given and what it hands back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from agent_node.strict import JsonObject

if TYPE_CHECKING:
    from .hub import Hub


@dataclass(frozen=True, slots=True)
class Decided:
    """Why tasks stay where they are: so many of one node by one rule, or one task by its uid."""

    node: str
    rule: str
    count: int = 1
    because: str = ""
    uid: str = ""  # empty: the line counts, and names no task


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one move that was begun, with both ends as they were then."""

    xfer: str
    uid: str
    busy: str
    idle: str
    outcome: str  # moved | kept | in_doubt | settled
    why: str = "stolen"
    priority: int | None = None
    rule: str = ""
    because: str = ""
    busy_incarnation: str = ""
    idle_incarnation: str = ""


@dataclass(frozen=True)
class SensorReport:
    """One run of a sensor, as the journal keeps it and `arc sensors` shows it."""

    sensor: str
    outcome: str  # done | skipped | could_not_look | failed
    summary: str  # one line for people
    looked: int = 0  # nodes that answered
    unseen: int = 0  # nodes that were asked and did not
    decided: int = 0  # moves planned, alerts judged
    acted: int = 0  # moves made, alerts told
    requests: int = 0  # sent over links
    took_s: float = 0.0
    skipped: str | None = None
    details: JsonObject = field(default_factory=dict)  # what `show RUN` prints
    code: str = ""  # of the error that ended it; `arc explain` knows it
    decisions: tuple[Decided, ...] = ()
    moves: tuple[Moved, ...] = ()
    cut: int = 0  # decisions that were made and are not listed

    @property
    def exit_code(self) -> int:
        """What a command that ran it by hand ends with: 1 failed, 3 something was not seen."""
        if self.outcome == "failed":
            return 1
        return 3 if self.unseen or self.outcome == "could_not_look" else 0


EVERY_SENSORS = ("status", "run")  # words that a sensor of another package need not answer itself


class Sensor(Protocol):
    """Scheduled hub work: look, decide, act, and a report of all three.

    `verbs` are what `arc skills run --name NAME -- VERB` offers: word → one sentence. Every sensor
    has `status`, its last run, and `run`; whoever declares others is `Answering`, too.
    """

    name: str
    every_s: float
    verbs: Mapping[str, str]

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        """One cycle. What it raises ends this run only."""


QUIET_S = 300.0  # of a quiet sensor, a run that found nothing is written down so often


def is_quiet(sensor: Sensor) -> bool:
    """Whether it looks so often that a run which found nothing is seldom worth a line."""
    return bool(getattr(sensor, "quiet", False))


def gives_away(sensor: Sensor) -> bool:
    """Whether a run may give work to a node, of which a limit could speak; one that does not say
    so may.
    """
    return bool(getattr(sensor, "gives_away", True))


@runtime_checkable
class Wakeful(Protocol):
    """A sensor that can also be run for a few nodes at once, when they say that they have news."""

    async def run_woken(self, hub: Hub, now: datetime, woken: frozenset[str]) -> SensorReport:
        """One cycle for these nodes' sake; the others stand as they were seen last."""


@runtime_checkable
class Answering(Protocol):
    """A sensor of another package that declares words beside `status` and `run`."""

    async def answer(self, hub: Hub, verb: str, words: Sequence[str]) -> str:
        """What whoever typed this verb, and these words after it, is shown.

        What it raises ends this command only.
        """


def skipped(sensor: str, why: str) -> SensorReport:
    """A run that did nothing, and why."""
    return SensorReport(sensor, "skipped", f"skipped: {why}", skipped=why)
