"""Sees to the deadline of a drain: what still runs then is stopped, and waits again."""

from __future__ import annotations

from .arrivals import Arrivals
from .dispatch import Dispatcher
from .queries import Facts
from .timers import Timers


class Drains:
    """The deadlines that stand, by agent; None is the whole node. Of each the latest counts."""

    def __init__(self, dispatcher: Dispatcher, arrivals: Arrivals, timers: Timers) -> None:
        self._dispatcher, self._arrivals, self._timers = dispatcher, arrivals, timers
        self._latest: dict[str | None, int] = {}

    def begin(self, deadline_s: float | None, then: str, agent: str | None) -> None:
        """From now on; without a deadline, or where nothing is requeued, nobody is stopped."""
        number = self._latest[agent] = self._latest.get(agent, 0) + 1
        if deadline_s is not None and then == "requeue":
            self._timers.later(deadline_s, lambda: self._requeue(agent, number))

    def _requeue(self, agent: str | None, number: int) -> None:
        """The deadline of a drain; one that was called off, or set anew, has none any more."""
        self._arrivals.begin()
        facts = self._dispatcher.store.read(Facts())
        states = {one.name: one.state for one in facts.agents}
        draining = "draining" in (facts.state, states.get(agent or ""))
        if number != self._latest[agent] or not draining:
            return
        for run in self._dispatcher.runs:
            if agent in (None, run.agent):
                self._dispatcher.stop(run, "drained: the deadline came", requeue=True)
