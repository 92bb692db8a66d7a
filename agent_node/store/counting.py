"""Counts the tasks once, when a queue is opened: from then on they are counted as they change."""

from __future__ import annotations

import sqlite3

from ..task import State
from .by_state import by_state

_INDEXED = f"SELECT state, count(*) FROM task WHERE {by_state()} GROUP BY state"
_READY = "SELECT count(*) FROM task WHERE state = 'READY'"
_ALL = "SELECT count(*) FROM task"


def counted(db: sqlite3.Connection) -> dict[str, int]:
    """How many are in each state, each part from an index; what is in none of them completed."""
    counts: dict[str, int] = dict(db.execute(_INDEXED).fetchall())
    (ready,) = db.execute(_READY).fetchone()
    (number,) = db.execute(_ALL).fetchone()
    completed = number - ready - sum(counts.values())
    for state, more in ((State.READY, ready), (State.COMPLETED, completed)):
        counts[str(state)] = counts.get(state, 0) + more
    return counts
