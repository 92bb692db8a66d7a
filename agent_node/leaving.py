"""Decides when a daemon may end: when it was told to, or when nothing is left for it."""

from __future__ import annotations

import sys

from .queries import NodeFacts
from .task import UNDERWAY, State

LEFT_UNDONE = 3


class Leaving:
    """Told once, a daemon lets running tasks finish within a grace; told twice, it goes at once."""

    def __init__(self, grace_s: float) -> None:
        self.grace_s = grace_s
        self.asked = False
        self._ends_at = 0.0

    def ask(self, now: float) -> bool:
        """Count one more signal; whether it was the first."""
        first, self.asked = not self.asked, True
        self._ends_at = now + self.grace_s if first else now
        return first

    def is_over(self, now: float) -> bool:
        """Whether what still runs is left to its shims."""
        return self.asked and now >= self._ends_at


def what_is_left(facts: NodeFacts) -> int | None:
    """0: all is done; 3: the rest cannot be done here; None: wait, something will come due."""
    counts = facts.counts
    if any(counts.get(state) for state in (*UNDERWAY, State.RETRYING)):
        return None
    left = [
        f"{number} {state}"
        for state in (State.READY, State.ESCROW, State.HELD, State.PARKED)
        if (number := counts.get(state, 0))
    ]
    if not left:
        return 0
    why = f" ({facts.name} is {facts.state})" if facts.state != "active" else ""
    unmet = "".join(f"; no agent here has {', '.join(needs)}" for needs, _ in facts.unmet)
    print(f"left undone: {', '.join(left)}{why}{unmet}; see: agent-node list", file=sys.stderr)
    return LEFT_UNDONE
