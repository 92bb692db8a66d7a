"""Says what a link needs of whatever carries its sessions."""

from __future__ import annotations

from typing import Protocol

from .talk import Talk


class Way(Protocol):
    """How one node's `agent-node serve --stdio` is reached."""

    @property
    def stage(self) -> str:
        """How far an opening has come, in words, for whoever gives up waiting."""

    async def open(self, talk: Talk) -> None:
        """Connect the talk, in bounded time, or raise `NodeUnreachable` and its kinds."""

    async def close(self) -> None:
        """Let go of everything, in bounded time."""
