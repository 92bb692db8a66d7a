"""Ends attempts that have to end: asks the shim first, and makes it end when asking did not do."""

from __future__ import annotations

import signal
from collections.abc import Callable

from .log import log
from .processes import Identity
from .runs import Run, Runs
from .wardens import Wardens

_BACKSTOP_S = 45.0  # beyond every grace that the shim itself has


class Stopping:
    """Asking is for the shim, which ends the whole tree. A shim of another user hears a warden."""

    def __init__(
        self,
        runs: Runs,
        wardens: Wardens,
        later: Callable[[float, Callable[[], None]], None],
        grace_s: float,
    ) -> None:
        self._runs, self._wardens, self._later, self._grace_s = runs, wardens, later, grace_s

    def stop(self, run: Run, why: str, *, requeue: bool) -> None:
        """Ask the attempt to end; asked twice it is asked once."""
        if run.stop_why is None:
            run.stop_why, run.requeue = why, requeue
            self.ask(run)
            self.backstop(run)

    def ask(self, run: Run) -> None:
        """Say it to its shim now, which may just have reported."""
        if not run.ask_to_stop():
            self._wardens.signal(run, signal.SIGTERM, signal.SIGCONT)

    def backstop(self, run: Run, after_s: float | None = None) -> None:
        """A shim that its own program keeps from working must not keep the slot for ever."""
        grace_s = self._grace_s if after_s is None else after_s
        seconds = grace_s + self._grace_s + _BACKSTOP_S
        shim = run.shim
        self._later(seconds, lambda: self._kill_if_there(run, shim))

    def _kill_if_there(self, run: Run, shim: Identity | None) -> None:
        """A shim that came after the one that was meant, as a validator's does, is spared."""
        if self._runs.find(run.uid, run.n) is run and shim in (None, run.shim):
            log("shim_killed", task=run.uid, attempt=run.n, because="it did not end the attempt")
            if not run.kill_shim():
                self._wardens.signal(run, signal.SIGKILL)
