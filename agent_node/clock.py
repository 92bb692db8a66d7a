"""Tells the time three ways: by the wall, since boot, and by which boot."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

PUT_BACK = timedelta(minutes=1)  # less than that is a clock that is being set right a little


class Clock(Protocol):
    """What the node asks of time; tests give one that they move by hand."""

    def now(self) -> datetime:
        """Wall time, aware and in UTC: for people and for stamps, never for a safety decision."""

    def boottime(self) -> float:
        """Seconds since boot, sleep included: what leases count by."""

    def boot_id(self) -> str:
        """The name of this boot; another name means that nothing of before still runs."""


class SystemClock:
    """The machine's own clocks."""

    def __init__(self) -> None:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            self._boot_id = file.read().strip()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def boot_id(self) -> str:
        return self._boot_id


class WallWatch:
    """Notices when the wall clock was put back; what goes by its times has to be looked at then."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._latest = clock, clock.now()

    def went_back(self) -> bool:
        """Whether it stands more than a minute before a time that it showed; said once each."""
        now, latest = self._clock.now(), self._latest
        self._latest = now if (back := latest - now > PUT_BACK) else max(now, latest)
        return back


def iso(moment: datetime) -> str:
    """Text of fixed width in UTC, so that texts sort as the moments do."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='milliseconds')[:23]}Z"


def parse_iso(text: str) -> datetime:
    """The moment that a zoned ISO 8601 text names; a naive one raises ValueError, and so does one
    that is in UTC before the first year or after the last.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text[:80]!r} is no time") from error
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; end it with Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} lies beyond the years 1 to 9999 in UTC") from error
