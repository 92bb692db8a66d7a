"""Keeps which signed messages were taken, so that the same one is never taken twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from agent_node.clock import Clock, iso, parse_iso

if TYPE_CHECKING:
    from .journal import Row, Rows


@dataclass(frozen=True)
class Delivery:
    """One message that was taken, and what became of it."""

    name: str  # of the webhook
    seal: str
    at: datetime
    key: str
    uid: str
    outcome: str  # added | exists
    because: str = ""


class DeliveryBook:
    """Each message stands once, by its seal."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock

    def known(self, name: str, seal: str) -> Delivery | None:
        """This very message, taken before; None: it is new, or so old that its time tells."""
        rows = self._rows.read("SELECT * FROM delivery WHERE name = ? AND seal = ?", [name, seal])
        return _delivery(rows[0]) if rows else None

    def take(self, one: Delivery) -> None:
        """It was taken; on the disk before this returns."""
        with self._rows.transaction(durable=True):
            self._rows.write(
                "INSERT OR IGNORE INTO delivery (name, seal, at, key, uid, outcome, because)"
                " VALUES (?,?,?,?,?,?,?)",
                [one.name, one.seal, iso(one.at), one.key, one.uid, one.outcome, one.because],
            )

    def last(self, name: str, limit: int = 1) -> tuple[Delivery, ...]:
        """The newest that this webhook took, newest first."""
        rows = self._rows.read(
            "SELECT * FROM delivery WHERE name = ? ORDER BY at DESC, rowid DESC LIMIT ?",
            [name, limit])  # fmt: skip
        return tuple(map(_delivery, rows))

    def count(self, name: str, since: datetime) -> int:
        """How many it took since a moment."""
        row = self._rows.read("SELECT count(*) AS many FROM delivery WHERE name = ? AND at >= ?",
                              [name, iso(since)])[0]  # fmt: skip
        return cast("int", row["many"])


def _delivery(row: Row) -> Delivery:
    return Delivery(str(row["name"]), str(row["seal"]), parse_iso(str(row["at"])), str(row["key"]),
                    str(row["uid"]), str(row["outcome"]), str(row["because"]))  # fmt: skip
