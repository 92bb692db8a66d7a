"""Asks the hub that runs, through its socket; a hub that is away is said, and never waited for."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_node.strict import JsonObject
from arc import door
from arc.apart import apart
from arc.errors import ArcError
from arc.operations import Told

from .errors import Crowded, NoHubRuns

AT_ONCE = 16
WAIT_S = 5.0  # for a turn


class HubDoor:
    """The running hub of one fleet.yaml. Each question is a connection of its own."""

    def __init__(self, fleet: Path) -> None:
        self._fleet = fleet
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def ask(self, op: str, args: JsonObject, *, by: str, timeout_s: float) -> Told:
        """What came of one operation; `NoHubRuns` where none answers, else as the hub raised it."""
        try:
            async with asyncio.timeout(WAIT_S):
                await self._turns.acquire()
        except TimeoutError as error:
            raise Crowded("too many questions to the hub are under way; ask again") from error
        try:
            found = await apart(lambda: door.ask(self._fleet, op, args, by=by, timeout_s=timeout_s),
                                name="hub door", may_raise=(ArcError, OSError))  # fmt: skip
        except OSError as error:
            raise NoHubRuns(f"the hub's socket cannot be used: {error.strerror}") from error
        finally:
            self._turns.release()
        if found is None:
            raise NoHubRuns(f"no hub runs for {self._fleet}")
        return found
