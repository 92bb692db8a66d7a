"""Knows how much time went by as far as this machine can tell, whatever its wall clock says."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .clock import Clock
from .plain_files import open_plain
from .store.generation import SLOT, summed

DAY_S = 86_400.0
# So far the wall may go beyond what is known to have gone by: a machine that is off counts nothing.
BEYOND_S = 7 * DAY_S
KEEP_S = 30 * DAY_S  # what ended before a doubt began is kept for as long anyway
PLACE = 3 * SLOT  # in the generation file, behind where the home lay


class Mark(NamedTuple):
    """How late it was at some moment, as far as was known then."""

    wall_s: float  # since 1970; while the clock is doubtful, what it would show by our count
    since_boot_s: float
    boot_id: str
    doubt_s: float = 0.0  # that have still to go by before the wall is believed again; 0: it is


class Passing:
    """The wall of one machine, held against the seconds since its boot.

    Over a reboot these are a lower bound: nobody knows how long the machine was off. So the wall
    may run ahead of them by a week; beyond that it is doubtful until it is put right, or until as
    much time has surely gone by as what had ended by then is kept for.
    """

    def __init__(self, generation: Path, clock: Clock) -> None:
        self._path, self._clock = generation, clock
        self._mark: Mark | None = None

    def look(self) -> str:
        """Why nothing may be let go of by its age now; empty: it may. Remembered over a start."""
        mark = moved_on(self._mark or read_mark(self._path), self._clock)
        if mark != self._mark:
            self._mark = mark
            with suppress(OSError):  # it is known here; the next look writes it again
                _write_mark(self._path, mark)
        return doubt_of(mark, self._clock)


def moved_on(mark: Mark | None, clock: Clock) -> Mark:
    """What is known by now. Who knows of no earlier moment has to believe the wall."""
    wall, boot = clock.now().timestamp(), clock.boot_id()
    here = Mark(wall, clock.boottime(), boot)
    if mark is None:
        return here
    same = boot == mark.boot_id
    went = max(here.since_boot_s - (mark.since_boot_s if same else 0.0), 0.0)
    counted = mark.wall_s + went
    if wall - counted <= BEYOND_S:
        # A machine without a battery begins each boot long ago: it is at least as late as before.
        return here if same else here._replace(wall_s=max(wall, counted))
    left = mark.doubt_s - went if mark.doubt_s else KEEP_S
    return here._replace(wall_s=counted, doubt_s=left) if left > 0 else here


def doubt_of(mark: Mark, clock: Clock) -> str:
    """Why the wall clock is not believed, in words that stay the same while it is not."""
    if not mark.doubt_s:
        return ""
    went = clock.boottime() - mark.since_boot_s if clock.boot_id() == mark.boot_id else 0.0
    days = (clock.now().timestamp() - mark.wall_s - went) / DAY_S
    return (f"the wall clock went {days:.0f} days further than this machine was running for:"
            " it was set, or the machine was off; nothing is let go of by its age until it is"
            f" put right, or until {KEEP_S / DAY_S:.0f} days have surely gone by")  # fmt: skip


def read_mark(path: Path) -> Mark | None:
    """What was written last; None: nothing was, or it is torn."""
    try:
        fd = open_plain(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        words = os.pread(fd, SLOT, PLACE).decode("ascii", "replace").split()
    finally:
        os.close(fd)
    if len(words) != len("wall W since S boot B doubt D sum C".split()):
        return None
    try:
        mark = Mark(float(words[1]), float(words[3]), words[5], float(words[7]))
    except ValueError:
        return None
    return mark if _said(mark).split() == words else None


def _write_mark(path: Path, mark: Mark) -> None:
    """Only into a file that is there: whose home has none is looked at before anything runs."""
    fd = open_plain(path, os.O_WRONLY)
    try:
        os.pwrite(fd, _said(mark).encode().ljust(SLOT - 1) + b"\n", PLACE)
    finally:
        os.close(fd)


def _said(mark: Mark) -> str:
    return summed(f"wall {mark.wall_s:.3f} since {mark.since_boot_s:.3f} boot {mark.boot_id}"
                   f" doubt {mark.doubt_s:.3f}")  # fmt: skip
