"""Shims between two attempts: each is kept at hand for a moment, for whatever comes next."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .handing import hand_over
from .processes import Identity

LINGER_S = 0.05  # so long, and no more than twice as long


class Kept(NamedTuple):
    """Nothing of its last attempt runs any more, its locks are free, and it waits at its line."""

    agent: str
    shim: Identity
    pidfd: int
    line: socket.socket

    def give(self, message: bytes, descriptors: Sequence[int]) -> bool:
        """Hand it an attempt. False: it has died, and took nothing."""
        try:
            hand_over(self.line, message, descriptors)
        except OSError:
            return False
        return True

    def dismiss(self) -> None:
        """Hang up, so that it ends."""
        self.line.close()
        os.close(self.pidfd)


class AtHand:
    """Those that are kept. One look dismisses whoever was there at the look before it."""

    def __init__(self, later: Callable[[float, Callable[[], None]], None]) -> None:
        self._later, self._kept, self._old = later, list[Kept](), set[Kept]()
        self._looks = False

    @property
    def pids(self) -> list[int]:
        """Who they are."""
        return [kept.shim.pid for kept in self._kept]

    def keep(self, kept: Kept) -> None:
        """Have it ready for its agent's next attempt, if that comes soon."""
        self._kept.append(kept)
        if not self._looks:
            self._looks = True
            self._later(LINGER_S, self._look)

    def take(self, agent: str) -> Kept | None:
        """The one of this agent that came last; another agent's may be another user's."""
        for kept in reversed(self._kept):
            if kept.agent == agent:
                self._kept.remove(kept)
                self._old.discard(kept)
                return kept
        return None

    def _look(self) -> None:
        for kept in self._old:
            self._kept.remove(kept)
            kept.dismiss()
        self._old = set(self._kept)
        self._looks = bool(self._kept)
        if self._looks:
            self._later(LINGER_S, self._look)
