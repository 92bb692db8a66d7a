"""Keeps artifacts at the hub while they are on their way from one node to another."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Protocol

from agent_node.artifacts import Piece, Shelf
from agent_node.errors import NodeError
from agent_node.uploads import Progress, Uploads

from .errors import StateBroken

TIDY_EVERY_S = 3600.0


class Artifacts(Protocol):
    """Where the hub keeps files by their hash. Each call is short, and safe to repeat."""

    def has(self, sha256: str) -> int | None:
        """How many bytes it has; None: it is not here."""

    def begun(self, sha256: str) -> Progress:
        """How much of it is here."""

    def put(self, sha256: str, *, size: int, offset: int, data: bytes) -> Progress:
        """Add these bytes where they belong next; `StateBroken` where they cannot be kept."""

    def read(self, sha256: str, offset: int, limit: int) -> Piece | None:
        """Up to `limit` bytes from `offset` on; None: it is not here."""


class FolderArtifacts:
    """A folder in the hub's state: `artifacts/ab/SHA256`."""

    def __init__(self, root: Path) -> None:
        self._shelf = Shelf(root)
        self._uploads = Uploads(self._shelf)
        self._tidied_s: float | None = None

    def has(self, sha256: str) -> int | None:
        return self._shelf.has(sha256)

    def begun(self, sha256: str) -> Progress:
        return self._uploads.progress(sha256)

    def put(self, sha256: str, *, size: int, offset: int, data: bytes) -> Progress:
        try:
            return self._uploads.put(sha256, size=size, offset=offset, data=data)
        except (NodeError, OSError) as error:
            raise StateBroken(f"artifact {sha256} could not be kept: {error}") from error

    def read(self, sha256: str, offset: int, limit: int) -> Piece | None:
        return self._shelf.read(sha256, offset, limit)

    def tidy(self, now_s: float) -> None:
        """Once an hour, let go of what came a month ago: who still needs it has it, or its maker.

        `now_s` is any clock's seconds; what cannot go now goes in an hour.
        """
        if self._tidied_s is None or now_s - self._tidied_s >= TIDY_EVERY_S:
            self._tidied_s = now_s
            with suppress(OSError):
                self._shelf.forget(lambda old: ())
