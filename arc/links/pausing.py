"""Says how long to leave a node alone after it could not be reached, or did not stay."""

from __future__ import annotations

import random

from agent_node.clock import Clock

PATIENCE_S = 1.0  # who asks waits this long for the next try; a longer pause is answered at once
FIRST_S, MOST_S = 0.25, 30.0
STEADY_S = 10.0  # a session that lasted this long was a good one; the next is opened at once


class Pausing:
    """A quarter of a second at first, then twice as long each time, 30 s at most.

    Each pause is shortened by up to a half, by chance, so that nodes do not come back all at once.
    """

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock, self._rng = clock, rng
        self._failures, self._until = 0, 0.0

    @property
    def wait_s(self) -> float:
        """Seconds until the next try is due; zero: now."""
        return max(self._until - self._clock.boottime(), 0.0)

    def failed(self) -> None:
        """A try came to nothing."""
        self._failures += 1
        pause_s = min(FIRST_S * 2 ** min(self._failures - 1, 16), MOST_S)
        self._until = self._clock.boottime() + pause_s * self._rng.uniform(0.5, 1.0)

    def ended(self, lasted_s: float) -> None:
        """A session ended after so many seconds; a short one counts as a try that failed."""
        if lasted_s < STEADY_S:
            self.failed()
        else:
            self._failures, self._until = 0, 0.0

    def forgive(self) -> None:
        """Somebody wants to know now: the next try is due at once."""
        self._until = 0.0
