"""Looks at a node's wall clock from outside: by its files, and by what its daemon counted."""

from __future__ import annotations

from datetime import datetime

from .checks import Check
from .clock import Clock
from .home import Home
from .passing import doubt_of, moved_on, read_mark

CLOCK_SLACK_S = 60


def check_clock(home: Home, now: datetime, clock: Clock) -> Check:
    """A wall clock behind our own files was set back; stamps would lie, leases do not use it. One
    that ran ahead of the machine itself makes nothing old.
    """
    stamps = [path.stat().st_mtime for path in (home.config, home.database) if path.exists()]
    ahead = max(stamps, default=0) - now.timestamp()
    if ahead > CLOCK_SLACK_S:
        text = f"the wall clock is {ahead:.0f}s behind files of this home"
        return Check("clock", "finding", text, "set the clock: timedatectl set-ntp true")
    mark = read_mark(home.generation)
    doubt = doubt_of(moved_on(mark, clock), clock) if mark is not None else ""
    if doubt:
        return Check("clock", "note", doubt, "date; where it is wrong: timedatectl set-ntp true")
    return Check("clock", "ok", f"{now:%Y-%m-%d %H:%M:%S} UTC, not behind the files here")
