"""Looks for signs of life of what runs here, says who gives none, and ends those it may end."""

from __future__ import annotations

from collections.abc import Callable

from .clock import Clock, iso
from .commands import Beat, Command, Stalled
from .config import NodeSettings
from .log import log
from .runs import Run, Runs
from .store.sqlite import SqliteStore

LOOK_EVERY_S = 29.0  # a little less than the report's 30 s, so that each report brings a look
SILENT_LOOKS = 3
START_LOOKS = 2
STALLED = "it gave no sign of life for 90 s"
NOT_STARTED = "its program was not started within 60 s"


class Beating:
    """Counts looks, not seconds: while a machine sleeps nobody looks, so nobody has stalled."""

    def __init__(
        self,
        store: SqliteStore,
        runs: Runs,
        settings: NodeSettings,
        clock: Clock,
        stop: Callable[[Run, str], None],
    ) -> None:
        self._store, self._runs, self._clock, self._stop = store, runs, clock, stop
        self._may_end = {agent.name for agent in settings.agents if agent.on_stall == "fail"}
        self._looked_at = clock.boottime()

    def turn(self) -> bool:
        """Look, if it is time; whether it changed what a person has to know."""
        if self._clock.boottime() - self._looked_at < LOOK_EVERY_S:
            return False
        self._looked_at = self._clock.boottime()
        before = dict(self._store.live.stalled)
        heard = [run for run in self._runs if run.has_beaten()]
        beats: list[Command[object]] = [Beat(run.uid, run.n) for run in heard]
        if beats:
            self._store.together(beats)
        for run in self._runs:
            self._look_at(run, by_shim=run in heard)
        return before != self._store.live.stalled

    def _look_at(self, run: Run, *, by_shim: bool) -> None:
        """Who has sent heartbeats of its own is to go on sending: then its shim proves little.

        Until it has ended: its validator promised none, and that one's shim beats for it.
        """
        beaten = self._store.live.beats.get(run.uid)
        number = 0 if beaten is None or beaten.n != run.n else beaten.number
        number, run.beats = number - run.beats, number
        promised = beaten is not None and beaten.own and run.judging is None
        alive = number > by_shim if promised else number > 0
        run.silent = 0 if alive else run.silent + 1
        if not run.started and run.judging is None:
            if run.silent >= START_LOOKS and run.stop_why is None:
                self._stop(run, NOT_STARTED)
        elif run.silent >= SILENT_LOOKS:
            self._stalled(run)
        elif self._store.live.stalled.pop(run.uid, None):
            log("attempt_beats_again", task=run.uid, attempt=run.n)

    def _stalled(self, run: Run) -> None:
        """Said at once and once; ended only where the node's owner wants that, by its shim."""
        if run.uid not in self._store.live.stalled:
            self._store.live.stalled[run.uid] = iso(self._clock.now())
            log("attempt_stalled", task=run.uid, attempt=run.n, because=STALLED)
            self._store.apply(Stalled(run.uid, run.n, STALLED))
        if run.agent in self._may_end and run.stop_why is None:
            run.stalled = True
            self._stop(run, STALLED)
