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
# So far the wall may go beyond what is known to have gone by: a machine that is off counts nothing,
# one that runs counts every second, and only drifts.
BEYOND_S = 7 * DAY_S
DRIFT_S = DAY_S
KEEP_S = 30 * DAY_S  # what ended before a doubt began is kept for as long anyway
PLACE = 3 * SLOT  # in the generation file, behind where the home lay


class Mark(NamedTuple):
    """How late it was at some moment, as far as was known then."""

    wall_s: float  # since 1970; while the clock is doubtful, what it would show by our count
    since_boot_s: float
    boot_id: str
    doubt_s: float = 0.0  # that have still to go by before the wall is believed again; 0: it is
    behind_s: float = 0.0  # the same of a wall that was put back; 0: it was not
    beyond_s: float = DRIFT_S  # that the wall may still go beyond our count in this boot


class Passing:
    """The wall of one machine, held against the seconds since its boot.

    Over a reboot these are a lower bound: nobody knows how long the machine was off. So the wall
    may run ahead of them by a week, once in each boot, and else by a day in all; beyond that it is
    doubtful until it is put right, or until as much time has surely gone by as what had ended by
    then is kept for. A wall that was put back is not followed for as long, so that it may return.
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
    kept = here._replace(wall_s=mark.wall_s + went, beyond_s=mark.beyond_s if same else BEYOND_S)
    ahead = wall - kept.wall_s
    if ahead > kept.beyond_s:
        left = mark.doubt_s - went if mark.doubt_s else KEEP_S
        return kept._replace(doubt_s=left) if left > 0 else here
    if ahead < -DRIFT_S:
        # A machine without a battery begins each boot long ago: it is at least as late as before.
        left = mark.behind_s - went if mark.behind_s else KEEP_S
        return kept._replace(behind_s=left) if left > 0 else here
    return _agreed(kept, max(ahead, 0.0))


def _agreed(kept: Mark, ahead: float) -> Mark:
    """As late as the wall shows, if that is later. What it went beyond our count is used up, and by
    more than a drift, which is the time that the machine was off, so is the week of this boot.
    """
    left = kept.beyond_s - ahead
    return kept._replace(wall_s=kept.wall_s + ahead,
                         beyond_s=min(left, DRIFT_S) if ahead > DRIFT_S else left)  # fmt: skip


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
    if len(words) != len("wall W since S boot B doubt D behind P beyond L sum C".split()):
        return None
    try:
        wall, since, *left = (float(words[at]) for at in (1, 3, 7, 9, 11))
    except ValueError:
        return None
    mark = Mark(wall, since, words[5], *left)
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
                   f" doubt {mark.doubt_s:.3f} behind {mark.behind_s:.3f}"
                   f" beyond {mark.beyond_s:.3f}")  # fmt: skip
