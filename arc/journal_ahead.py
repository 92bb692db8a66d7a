"""Puts right what the journal has from a wall clock that was ahead: it counts as of now."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.clock import PUT_BACK, iso

if TYPE_CHECKING:
    from .journal import Rows

# What decides by its age, and is worth no history: a node's ends hold it back for a while, and so
# does a refusal; who was met in the future would be no trouble before then. Runs, moves and ends of
# tasks keep the times that they were written with: where the clock of today is the wrong one, they
# would be the ones to go.
_AGING = ("ended", "refusal", "met", "heard")


def ahead_of(now: datetime) -> str:
    """The stamp beyond which nothing can have been written down by a clock that is right."""
    return iso(now + PUT_BACK)


def put_right(rows: Rows, now: datetime) -> None:
    """Ages are counted from now on where they were written by a clock that was ahead; so nothing
    is believed for longer than it would have been, and the order of what was heard is kept.
    """
    with rows.transaction():
        for table in _AGING:
            rows.write(f"UPDATE {table} SET at = ? WHERE at > ?",  # noqa: S608 - names of our own
                       [iso(now), ahead_of(now)])  # fmt: skip
