"""Lets the hub's own queue forget what ended long ago, a little at each look, as each node does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .links.inbox import NAME, InboxLink
from .steady import why_not_by_age

if TYPE_CHECKING:
    from .hub import Hub

EVERY_S = 3600.0


@dataclass(eq=False)
class Forgetting:
    """Once an hour, and then at each look until nothing more may go.

    Where the hub's clock may be wrong nothing does: by the journal and the nodes, as with what the
    journal has, and by how long this machine was running for, as with what a node has.
    """

    hub: Hub
    due_s: float = field(default=float("-inf"))  # by the clock's seconds since boot
    doubted: str = ""  # why its own machine's clock is not believed, as the log has it

    async def go_on(self) -> None:
        """Let a little of it go, where that is due."""
        now, inbox = self.hub.clock.boottime(), self.hub.inbox
        if now < self.due_s or not isinstance(inbox, InboxLink):
            return
        self.due_s = now + EVERY_S
        # Each time, whatever else is doubted: what is not looked at is not known to have gone by.
        doubt = self._told(inbox.doubt())
        if not (doubt or why_not_by_age(self.hub)) and inbox.forget():
            self.due_s = now

    def _told(self, doubt: str) -> str:
        if doubt and not self.doubted:
            self.hub.journal.runs.log("forgetting_waits", node=NAME, fields={"because": doubt})
        self.doubted = doubt
        return doubt
