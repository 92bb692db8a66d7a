"""Counts what a connection brings beside what its sessions are told, and cuts one that floods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

BESIDES_MAX, BESIDES_S = 256 * 1024, 5.0  # bytes in so many seconds; 500 pieces of news bring 100 K
WINDOW = 2 * 1024 * 1024  # what may be under way when we close a session

Receive = Callable[..., None]


class Meter:
    """What sessions are told they bound themselves. All else that a server may send (padding, debug
    messages, requests, data of a session that is closed) is read and thrown away by the library:
    each packet costs the cycles of all other nodes some microseconds, and has no end of its own.
    """

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or asyncio.get_running_loop().time
        self._since, self._besides = self._now(), 0
        self._over = False
        self.cut: Callable[[str], None] = lambda why: None
        """Ends the connection at once, for this reason."""

    def metered(self, receive: Receive) -> Receive:
        """The same, counted; more than is bearable ends the connection."""

        def received(data: bytes, datatype: int | None = None) -> None:
            if self._over:
                return
            receive(data, datatype)
            self._count(len(data))

        return received

    def told(self, count: int) -> None:
        """So many bytes were a session's, which looks after them itself."""
        self._besides -= count

    def leave(self) -> None:
        """We close a session; what is under way on it is nobody's fault."""
        self._besides = -WINDOW

    def _count(self, count: int) -> None:
        now = self._now()
        if now - self._since >= BESIDES_S:
            self._since, self._besides = now, min(self._besides, 0)
        self._besides += count
        if self._besides > BESIDES_MAX:
            self._over = True
            self.cut(f"it sent more than {BESIDES_MAX} bytes in {BESIDES_S:g}s that belong to no "
                     "session; the connection was cut")  # fmt: skip
