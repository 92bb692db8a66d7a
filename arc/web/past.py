"""Reads what the hub wrote down, in one thread of its own, so that no look blocks the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from arc.errors import WaitedTooLong

from .errors import Crowded

if TYPE_CHECKING:
    from arc.history import History

AT_ONCE = 32  # looks that wait or run
LOOK_S = 20.0

Value = TypeVar("Value")


class Past:
    """The fleet's history, one look at a time: two would only make each other slower."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self._waiting = 0

    async def look(self, work: Callable[[History], Value]) -> Value:
        """What `work` makes of the history, or what it raises; bounded in time and in number."""
        if self._waiting >= AT_ONCE:
            raise Crowded("too many looks into the past are under way; ask again")
        self._waiting += 1
        job = asyncio.get_running_loop().run_in_executor(self._thread, work, self._history)
        job.add_done_callback(lambda _: self._leave())
        try:
            async with asyncio.timeout(LOOK_S):
                return await job
        except TimeoutError as error:
            raise WaitedTooLong(f"a look into the past took longer than {LOOK_S:.0f} s",
                                hint="ask for a shorter time, or for fewer nodes") from error

    def _leave(self) -> None:
        self._waiting -= 1

    def close(self) -> None:
        """Begin nothing more; what runs is left to end by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)
