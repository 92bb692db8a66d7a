"""Says what every task store promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from ..commands import Command
from ..queries import Query

Outcome = TypeVar("Outcome")
Answer = TypeVar("Answer")


class Store(Protocol):
    """A node's queue. `tests/store_contract.py` is the whole promise, the same for every store.

    Each `apply` is one transaction, acknowledged only when it is on the disk. A command repeated
    gives the outcome that was recorded and changes nothing.
    """

    def apply(self, command: Command[Outcome], *, dry_run: bool = False) -> Outcome:
        """Carry out one command and say what came of it; `dry_run` takes it back again."""

    def together(self, commands: Sequence[Command[object]]) -> list[object]:
        """The same for several in one transaction: all of them, or none."""

    def read(self, query: Query[Answer]) -> Answer:
        """Answer a question from what is on the disk."""

    def read_all(self, queries: Sequence[Query[Any]]) -> list[Any]:
        """Answer several from one and the same moment."""

    @property
    def applied(self) -> int:
        """How often something was to be changed; while it is the same, so is the queue."""

    @property
    def has_ready(self) -> bool:
        """Whether any task is READY."""

    @property
    def broken(self) -> bool:
        """Whether the disk failed: all is refused from then on, until it is opened anew."""

    def close(self) -> None:
        """Let go of the database."""
