"""Turns doubts that were ended into moves, as the journal keeps them."""

from __future__ import annotations

from collections.abc import Iterable

from .history_seen import TAKEN
from .sensor import Moved
from .settling import Settlement


def settled_of(settled: Iterable[Settlement]) -> tuple[Moved, ...]:
    """What earlier moves had left in doubt, as moves that ended now; what was left is not new.

    With both ends as they were told: a fence takes back only what an earlier life of a node had.
    """
    return tuple(
        Moved(xfer=one.xfer, uid=one.uid, busy=one.giver, idle=one.taker, outcome="settled",
              why="doubt", rule=one.rule or (TAKEN if one.now == one.taker else ""),
              because=one.because or f"{one.now} has it",
              busy_incarnation=one.giver_incarnation, idle_incarnation=one.taker_incarnation)
        for one in settled if one.outcome == "settled"
    )  # fmt: skip
