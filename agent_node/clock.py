"""Tells the time three ways: by the wall, since boot, and by which boot."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


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


def iso(moment: datetime) -> str:
    """Text of fixed width in UTC, so that texts sort as the moments do."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='milliseconds')[:23]}Z"


def parse_iso(text: str) -> datetime:
    """The moment that a zoned ISO 8601 text names; a naive one raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; end it with Z")
    return moment.astimezone(UTC)
