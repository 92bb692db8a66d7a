"""Puts a new program in the place of the old one, watches it, and goes back if it does not answer.

It runs as a process of its own, from the program that was there, and survives the daemon.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from . import daemon_log, program
from .apart import REPLACE
from .errors import BadInput, NodeError, is_of_the_disk
from .failpoints import failpoint
from .home import Home
from .log import log
from .starting import (
    LOOK_EVERY_S,
    daemon_pid,
    program_that_answers,
    start_command,
    start_daemon,
)
from .store.schema import VERSION
from .trial import TrialFailed, sweep, talk, try_out
from .upgrade_record import Upgrade, alone, read_record, write_record

PATIENCE_S = 20.0  # for the new daemon to answer, its database checked and its work adopted
STEADY_S = 1.0  # and to answer still
END_S = 5.0
LOCK_S = 2.0


class Daemon(NamedTuple):
    """The daemon that ran when the upgrade began; it keeps its pid when it replaces itself."""

    pid: int
    pidfd: int

    @property
    def is_gone(self) -> bool:
        """Whether that process has ended."""
        return bool(select.select([self.pidfd], [], [], 0)[0])


def main(home_root: str) -> int:
    """Carry out the recorded upgrade, if nobody else does; what came of it is in the record."""
    os.umask(0o077)
    home = Home(Path(home_root))
    until = time.monotonic() + LOCK_S
    while time.monotonic() < until:  # somebody may only be asking whether we run
        with alone(home) as nobody_else:
            if nobody_else:
                try:
                    return _carry_on(home)
                except OSError as error:  # the record stays `under_way`: who asks again goes on
                    log("upgrade_failed", because=str(error))
                    return 1
        select.select([], [], [], LOOK_EVERY_S)
    return 0


def _carry_on(home: Home) -> int:
    upgrade = read_record(home)
    if upgrade is None or upgrade.outcome != "under_way":
        return 0
    log("upgrade_began", version=upgrade.version, was=upgrade.was_version)
    sweep(home)
    ended = carry_out(home, upgrade)
    failpoint("upgrade.before_outcome")
    write_record(home, ended)
    log("upgrade_ended", because=f"{ended.outcome} {ended.because}".strip())
    if ended.outcome == "upgraded":
        new = program.path_of(home, ended.program)
        program.remove_old(home, frozenset({new, program.folder_of(home) / ended.was}))
    return 0 if ended.outcome == "upgraded" else 1


def carry_out(home: Home, upgrade: Upgrade) -> Upgrade:
    """Try, replace, watch; how it ended. Repeating it after a death at any step is safe."""
    new = program.path_of(home, upgrade.program)
    old = program.folder_of(home) / upgrade.was
    with _daemon_of(home) as daemon:
        if daemon is not None and not upgrade.dispatched:
            upgrade = replace(upgrade, dispatched=True)  # before it may end: who goes on starts one
            write_record(home, upgrade)
        try:
            if program.hash_of_file(new) != upgrade.program:
                raise TrialFailed(f"{new.name} was altered since it was written")
            try_out(home, new, upgrade, VERSION)
            program.point_link(home, new)
            why = _took_over(home, daemon, new, upgrade)
        except (OSError, NodeError) as error:
            why = str(error)
        if why is None:
            return upgrade.ended("upgraded")
        log("upgrade_goes_back", because=why)
        was_lost = daemon is None and upgrade.dispatched
        if program.current(home) != new and not was_lost:
            return upgrade.ended("failed", why)
        return _back(home, daemon, old, upgrade, why)


def _took_over(home: Home, daemon: Daemon | None, new: Path, upgrade: Upgrade) -> str | None:
    """None: the new program works here now. Else why it does not."""
    if daemon is None:
        return _works_alone(home, new, upgrade)
    wanted, said = program.id_in(new), daemon_log.size_of(daemon_log.path_of(home))
    if program_that_answers(home) != wanted:
        _signal(daemon, REPLACE)
    failpoint("upgrade.after_signal")
    until, steady = time.monotonic() + PATIENCE_S, 0.0
    while time.monotonic() < until:
        if program_that_answers(home) != wanted:
            steady = 0.0
        elif not steady:
            steady = time.monotonic()
        elif time.monotonic() - steady >= STEADY_S:
            return None
        if daemon.is_gone and daemon_pid(home) is None and not steady:
            last = daemon_log.last_words(daemon_log.path_of(home), said)
            return f"the daemon ended instead of starting anew: {last or 'see its log'}"
        select.select([], [], [], LOOK_EVERY_S)
    return f"no daemon of {upgrade.version} answered for good within {PATIENCE_S:g} s"


def _works_alone(home: Home, new: Path, upgrade: Upgrade) -> str | None:
    """Without a daemon it answers requests one by one; it does so here, on the real queue. Where
    one ran when the upgrade began, and was lost over it, it is started.
    """
    try:
        greeting, _ = talk(new, home)
        said = greeting.text("agent-node", 32)
    except (BadInput, TrialFailed) as error:
        return str(error)
    if said != upgrade.version:
        return f"it greets as {said}"
    if upgrade.dispatched:
        start_daemon(home, start_command(home), os.environ, patience_s=PATIENCE_S)
    return None


def _back(
    home: Home, daemon: Daemon | None, old: Path, upgrade: Upgrade, why: str
) -> Upgrade:  # fmt: skip
    """The old program again, and its daemon where there was one. A disk that fails over it decides
    nothing: who asks again goes on.
    """
    try:
        program.point_link(home, old)
        failpoint("upgrade.after_back")
        if daemon is not None:
            _end(daemon)
            failpoint("upgrade.after_end")
        if upgrade.dispatched:
            start_daemon(home, start_command(home), os.environ, patience_s=PATIENCE_S)
        else:
            talk(old, home)
    except (OSError, NodeError) as error:
        if is_of_the_disk(error):
            raise
        more = "; its database may be newer: backups/ has the one from before"
        return upgrade.ended("stuck", f"{why}; and the old program: {error}"
                             + (more if upgrade.one_way else ""))  # fmt: skip
    return upgrade.ended("went_back", why)


def _end(daemon: Daemon) -> None:
    """TERM twice, so that it waits for nothing, then KILL: running tasks belong to their shims."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        _signal(daemon, number)
        if select.select([daemon.pidfd], [], [], END_S / 2)[0]:
            return


def _signal(daemon: Daemon, number: int) -> None:
    """Send it to exactly this process; one that is gone needs none."""
    if not daemon.is_gone:
        signal.pidfd_send_signal(daemon.pidfd, number)


@contextmanager
def _daemon_of(home: Home) -> Iterator[Daemon | None]:
    """The daemon that listens here, held so that its pid can mean no other; None: none runs."""
    pid = daemon_pid(home)
    try:
        pidfd = None if pid is None else os.pidfd_open(pid)
    except ProcessLookupError:
        pidfd = None
    try:
        yield None if pid is None or pidfd is None else Daemon(pid, pidfd)
    finally:
        if pidfd is not None:
            os.close(pidfd)
