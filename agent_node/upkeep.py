"""Does what a queue needs now and then: late starts, the generation, a spare folder, removals."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from . import daemon_log
from .artifact_words import ArtifactsNeeded
from .artifacts import shelf_of
from .commands import Forget, Raise
from .dispatch import Dispatcher
from .home import Home
from .log import log
from .passing import Passing
from .store.sqlite import SqliteStore
from .timers import Timers

STARTS_WAIT_S = 0.05  # a start is written down with the next end, or after this long
RAISE_WAIT_S = 1.0
# Whoever was answered is woken on this very processor, and waits for it while we look around.
LOOK_WAIT_S = 0.02
SPARE_WAIT_S = 0.05  # without a change: what follows an end has the processor first
FORGET_EVERY_S, FORGET_AT_ONCE = 3600.0, 1000
SHORTEN_EVERY_S = 60.0


class Upkeep:
    """Sets its own timers; each is set again before its work, so that a full disk ends none."""

    def __init__(
        self, store: SqliteStore, dispatcher: Dispatcher, timers: Timers, home: Home,
        came: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """`came` tells whether something came that nobody has looked at yet."""
        self._store, self._dispatcher, self._timers = store, dispatcher, timers
        self._home, self._shelf = home, shelf_of(home.root)
        self._flushing = self._raising = self._looking = self._sparing = self._still = False
        self._came = came
        self._told = set[str]()  # tasks whose folders were said to stay
        self._passing = Passing(home.generation, timers.clock)

    def begin(self) -> None:
        """The rounds start from now."""
        self._timers.later(FORGET_EVERY_S, self._forget_hourly)
        self._doubts_clock()
        self._shorten_now_and_then()

    def after_changes(self) -> None:
        """See to it that what was put off is written soon, and that a spare folder lies ready."""
        if self._dispatcher.owes_starts and not self._flushing:
            self._flushing = True
            self._timers.later(STARTS_WAIT_S, self._flush)
        if self._store.unraised and not self._raising:
            self._raising = True
            self._timers.later(RAISE_WAIT_S, self._raise)
        self._still = False
        self._spare_soon()

    def look_soon(self, look: Callable[[], None]) -> None:
        """For what nobody waits for; whatever else comes before that is looked at with it."""
        if not self._looking:
            self._looking = True
            self._timers.later(LOOK_WAIT_S, lambda: self._look(look))

    def _look(self, look: Callable[[], None]) -> None:
        self._looking = False
        look()

    def _spare_soon(self) -> None:
        """Once nothing has changed for a moment; a node that has its spare sets no timer."""
        if self._lacks_spare() and not self._sparing:
            self._sparing = self._still = True
            self._timers.later(SPARE_WAIT_S, self._spare)

    def _lacks_spare(self) -> bool:
        return not self._dispatcher.runs and not self._dispatcher.folders.has_spare

    def _spare(self) -> None:
        """Never on the way of work: neither where something runs nor where it may be about to."""
        self._sparing = False
        if not self._still or self._came():
            self._spare_soon()
        elif self._lacks_spare():
            self._dispatcher.folders.make_spare()

    def _flush(self) -> None:
        self._flushing = False
        self._dispatcher.flush_started()

    def _raise(self) -> None:
        self._raising = False
        if self._store.unraised:
            self._store.apply(Raise())

    def _forget_hourly(self) -> None:
        self._timers.later(FORGET_EVERY_S, self._forget_hourly)
        if self._doubts_clock():
            return
        self._store.live.stuck = {}  # by now somebody may have seen to them
        self._forget()
        with suppress(OSError):  # what cannot go now can go in an hour
            self._shelf.forget(lambda old: self._store.read(ArtifactsNeeded(tuple(old))))

    def _doubts_clock(self) -> bool:
        """Whether nothing may be let go of by its age now: a clock that is wrong for an hour must
        not cost what ended today. Told once each time.
        """
        because, was = self._passing.look(), self._store.live.clock_doubt
        self._store.live.clock_doubt = because
        if because and not was:
            log("clock_doubted", because=because)
        return bool(because)

    def _shorten_now_and_then(self) -> None:
        self._timers.later(SHORTEN_EVERY_S, self._shorten_now_and_then)
        daemon_log.shorten(self._home)

    def _forget(self) -> None:
        """A little at a time, so that nothing waits for it."""
        if self._doubts_clock():  # it may have been set since the last little
            return
        if self._store.apply(Forget()) >= FORGET_AT_ONCE:
            self._timers.later(1.0, self._forget)
        kept = self._store.live.stuck or {}
        for uid in kept.keys() - self._told:
            log("folder_kept", task=uid, because=kept[uid])
        self._told |= kept.keys()
