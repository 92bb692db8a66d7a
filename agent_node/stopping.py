"""Ends attempts that have to end: asks the shim first, and makes it end when asking did not do."""

from __future__ import annotations

import signal
from collections.abc import Callable

from .log import log
from .processes import Identity
from .runs import Run, Runs
from .wardens import Wardens


class Stopping:
    """Asking is for the shim, which ends the whole tree. A shim of another user hears a warden."""

    patience_s = 45.0  # beyond every grace that the shim itself has

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
            self._backstop(run, 0.0)

    def ask(self, run: Run) -> None:
        """Say it to its shim now, which may just have reported."""
        if not run.ask_to_stop():
            self._wardens.signal(run, signal.SIGTERM, signal.SIGCONT)

    def follow(self, run: Run) -> None:
        """Its shim is known from now on: what that has to end by itself ends with it at last."""
        if run.stop_why is not None:
            self._backstop(run, 0.0)
        if run.max_s is not None:
            self._backstop(run, run.max_s)

    def _backstop(self, run: Run, after_s: float) -> None:
        """A shim that its own program keeps from working must not keep the slot for ever."""
        seconds = after_s + 2 * self._grace_s + self.patience_s
        shim = run.shim
        self._later(seconds, lambda: self._kill_if_there(run, shim))

    def _kill_if_there(self, run: Run, shim: Identity | None) -> None:
        """A shim that came after the one that was meant, as a validator's does, is spared."""
        if self._runs.find(run.uid, run.n) is run and shim in (None, run.shim):
            log("shim_killed", task=run.uid, attempt=run.n, because="it did not end the attempt")
            if not run.kill_shim():
                self._wardens.signal(run, signal.SIGKILL)
