"""Knows the attempts that are under way on this node, and which slots they fill."""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from .attempts import AttemptFolder
from .commands import Result
from .kept import Kept
from .other_evidence import Sight
from .other_user import OtherUser
from .processes import Identity, send_signal
from .task import Task
from .verdicts import Verdict


@dataclass(frozen=True)
class Judging:
    """A program that ended well, and which of its validations is under way."""

    program: AttemptFolder
    found: Result
    tries: int


@dataclass(eq=False)
class Run:
    """One attempt under way. `pidfd` None: its shim has not reported yet, or is gone. `line` None:
    nothing more is heard of it until then, as of a shim that an earlier daemon started.
    """

    uid: str
    n: int
    agent: str
    token: str
    boot_id: str
    folder: AttemptFolder
    shim: Identity | None = None
    pidfd: int | None = None
    line: socket.socket | None = None
    kept: Kept | None = None  # its shim, which is through with it and waits while it is recorded
    signed_in: bool = False  # its shim said who it is, to us or in its folder
    started: bool = False  # its shim, or the database, said that the program runs
    max_s: float | None = None  # what is left to it once its shim is known, which keeps its time
    unstarted: Verdict | None = None  # its shim's word that its program could not be started
    model: str = ""  # that its program was told to use; "": none, or it was begun by another daemon
    stop_why: str | None = None  # it was asked to stop; None: it may go on
    requeue: bool = False  # asked by the node itself: the task is READY again afterwards
    beat_at: float = 0.0  # mtime of the heartbeat file when it was last recorded
    beats: int = 0  # signs of life that were seen
    silent: int = 0  # looks in a row that found no new one
    stalled: bool = False  # it is ended because of that
    looks: int = 0  # how often it was looked for in vain
    user: OtherUser | None = None  # whose processes these are; None: the node's own
    sight: Sight | None = None  # what a warden of that user saw; it serves once
    asked: bool = False  # a warden is on its way for it
    judged: Task | None = None  # the task, where its output has to be judged before it counts
    validating: bool = False  # an earlier daemon may have begun to have it judged
    judging: Judging | None = None  # its validator runs; None: the program itself does

    def ask_to_stop(self) -> bool:
        """TERM to the shim, which ends the whole tree; said again when it reports later.

        False when the shim is another user's, who alone may say that.
        """
        if self.pidfd is None:
            return True
        sent = send_signal(self.pidfd, signal.SIGTERM)
        send_signal(self.pidfd, signal.SIGCONT)  # its program may have stopped it
        return sent

    def wake(self) -> None:
        """Its shim goes on if somebody stopped it; another user's hears that from a warden."""
        if self.pidfd is not None:
            send_signal(self.pidfd, signal.SIGCONT)

    def has_beaten(self) -> bool:
        """Whether its heartbeat file was touched since this was last asked."""
        try:
            beat_at = os.lstat(self.folder.heartbeat).st_mtime
        except OSError:
            return False  # there was none yet, or its program made it unreadable
        was, self.beat_at = self.beat_at, max(beat_at, self.beat_at)
        return beat_at > was

    def kill_shim(self) -> bool:
        """The last resort for a shim that does not end what it should: evidence does the rest."""
        return self.pidfd is None or send_signal(self.pidfd, signal.SIGKILL)

    def let_go(self) -> None:
        """Close what this process holds of it."""
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        if self.line is not None:
            self.line.close()
            self.line = None


class Runs:
    """All of them, by (uid, n); and by agent, for the slots."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], Run] = {}
        self._per_agent: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(list(self._runs.values()))

    def add(self, run: Run) -> None:
        """This attempt fills a slot from now on."""
        self._runs[run.uid, run.n] = run
        self._per_agent[run.agent] += 1

    def remove(self, run: Run) -> None:
        """Its slot is free; what was held of it is let go."""
        if self._runs.pop((run.uid, run.n), None) is not None:
            self._per_agent[run.agent] -= 1
        run.let_go()

    def find(self, uid: str, n: int) -> Run | None:
        """The attempt, if it is under way here."""
        return self._runs.get((uid, n))

    def of(self, agent: str) -> int:
        """How many slots of this agent are filled."""
        return self._per_agent[agent]
