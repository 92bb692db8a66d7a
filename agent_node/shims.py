"""Hears from the shims of what is under way: who took it, that it began, is over, or has gone."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable

from .job import OVER, REPLY_MAX
from .kept import Kept
from .processes import Identity
from .runs import Run, Runs
from .starters import Starters
from .stopping import Stopping
from .strays import end_strays
from .strict import decode_object
from .wardens import Wardens
from .zygote_link import Spawned


class Shims:
    """One word of a shim at a time; what follows from it is the dispatcher's."""

    def __init__(
        self,
        runs: Runs,
        *,
        selector: selectors.BaseSelector,
        starters: Starters,
        stopping: Stopping,
        wardens: Wardens,
        began: Callable[[Run, Identity], None],
        close: Callable[[Run], None],
    ) -> None:
        """`began` hears that a program runs, `close` that an attempt is to be looked at: its shim
        has ended, or has nothing more to do with it.
        """
        self._runs, self._selector, self._starters = runs, selector, starters
        self._stopping, self._wardens = stopping, wardens
        self._began, self._close = began, close
        starters.on_spawned, starters.on_went_on = self._heard, self._went_on

    def watch(
        self, run: Run, shim: tuple[int, int, str], pidfd: int, line: socket.socket | None = None
    ) -> None:
        """Be told when this shim ends; it is asked to stop at once if it was to."""
        if run.pidfd is None:
            run.shim, run.pidfd, run.line = Identity(*shim), pidfd, line
            self._selector.register(pidfd, selectors.EVENT_READ, lambda _: self._ended(run))
            if line is not None:
                self._selector.register(line, selectors.EVENT_READ, lambda _: self._speaks(run))
            self._stopping.follow(run)
        else:
            os.close(pidfd)  # its lock had told of it before it did
            if line is not None:
                line.close()
        if run.stop_why is not None:
            self._stopping.ask(run)

    def hear_starts(self) -> None:
        """What was said of programs by now is heard, before this process goes."""
        self._starters.hear_all()
        for run in self._runs:
            while run.line is not None and (said := _next_word(run.line)) and said != OVER:
                self._signed_in(run, said)

    def _heard(self, spawned: Spawned) -> None:
        run = self._runs.find(spawned.uid, spawned.n)
        if run is None:
            spawned.let_go()
            return
        self.watch(run, spawned.shim, spawned.pidfd, spawned.line)
        run.signed_in = True
        if spawned.started_at is not None:
            self._began(run, spawned.shim)

    def _went_on(self, uid: str, n: int, kept: Kept) -> None:
        run = self._runs.find(uid, n)
        assert run is not None, "it was handed over just now"
        self.watch(run, kept.shim, kept.pidfd, kept.line)

    def _speaks(self, run: Run) -> None:
        """All that one has said by now. It hangs up when it ends, which its pidfd tells, too."""
        while run.line is not None and (said := _next_word(run.line)) is not None:
            if said == OVER:
                self._over(run)
            elif said:
                self._signed_in(run, said)
            else:
                self._selector.unregister(run.line)
                run.line.close()
                run.line = None

    def _signed_in(self, run: Run, said: bytes) -> None:
        about = decode_object(said, REPLY_MAX)
        run.signed_in = True
        if about["started"] is not None and run.shim is not None:
            self._began(run, run.shim)

    def _over(self, run: Run) -> None:
        """The attempt is looked at, and its shim is at hand for what is claimed in its place. If
        it is not recorded in this very moment, for its output has to be judged first, or a disk
        says no, its shim goes; so does one that was told to stop, be it too late.
        """
        shim, pidfd, line = run.shim, run.pidfd, run.line
        if shim is None or pidfd is None or line is None:
            return  # nobody of whom that is so has said anything
        self.leave(run)
        run.kept, run.pidfd, run.line = Kept(run.agent, shim, pidfd, line), None, None
        if run.stop_why is not None:
            self._dismiss(run)
        self._close(run)
        self._dismiss(run)

    def recorded(self, run: Run) -> None:
        """How it ended is written down, so its shim may be given another."""
        self.leave(run)
        if run.kept is not None:
            self._starters.at_hand.keep(run.kept)
            run.kept = None

    def _dismiss(self, run: Run) -> None:
        if run.kept is not None:
            run.kept.dismiss()
            run.kept = None

    def _ended(self, run: Run) -> None:
        self.leave(run)
        run.let_go()
        began = run.signed_in or os.path.exists(run.folder.shim_json)  # or it left nobody
        if began and not os.path.exists(run.folder.verdict):
            shims = (run.shim.pid for run in self._runs if run.shim)
            starters = self._starters
            end_strays([*starters.pids, *starters.at_hand.pids, *self._wardens.pids, *shims])
        self._close(run)

    def leave(self, run: Run) -> None:
        """Nothing of it calls us any more; before what is held of it is closed."""
        for watched in (run.pidfd, run.line):
            if watched is not None:
                self._selector.unregister(watched)


def _next_word(line: socket.socket) -> bytes | None:
    """Empty: it has hung up. None: it has said nothing yet."""
    try:
        return line.recv(REPLY_MAX, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except ConnectionResetError:  # with a word of ours in its hands: what it was, evidence tells
        return b""
