"""Takes in what brings work, and claims for free slots in the same transaction."""

from __future__ import annotations

from collections import deque
from typing import TypeVar, cast

from .commands import Claim, Claimed, Command
from .config import AgentSettings
from .dispatch import Dispatcher

Outcome = TypeVar("Outcome")


class Arrivals:
    """What was claimed as it came, until its attempt begins: one commit instead of two."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._claimed: deque[tuple[AgentSettings, Claimed]] = deque()

    def take_in(self, command: Command[Outcome], tasks: int) -> Outcome:
        """It is done, and durably; what was claimed of so many tasks has not begun."""
        agents = self._dispatcher.with_free_slots(at_most=tasks)
        commands: list[Command[object]] = [command, *(Claim(agent.name) for agent in agents)]
        outcome, *claims = self._dispatcher.store.together(commands)
        for agent, claimed in zip(agents, claims, strict=True):
            if isinstance(claimed, Claimed):
                self._claimed.append((agent, claimed))
        return cast("Outcome", outcome)

    def begin(self) -> None:
        """Before anything is said about what runs here, everything that was claimed does."""
        while self._claimed:
            self._dispatcher.begin(*self._claimed.popleft())
