"""Watches one program's whole tree until nothing of it is left, and says how it went."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from .killing import ask_tree_to_end, kill_round, reap_all
from .output import HeadAndTail

_CHUNK = 65_536
_DRAIN_CHUNKS = 1_024  # of what may still sit in a pipe once nobody of the tree can write
_SWEEP_GRACE_S = 2.0  # for what a program leaves behind after it has ended by itself
_ROUND_S = 0.05
_GIVE_UP_S = 30.0  # of KILLs without effect: a process in the kernel's hands, or not ours to end


class Ending(NamedTuple):
    """How the program ended; `exit_code` and `signal` are both None when that was not seen."""

    kind: str
    because: str
    exit_code: int | None = None
    signal: int | None = None
    took_s: float = 0.0
    leftovers_killed: int = 0
    survivors: int = 0
    missing: bool = False
    no_folder: bool = False

    @property
    def by_itself(self) -> bool:
        """Whether nobody ended it, and nothing was left of it to be ended."""
        return self.kind == "exited" and not self.leftovers_killed and not self.survivors

    @classmethod
    def unstarted(cls, because: str, *, missing: bool = False, no_folder: bool = False) -> Ending:
        """There was no program to watch; `missing`: because there is none of that name,
        `no_folder`: because it cannot begin where it is to.
        """
        return cls("could_not_start", because, missing=missing, no_folder=no_folder)


class _Verge(NamedTuple):
    """The tree has been asked to end: as what, why, and when it is made to."""

    kind: str
    because: str
    kill_at: float


class Watch:
    """Holds the program's pipes and its pid, and outlives every process of its tree."""

    def __init__(self, program: int, wake: int, beat: Callable[[], None]) -> None:
        self._program, self._wake, self._beat = program, wake, beat
        self._poll = select.poll()
        self._poll.register(wake, select.POLLIN)
        self._logs: dict[int, HeadAndTail] = {}
        self._others: dict[int, Callable[[], None]] = {}
        self._status: int | None = None
        self._alone = False
        self._stops = 0
        self._met: set[int] = set()

    def listen(self, pipe: int, log: HeadAndTail) -> None:
        """Take whatever comes through this pipe, which must not block, into this log."""
        self._logs[pipe] = log
        self._poll.register(pipe, select.POLLIN)

    def call(self, number: int, act: Callable[[], None]) -> None:
        """Call this whenever the descriptor can be read; it must not wait."""
        self._others[number] = act
        self._poll.register(number, select.POLLIN)

    def forget(self, number: int) -> None:
        """Before it is closed: call nothing more for this descriptor."""
        self._others.pop(number)
        self._poll.unregister(number)

    def until_over(
        self, began: float, *, max_s: float | None, grace_s: float, beat_s: float
    ) -> Ending:
        """Wait for the program, ending its tree when its time is up, a stop comes, or it is done.

        `began` is in boot seconds. After that it is bounded: grace, then KILL until nobody is
        left or nothing more can be done.
        """
        next_beat = began + beat_s
        deadline = None if max_s is None else began + max_s
        verge: _Verge | None = None
        self._reap()
        while not self._alone:
            now = boot_seconds()
            if verge is None:
                verge = self._verge(now, deadline, grace_s)
            elif self._stops > 1 and verge.kill_at > now:
                verge = verge._replace(kill_at=now)
            if verge is not None and now >= verge.kill_at:
                self._met |= kill_round()
                if now >= verge.kill_at + _GIVE_UP_S:
                    break
            if now >= next_beat:
                self._beat()
                next_beat = now + beat_s
            self._wait(_soonest(now, next_beat, deadline, verge))
            self._reap()
        self._drain()
        return self._ending(verge, boot_seconds() - began)

    def _verge(self, now: float, deadline: float | None, grace_s: float) -> _Verge | None:
        """Whether the tree has to end now; None lets it run on."""
        if self._status is not None:
            verge = _Verge("", "it left processes behind", now + min(grace_s, _SWEEP_GRACE_S))
        elif self._stops:
            verge = _Verge("stopped", "it was asked to stop", now + grace_s)
        elif deadline is not None and now >= deadline:
            verge = _Verge("timeout", "it ran longer than it may", now + grace_s)
        else:
            return None
        self._met |= ask_tree_to_end()
        return verge

    def _wait(self, until: float) -> None:
        for number, _ in self._poll.poll(max(0.0, until - boot_seconds()) * 1000 + 1):
            if number == self._wake:
                self._stops += os.read(number, _CHUNK).count(signal.SIGTERM)
            elif number in self._logs:
                self._pump(number)
            elif number in self._others:  # one before it in this round may have closed it
                self._others[number]()

    def _pump(self, pipe: int) -> bool:
        """True while there may be more to read at once."""
        try:
            chunk = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            self._logs[pipe].take(chunk)
            return True
        self._poll.unregister(pipe)
        os.close(pipe)
        del self._logs[pipe]
        return False

    def _reap(self) -> None:
        ended, self._alone = reap_all()
        if self._program in ended:
            self._status = ended[self._program]

    def _drain(self) -> None:
        """Bounded: a stranger who was handed the pipe may write for ever."""
        for pipe in tuple(self._logs):
            for _ in range(_DRAIN_CHUNKS):
                if not self._pump(pipe):
                    break

    def let_go(self) -> None:
        """Close what pipes are still open, because somebody beyond the tree holds their ends."""
        for pipe in self._logs:
            os.close(pipe)
        self._logs.clear()

    def _ending(self, verge: _Verge | None, took_s: float) -> Ending:
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        kind, because = ("exited", f"exit {code}") if code is None or code >= 0 else (
            "signalled",
            f"killed by signal {-code}",
        )
        if verge is not None:
            kind, because = verge.kind or kind, f"{because}; {verge.because}"
        return Ending(
            kind=kind,
            because=because,
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            took_s=took_s,
            leftovers_killed=len(self._met - {self._program}),
            survivors=0 if self._alone else max(1, len(kill_round())),
        )


def boot_seconds() -> float:
    """Time since boot, sleep included: a deadline goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _soonest(now: float, next_beat: float, deadline: float | None, verge: _Verge | None) -> float:
    if verge is not None:
        return min(next_beat, max(verge.kill_at, now + _ROUND_S))
    return next_beat if deadline is None else min(next_beat, deadline)
