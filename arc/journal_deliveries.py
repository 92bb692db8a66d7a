"""Keeps which signed messages were taken, so that the same one is never taken twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from agent_node.clock import Clock, iso, parse_iso

if TYPE_CHECKING:
    from .journal import Row, Rows


BEGUN = "begun"  # its task is being added; a hub that dies then leaves it so


@dataclass(frozen=True)
class Delivery:
    """One message that was taken, or was being taken, and what became of it."""

    name: str  # of the webhook
    seal: str
    at: datetime
    key: str
    uid: str
    outcome: str  # begun | added | exists
    because: str = ""


class DeliveryBook:
    """Each message stands once, by its seal."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock

    def known(self, name: str, seal: str) -> Delivery | None:
        """This very message, taken or begun before; None: new, or so old that its time tells."""
        rows = self._rows.read("SELECT * FROM delivery WHERE name = ? AND seal = ?", [name, seal])
        return _delivery(rows[0]) if rows else None

    def take(self, one: Delivery) -> None:
        """It is being taken, or was; on the disk before this returns. What is known stays."""
        with self._rows.transaction(durable=True):
            self._rows.write(
                "INSERT INTO delivery (name, seal, at, key, uid, outcome, because)"
                " VALUES (?,?,?,?,?,?,?) ON CONFLICT (name, seal) DO UPDATE SET"
                " uid = excluded.uid, outcome = excluded.outcome, because = excluded.because"
                " WHERE outcome = ?",
                [one.name, one.seal, iso(one.at), one.key, one.uid, one.outcome, one.because,
                 BEGUN],
            )

    def last(self, name: str, limit: int = 1) -> tuple[Delivery, ...]:
        """The newest that this webhook took, newest first."""
        rows = self._rows.read(
            "SELECT * FROM delivery WHERE name = ? AND outcome <> ?"
            " ORDER BY at DESC, rowid DESC LIMIT ?", [name, BEGUN, limit])  # fmt: skip
        return tuple(map(_delivery, rows))

    def count(self, name: str, since: datetime) -> int:
        """How many it took since a moment."""
        row = self._rows.read("SELECT count(*) AS many FROM delivery WHERE name = ? AND at >= ?"
                              " AND outcome <> ?", [name, iso(since), BEGUN])[0]  # fmt: skip
        return cast("int", row["many"])


def _delivery(row: Row) -> Delivery:
    return Delivery(str(row["name"]), str(row["seal"]), parse_iso(str(row["at"])), str(row["key"]),
                    str(row["uid"]), str(row["outcome"]), str(row["because"]))  # fmt: skip
