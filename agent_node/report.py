"""Replaces fleet-status.json in one step, seldom enough to be cheap and soon enough to be true."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from .attempts import EvidenceUnreadable, read_untrusted
from .clock import Clock
from .errors import BadInput
from .failpoints import failpoint
from .home import Home
from .log import log
from .strict import JsonObject, decode_object

SPACING_S = 1.0  # changes in between are gathered into one write
EVERY_S = 30.0
_REPORT_MAX = 8 * 1024 * 1024
STRAY = ".fleet-status.json."
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_REPORT = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def write_report(home: Home, report: JsonObject) -> None:
    """The new report is there whole and stays through a power cut, or the old one stands."""
    folder = os.open(home.root, _FOLDER)
    try:
        fresh = _lay_down(folder, report)
        try:
            failpoint("report.before_rename")
            os.rename(fresh, home.status.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(fresh, dir_fd=folder)
            raise
        failpoint("report.before_folder_sync")
        os.fsync(folder)
    finally:
        os.close(folder)


def _lay_down(folder: int, report: JsonObject) -> str:
    """The name of a synced file, random and new: no link laid out before is ever followed."""
    content = (json.dumps(report, ensure_ascii=False, indent=1) + "\n").encode()
    fresh = f"{STRAY}{os.urandom(8).hex()}"
    descriptor = os.open(fresh, _NEW, 0o600, dir_fd=folder)
    try:
        try:
            _write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        os.unlink(fresh, dir_fd=folder)
        raise
    return fresh


def report_or_withdraw(home: Home, report: JsonObject) -> None:
    """The new report is there; or none, where the disk takes none: no report is no idle node."""
    try:
        write_report(home, report)
    except OSError as error:
        log("report_unwritten", because=error.strerror)
        withdraw(home)


def withdraw(home: Home) -> None:
    """No report stands there any more, as far as the disk lets it be taken away."""
    with suppress(OSError):
        home.status.unlink(missing_ok=True)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def says_stopped(home: Home) -> bool:
    """Whether the report tells that no dispatcher runs; a killed daemon leaves another one."""
    try:
        raw = read_untrusted(str(home.status), _REPORT_MAX)
        return raw is not None and decode_object(raw).get("dispatcher") == "stopped"
    except (BadInput, EvidenceUnreadable):
        return False


def sweep_strays(home: Home) -> int:
    """Take away what writers that were killed left behind; only the lock's holder may."""
    strays = [name for name in os.listdir(home.root) if name.startswith(STRAY)]
    for name in strays:
        os.unlink(home.root / name)
    return len(strays)


class _Denial(NamedTuple):
    """A synced file that only has to be renamed over the idle report it was made for.

    `denied` holds that report open: otherwise the rename would also free its blocks, and on ext4
    wait a millisecond or two for that (34 us against 300-1900).
    """

    path: str
    denies: str
    denied: int


def _deny(home: Home, report: JsonObject) -> _Denial:
    denied = os.open(home.status, _REPORT)
    try:
        folder = os.open(home.root, _FOLDER)
        try:
            failpoint("report.before_denial")
            name = _lay_down(folder, {**report, "idle": False, "idle_since": None})
        finally:
            os.close(folder)
    except BaseException:
        os.close(denied)
        raise
    return _Denial(str(home.root / name), str(home.status), denied)


class Reporter:
    """Keeps the file true while a daemon lives.

    At most one full write a second, at least one in thirty, and none is waited for. What takes
    `idle` back is one rename: beside a report that says idle its own denial lies ready, the same
    words with `idle` false. `build` reads what is committed, so the file is never ahead of it.
    """

    def __init__(self, home: Home, clock: Clock, build: Callable[[], JsonObject]) -> None:
        self._home, self._clock, self._build = home, clock, build
        self._says_idle = True  # for all we know: an earlier daemon may have left it so
        self._changed = True
        self._tried_at = clock.boottime() - EVERY_S
        self._undenied: JsonObject | None = None  # an idle report whose denial is still to be made
        self._denial: _Denial | None = None
        self.trouble: str | None = None
        """Why the last write failed; None when it did not."""
        sweep_strays(home)

    def changed(self) -> None:
        """Something in the report may be different; what takes `idle` back is done at once."""
        self._changed = True
        if self._says_idle and self._build()["idle"] is not True:
            self.deny_idle()

    @property
    def says_idle(self) -> bool:
        """Whether the file says, or may say, that this node is idle."""
        return self._says_idle

    def deny_idle(self) -> None:
        """Work begins: nobody reads `idle` from here on; what else is new follows in a second."""
        self._changed = True
        if self._says_idle and not self._denied():
            self.write_now()

    def wait_s(self) -> float:
        """Seconds until `turn` has something to do; zero: now."""
        return 0.0 if self._undenied is not None else self._due_s()

    def _due_s(self) -> float:
        pause = SPACING_S if self._changed else EVERY_S
        return max(self._tried_at + pause - self._clock.boottime(), 0.0)

    def turn(self) -> bool:
        """Write when it is time to; whether it was. The turn after, its denial is made ready."""
        if self._due_s() > 0:
            self._make_denial()
            return False
        self.write_now()
        return True

    def write_now(self) -> None:
        """Write whatever the time: the first report of a daemon, and its last."""
        report = self._build()
        self._tried_at = self._clock.boottime()
        self._changed = False
        try:
            self._forget_denial()
            write_report(self._home, report)
        except OSError as error:
            self._failed(error)
        else:
            self._says_idle, self.trouble = report["idle"] is True, None
            self._undenied = report if self._says_idle else None

    def _make_denial(self) -> None:
        """Synced now, so that nothing has to be when work comes; without it that takes longer."""
        report, self._undenied = self._undenied, None
        if report is None:
            return
        try:
            self._denial = _deny(self._home, report)
        except OSError as error:
            log("denial_unwritten", because=error.strerror)

    def _denied(self) -> bool:
        """Whether the denial stands in the report's place. Its folder is synced with the next
        report: an `idle` that a power cut brings back is as old as one of a node that died idle.
        """
        if self._denial is None:
            return False
        try:
            failpoint("report.before_deny")
            os.rename(self._denial.path, self._denial.denies)
        except OSError as error:
            log("denial_lost", because=error.strerror)
            return False
        self._says_idle, self._tried_at = False, self._clock.boottime()
        return True

    def _forget_denial(self) -> None:
        """It belongs to one report only: what it says besides would be older than the next."""
        denial, self._denial, self._undenied = self._denial, None, None
        if denial is not None:
            os.close(denial.denied)
            with suppress(FileNotFoundError):  # it took the report's place
                os.unlink(denial.path)

    def _failed(self, error: OSError) -> None:
        """A file that says idle and cannot be corrected goes: no report is not an idle node."""
        self._changed = True
        if self.trouble is None:
            log("report_unwritten", because=error.strerror)
        self.trouble = error.strerror or str(error)
        if self._says_idle:
            with suppress(OSError):
                self._home.status.unlink(missing_ok=True)
                self._says_idle = False
