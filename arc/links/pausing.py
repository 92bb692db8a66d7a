"""Says how long to leave a node alone after it could not be reached, or did not stay."""

from __future__ import annotations

import random

from agent_node.clock import Clock

PATIENCE_S = 1.0  # who asks waits this long for a node in trouble, and then hears of the trouble
FIRST_S = 0.25
MOST_S = 8.0  # a machine that is back is met soon: what was moved to it waits for that
REFUSED_MOST_S = 30.0  # a refused login or host key waits for a person, and sshd may take offence
STEADY_S = 10.0  # a session that lasted this long was a good one; the next is opened at once


class Pausing:
    """A quarter of a second at first, then twice as long each time, 8 s at most; 30 s where a login
    or a host key was refused.

    Each pause is shortened by up to a half, by chance, so that nodes do not come back all at once.
    """

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock, self._rng = clock, rng
        self._failures, self._until = 0, 0.0

    @property
    def wait_s(self) -> float:
        """Seconds until the next try is due; zero: now."""
        return max(self._until - self._clock.boottime(), 0.0)

    def failed(self, *, most_s: float = MOST_S) -> None:
        """A try came to nothing; `most_s` is the longest pause for such a failure."""
        self._failures += 1
        pause_s = min(FIRST_S * 2 ** min(self._failures - 1, 16), most_s)
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
