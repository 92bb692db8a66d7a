"""Ends every SSH connection after ten minutes, so that a revoked key stops counting by then."""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from .metering import Meter
from .talk import Talk

LIFE_S = 600.0  # no connection is older
NEW_UNTIL = 0.7  # of its life; a session that begins later has a connection of its own
RETIRES = (0.8, 0.9)  # of its life; then nothing more is asked on it. By chance: not all at once
RETIRED = "the connection had reached its age; the hub opens another"
TOO_OLD = f"the connection was cut: none lives longer than {LIFE_S:g}s"


class Connection(Protocol):
    """What a lifetime needs of a connection."""

    def close(self) -> None:
        """End it, letting out what is still to leave."""

    def abort(self) -> None:
        """Cut it."""

    def is_closed(self) -> bool:
        """Whether it has ended."""


class Lifetime:
    """The life of one connection, counted by the clock of the running loop.

    sshd looks at a key at login alone: an open connection survives the key's removal. So a
    connection retires: what was asked on it is still answered, new questions open another one,
    which logs in anew. What is not answered at the end of its life is cut.
    """

    def __init__(self, connection: Connection, meter: Meter | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._connection = connection
        self.meter = meter or Meter()
        self.meter.cut = self.cut
        self._talks: set[Talk] = set()
        self._retired = False
        self._loop, self._new_until = loop, loop.time() + LIFE_S * NEW_UNTIL
        retires_s = LIFE_S * random.uniform(*RETIRES)  # noqa: S311 - spreads logins, no secret
        self._timers = (loop.call_later(retires_s, self._retire),
                        loop.call_later(LIFE_S, self.cut, TOO_OLD))  # fmt: skip

    @property
    def takes_more(self) -> bool:
        """Whether another session may begin on it."""
        return self._loop.time() < self._new_until and not self._connection.is_closed()

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended."""
        return self._connection.is_closed()

    def began(self, talk: Talk) -> None:
        """A session has begun."""
        self._talks.add(talk)

    def ended(self, talk: Talk) -> None:
        """A session has ended; with the last one a retired connection does, too."""
        self._talks.discard(talk)
        if self._retired and not self._talks:
            self._connection.close()
        if self._connection.is_closed():
            self.forget()

    def forget(self) -> None:
        """The connection has ended, or is about to: nobody needs to watch it."""
        for timer in self._timers:
            timer.cancel()

    def cut(self, why: str) -> None:
        """End the connection now; who still waits for an answer learns that none came."""
        self.forget()
        for talk in list(self._talks):
            talk.close(why)
        self._connection.abort()

    def _retire(self) -> None:
        self._retired = True
        for talk in list(self._talks):
            talk.retire(RETIRED)
        if not self._talks:
            self._connection.close()
