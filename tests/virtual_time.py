"""An event loop whose time is nobody's: it jumps to the next timer as soon as nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tests.builders import START

Value = TypeVar("Value")


class Stuck(AssertionError):
    """Everybody waits, and for nothing that time would bring."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waiting costs nothing and is counted: `time()` is how long it would have taken."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self._look = self._selector.select  # type: ignore[attr-defined]
        self._selector.select = self._select  # type: ignore[attr-defined]

    def _select(self, timeout: float | None = None) -> Any:
        found = self._look(0)
        if timeout is None and not found:
            raise Stuck("every task waits for something that will not come")
        if not found:
            self.seconds += timeout or 0.0
        return found

    def time(self) -> float:
        return self.seconds


class LoopClock:
    """The clock of a hub that lives in virtual time."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return START + timedelta(seconds=self._loop.seconds)

    def boottime(self) -> float:
        return 100.0 + self._loop.seconds

    def boot_id(self) -> str:
        return "00000000-0000-4000-8000-00000000000a"


def in_virtual_time(story: Coroutine[Any, Any, Value]) -> tuple[Value, float]:
    """What the story came to, and how many seconds it took."""
    loop = VirtualLoop()
    try:
        value = loop.run_until_complete(story)
        return value, loop.seconds
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
