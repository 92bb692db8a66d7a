"""Takes new tasks in, and claims for free slots in the same transaction."""

from __future__ import annotations

from collections import deque
from typing import cast

from .commands import Add, Added, Claim, Claimed, Command
from .config import AgentSettings
from .dispatch import Dispatcher


class Arrivals:
    """What was claimed as it came, until its attempt begins: one commit instead of two."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._claimed: deque[tuple[AgentSettings, Claimed]] = deque()

    def add(self, add: Add) -> tuple[Added, ...]:
        """The tasks are here, and durably; what was claimed of them has not begun."""
        agents = self._dispatcher.with_free_slots(at_most=len(add.tasks))
        commands: list[Command[object]] = [add, *(Claim(agent.name) for agent in agents)]
        added, *outcomes = self._dispatcher.store.together(commands)
        for agent, outcome in zip(agents, outcomes, strict=True):
            if isinstance(outcome, Claimed):
                self._claimed.append((agent, outcome))
        return cast("tuple[Added, ...]", added)

    def begin(self) -> None:
        """Before anything is said about what runs here, everything that was claimed does."""
        while self._claimed:
            self._dispatcher.begin(*self._claimed.popleft())
