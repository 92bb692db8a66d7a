"""Makes the report of how the node stands, and tells the same again where nothing can differ."""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol

from . import __version__
from .clock import Clock, iso
from .config import NodeSettings
from .home import Home
from .queries import Doubts, Facts, NodeFacts
from .stand_in import with_fault
from .status import build_report
from .store import Store
from .strict import JsonObject

SAME_S = 0.02  # who has heard news asks within a millisecond; a beat in memory may come meanwhile


class Host(Protocol):
    """What a report says of the process that makes it, and of its disk."""

    @property
    def dispatching(self) -> bool:
        """Whether work that becomes READY here is also started here."""

    def disk_free(self) -> int:
        """Bytes that are free where the home lies."""


class Stamp(NamedTuple):
    """What has to be as it was for a report to be told again."""

    applied: int  # how often anything was to be changed in the queue
    dispatching: bool
    disk_free: int


class Look(NamedTuple):
    """A report, what it was made of, and until when it may be told again (seconds since boot)."""

    facts: NodeFacts
    report: JsonObject
    stamp: Stamp
    until: float


class Looks:
    """The latest look is kept for a moment: news of it bring the question for it."""

    def __init__(
        self, store: Store, home: Home, settings: NodeSettings, clock: Clock, host: Host,
        fault: str,
    ) -> None:  # fmt: skip
        self._store, self._home, self._settings = store, home, settings
        self._clock, self._host, self._fault = clock, host, fault
        self._last: Look | None = None

    def now(self) -> Look:
        """As it is at this moment."""
        stamp = self._stamp()
        facts, doubts = self._store.read_all((Facts(), Doubts()))
        report = build_report(
            facts,
            doubts,
            settings=self._settings,
            now=self._clock.now(),
            disk_free=stamp.disk_free,
            disk_total=total_bytes(self._home),
            dispatching=stamp.dispatching,
            version=__version__,
        )
        if self._fault:
            report = with_fault(report, self._fault)
        self._last = Look(facts, report, stamp, self._clock.boottime() + SAME_S)
        return self._last

    def again(self) -> JsonObject:
        """The report as it is, told once more where it was made a moment ago and still holds."""
        last = self._last
        if last is None or self._clock.boottime() > last.until or last.stamp != self._stamp():
            return self.now().report
        return {**last.report, "written_at": iso(self._clock.now())}

    def _stamp(self) -> Stamp:
        return Stamp(self._store.applied, self._host.dispatching, self._host.disk_free())


def total_bytes(home: Home) -> int:
    """How large the file system is where the home lies."""
    found = os.statvfs(home.root)
    return found.f_blocks * found.f_frsize
