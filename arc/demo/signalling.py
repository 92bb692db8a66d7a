"""Hears the signals that end the demo, and lets nobody else hear them while it tidies up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """Whether the demo was told to end. Nothing is cut off by that: whoever waits looks here."""

    def __init__(self) -> None:
        self.told = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None

    def tell(self) -> None:
        """End, please; from any signal handler or thread."""
        self.told = True
        loop, event = self._loop, self._event
        if loop is not None and event is not None:
            loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        """Until it is told, which may have been before."""
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        try:
            if not self.told:
                await self._event.wait()
        finally:  # a closed loop cannot be called, and a handler that raises ends the tidying up
            self._loop = None

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Told by Ctrl-C, SIGTERM and a terminal that closes, however often, while this lasts."""
        def hear(number: int, frame: FrameType | None) -> None:
            self.tell()

        before = {number: signal.signal(number, hear) for number in HEARD}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class OwnSignals(asyncio.SelectorEventLoop):
    """A loop on which no part of the hub may hear signals: they are about the whole demo."""

    def add_signal_handler(self, sig: int, callback: object, *args: object) -> None:
        """Not here; a hub without signals is stopped by its event."""
        raise NotImplementedError("the demo hears signals itself")
