"""Counts who may be served how often, in memory alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

NAMES_MAX = 1000


@dataclass
class Pace:
    """A bucket of turns for each name, which fills up again within a minute."""

    clock: Callable[[], float]  # seconds of a clock that only goes forward
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)  # name: (turns, when)

    def take(self, name: str, per_minute: int) -> float | None:
        """Take a turn; or how many seconds it takes until there is one again."""
        now = self.clock()
        turns, at = self._left.get(name, (float(per_minute), now))
        turns = min(float(per_minute), turns + (now - at) * per_minute / 60)
        if turns < 1:
            return (1 - turns) * 60 / per_minute
        if len(self._left) >= NAMES_MAX and name not in self._left:
            self._left.clear()  # the names are those of fleet.yaml, so this is no usual day
        self._left[name] = (turns - 1, now)
        return None
