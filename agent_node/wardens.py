"""Has another user's shims told, and what they left behind ended and looked at, by wardens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from .errands import Errands
from .log import log
from .other_evidence import clearing, sight_of
from .other_user import OtherUser, find_other_user
from .rousing import rouse, with_their_children
from .runs import Run, Runs
from .starters import Starters
from .strict import JsonObject, JsonValue

KEPT_DAYS = 30  # as long as an ended task is known
_DAY_S = 86_400
_AGAIN_S = 1.0
_LOOKS_MAX, _LOOK_AGAIN_S = 30, 0.1


class Wardens:
    """The dispatcher's word to processes that are not its own. Nothing here waits."""

    def __init__(
        self,
        errands: Errands,
        runs: Runs,
        starters: Starters,
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._errands, self._runs, self._starters = errands, runs, starters
        self._later = later
        self._waking: set[str] = set()  # users of whom a warden is on its way to do so

    @property
    def pids(self) -> list[int]:
        """The children of this process that are wardens."""
        return self._errands.pids

    def signal(self, run: Run, *numbers: int) -> None:
        """Send these to the attempt's shim; one that is gone needs none any more."""
        if run.user is None or run.shim is None:
            log("stop_refused", task=run.uid, attempt=run.n, because="its shim is not ours")
            return
        shim = run.shim

        def asked() -> JsonObject:
            return {"do": "signal", **shim._asdict(), "signals": [int(one) for one in numbers]}

        self._errands.send(run.user, asked, lambda reply: _told_of_signal(run, reply))

    def look(self, run: Run, then: Callable[[Run], None]) -> None:
        """End what is left of it; `then` is called once a sight of it is there, or none came."""
        if run.user is None or run.asked or not self._is_there(run):
            return
        run.asked = True

        def told(reply: JsonObject | None) -> None:
            run.asked = False
            if not self._is_there(run):
                return
            run.sight = sight_of(reply)
            then(run)

        self._errands.send(run.user, lambda: self._clearing(run), told)

    def look_later(self, run: Run, then: Callable[[Run], None]) -> bool:
        """Again, and each time a little later: a warden ends what is left and says what it saw.

        False after so many looks in vain that one more will not do; that is no proof of anything.
        """
        run.looks += 1
        if run.looks > _LOOKS_MAX:
            return False
        wait = min(_LOOK_AGAIN_S * (run.looks - 1), _AGAIN_S)
        self._later(wait, lambda: self.look(run, then))
        return True

    def wake(self, run: Run, then: Callable[[Run], None]) -> None:
        """Nobody took this attempt yet: who waits with its zygote may have been stopped by a
        program of the same user, and goes on. `then` is called in a second, whatever came of it.
        """
        self._later(_AGAIN_S, lambda: then(run))
        if run.user is None:
            _told_of_waking({"woken": rouse(with_their_children(self._starters.pids))})
            run.wake()  # whose shim need not be of today's zygote
        elif run.user.name not in self._waking:
            user = run.user
            self._waking.add(user.name)

            def told(reply: JsonObject | None) -> None:
                self._waking.discard(user.name)
                _told_of_waking(reply)

            self._errands.send(user, self._waking_up, told)

    def _waking_up(self) -> JsonObject:
        return {"do": "wake", "shims": [], "starters": [*self._starters.pids]}

    def tidy_daily(self, names: Iterable[str | None]) -> None:
        """Have the folders go in which attempts worked that ended long ago, now and every day."""
        users = [find_other_user(name) for name in sorted({name for name in names if name})]
        for user in users:
            self._errands.send(user, partial(self._tidying, user), _tidied)
        if users:
            self._later(_DAY_S, lambda: self.tidy_daily([user.name for user in users]))

    def _tidying(self, user: OtherUser) -> JsonObject:
        running: list[JsonValue] = [f"{run.uid}-{run.n}" for run in self._runs]
        return {"do": "tidy", "folder": user.folder, "running": running,
                "older_than_s": KEPT_DAYS * _DAY_S}  # fmt: skip

    def _clearing(self, run: Run) -> JsonObject:
        others: list[JsonValue] = [one.shim.pid for one in self._runs
                                   if one is not run and one.shim is not None]  # fmt: skip
        known: JsonObject = {"shims": others, "starters": [*self._starters.pids]}
        return {**clearing(run.folder, run.token, run.shim), **known}

    def _is_there(self, run: Run) -> bool:
        return self._runs.find(run.uid, run.n) is run


def _told_of_waking(reply: JsonObject | None) -> None:
    woken = reply.get("woken") if reply is not None else None
    if isinstance(woken, int) and woken:
        log("starters_woken", count=woken, because="somebody of their user had stopped them")


def _tidied(reply: JsonObject | None) -> None:
    removed = reply.get("removed") if reply is not None else None
    if isinstance(removed, int) and removed:
        log("work_folders_removed", count=removed)


def _told_of_signal(run: Run, reply: JsonObject | None) -> None:
    if reply is None or reply.get("sent") is not True:
        log("stop_refused", task=run.uid, attempt=run.n, because="no warden could tell its shim")
