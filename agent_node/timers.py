"""Keeps what the loop has to do later, by seconds since boot."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from .clock import Clock


class Timers:
    """Callbacks by time; equal times go in the order they were set."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """Do this once, so many seconds from now."""
        heapq.heappush(self._heap, (self.clock.boottime() + seconds, next(self._order), do))

    def wait_s(self, at_most: float) -> float:
        """How long nothing is due, up to a bound."""
        if not self._heap:
            return at_most
        return min(at_most, max(self._heap[0][0] - self.clock.boottime(), 0.0))

    def run_due(self) -> None:
        """Do what is due; what that sets for later waits for the next call."""
        now, last = self.clock.boottime(), next(self._order)
        while self._heap and self._heap[0][0] <= now and self._heap[0][1] < last:
            heapq.heappop(self._heap)[2]()  # one that raises leaves the others for the next turn
