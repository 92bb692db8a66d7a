"""Replaces fleet-status.json in one step, seldom enough to be cheap and soon enough to be true."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress

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
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def write_report(home: Home, report: JsonObject) -> None:
    """The new report is there whole and stays through a power cut, or the old one stands."""
    content = (json.dumps(report, ensure_ascii=False, indent=1) + "\n").encode()
    folder = os.open(home.root, _FOLDER)
    try:
        _replace(folder, home.status.name, content)
        failpoint("report.before_folder_sync")
        os.fsync(folder)
    finally:
        os.close(folder)


def _replace(folder: int, name: str, content: bytes) -> None:
    """A random name that must be new, so that no link laid out before is ever followed."""
    fresh = f"{STRAY}{os.urandom(8).hex()}"
    descriptor = os.open(fresh, _NEW, 0o600, dir_fd=folder)
    try:
        try:
            _write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        failpoint("report.before_rename")
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(fresh, dir_fd=folder)
        raise


def report_or_withdraw(home: Home, report: JsonObject) -> None:
    """The new report is there; or none, where the disk takes none: no report is no idle node."""
    try:
        write_report(home, report)
    except OSError as error:
        log("report_unwritten", because=error.strerror)
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


class Reporter:
    """Keeps the file true while a daemon lives.

    At most one write a second, at least one in thirty, and none is waited for but the one that
    takes `idle` back. `build` reads what is committed, so the file is never ahead of it.
    """

    def __init__(self, home: Home, clock: Clock, build: Callable[[], JsonObject]) -> None:
        self._home, self._clock, self._build = home, clock, build
        self._says_idle = True  # for all we know: an earlier daemon may have left it so
        self._changed = True
        self._tried_at = clock.boottime() - EVERY_S
        self.trouble: str | None = None
        """Why the last write failed; None when it did not."""
        sweep_strays(home)

    def changed(self) -> None:
        """Something in the report may be different; what takes `idle` back is written at once."""
        self._changed = True
        if self._says_idle:
            report = self._build()
            if report["idle"] is not True:
                self._write(report)

    def wait_s(self) -> float:
        """Seconds until `turn` has something to do; zero: now."""
        pause = SPACING_S if self._changed else EVERY_S
        return max(self._tried_at + pause - self._clock.boottime(), 0.0)

    def turn(self) -> bool:
        """Write when it is time to; whether it was."""
        if self.wait_s() > 0:
            return False
        self.write_now()
        return True

    def write_now(self) -> None:
        """Write whatever the time: the first report of a daemon, and its last."""
        self._write(self._build())

    def _write(self, report: JsonObject) -> None:
        """A full disk ends no daemon: it is said once, and tried again a second later."""
        self._tried_at = self._clock.boottime()
        self._changed = False
        try:
            write_report(self._home, report)
        except OSError as error:
            self._failed(error)
        else:
            self._says_idle, self.trouble = report["idle"] is True, None

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
