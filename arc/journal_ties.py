"""Keeps to which tasks a node was tied by what it was given: what those left, it may be told."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import Clock, iso, parse_iso

if TYPE_CHECKING:
    from .journal import Rows

KEEP = timedelta(days=30)


class TieBook:
    """Which tasks and graphs what a node was given refers to; written before it is given."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock
        if not rows.read("SELECT at FROM tie_since"):
            with rows.transaction():
                rows.write("INSERT INTO tie_since (at) VALUES (?)", [iso(clock.now())])

    def note(self, node: str, uids: Iterable[str]) -> None:
        """From now on this node may know what became of these tasks, or of all of these graphs."""
        now = iso(self._clock.now())
        rows = [(node, uid, now) for uid in uids]
        if rows:
            with self._rows.transaction():
                self._rows.write_many(
                    "INSERT OR REPLACE INTO tie (node, uid, at) VALUES (?,?,?)", rows
                )

    def has(self, node: str, uids: Collection[str]) -> bool:
        """Whether the node was tied to any of them."""
        marks = ",".join("?" * len(uids))
        query = f"SELECT 1 FROM tie WHERE node = ? AND uid IN ({marks}) LIMIT 1"  # noqa: S608
        return bool(self._rows.read(query, [node, *uids]))

    def since(self) -> datetime:
        """What was given before this moment is known no more, or never was."""
        (row,) = self._rows.read("SELECT at FROM tie_since")
        return max(parse_iso(str(row["at"])), self._clock.now() - KEEP)
