"""The word by which a store is told that another daemon follows what runs here from now on."""

from __future__ import annotations

from dataclasses import dataclass

from .commands import Command


@dataclass(frozen=True)
class TakenOver(Command[int]):
    """These attempts, by uid and number, were begun under an earlier daemon. How many are told of:
    those that are under way still.
    """

    attempts: tuple[tuple[str, int], ...]
