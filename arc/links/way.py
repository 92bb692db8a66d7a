"""Says what a link needs of whatever carries its sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .talk import Talk


class Channel(Protocol):
    """Where a talk's bytes go. Nothing here waits."""

    def send(self, line: bytes) -> None:
        """Write it, or keep it until the node reads; `OSError` when nobody can read any more."""

    def unsent(self) -> int:
        """How many bytes are kept."""

    def close(self) -> None:
        """Let go of it; what has not left is lost."""


class Way(Protocol):
    """How one node's `agent-node serve --stdio` is reached."""

    @property
    def stage(self) -> str:
        """How far an opening has come, in words, for whoever gives up waiting."""

    async def open(self, talk: Talk) -> None:
        """Connect the talk, in bounded time, or raise `NodeUnreachable` and its kinds."""

    async def close(self) -> None:
        """Let go of everything, in bounded time."""
