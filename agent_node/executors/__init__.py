"""Says what every executor promises, and lists those we have."""

from __future__ import annotations

from typing import Protocol

from ..attempts import AttemptFolder
from ..commands import Claimed
from ..config import AgentSettings, NodeSettings
from ..home import Home
from ..job import Job
from .command import CommandExecutor


class Executor(Protocol):
    """A way to run a task. It prepares; the shim runs."""

    def prepare(
        self,
        claimed: Claimed,
        agent: AgentSettings,
        folder: AttemptFolder,
        *,
        home: Home,
        settings: NodeSettings,
    ) -> Job:
        """Lay out what the attempt needs in its folder, and say exactly what the shim has to do."""


EXECUTORS: dict[str, Executor] = {"command": CommandExecutor()}


def executor_of(agent: AgentSettings) -> Executor:
    """How this agent's tasks are run: so far every agent is a command."""
    return EXECUTORS["command"]
