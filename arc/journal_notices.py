"""Keeps what people are to be told, and for each receiver up to where it was told."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from agent_node.clock import Clock, iso, parse_iso

from .decisions.notices import TROUBLES, Happened, again_after_s
from .journal_ahead import ahead_of
from .journal_nodes import ALERTS_A_DAY

if TYPE_CHECKING:
    from .journal import Row, Rows

BATCH_MAX = 1000  # things of one notice


@dataclass(frozen=True)
class Receiver:
    """How one receiver fares."""

    name: str
    told_to: int  # everything up to this number was told, or given up
    told_at: datetime | None = None
    tries: int = 0  # in vain since then
    again_at: datetime | None = None
    problem: str = ""


class NoticeBook:
    """Each thing stands once; a receiver that is new is told only what happens from then on."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock

    def note(self, things: Iterable[Happened]) -> None:
        """These happened; what is known already is not noted again."""
        rows = [(one.kind, one.thing, one.node, one.text, iso(one.at)) for one in things]
        if rows:
            with self._rows.transaction():
                self._rows.write_many(
                    "INSERT OR IGNORE INTO notice (kind, thing, node, text, at)"
                    " VALUES (?,?,?,?,?)", rows)  # fmt: skip

    def note_troubles(self, standing: Iterable[Happened], *, stays_s: float) -> None:
        """What troubles stand: of each node so many are noted that began in 24 hours. One more is
        noted when there is room again, or once it has stood for `stays_s`: what comes and goes is
        told so often and no more, and nobody is left untold of what stays.
        """
        now = self._clock.now()
        since, stays = iso(now - timedelta(days=1)), now - timedelta(seconds=stays_s)
        rows = [(one.kind, one.thing, one.node, one.text, iso(one.at), one.kind, one.thing,
                 int(one.at <= stays), one.node, *TROUBLES, since, ahead_of(now), ALERTS_A_DAY)
                for one in standing]  # fmt: skip
        if rows:
            with self._rows.transaction():
                self._rows.write_many(
                    "INSERT INTO notice (kind, thing, node, text, at) SELECT ?,?,?,?,?"
                    " WHERE NOT EXISTS (SELECT 1 FROM notice WHERE kind = ? AND thing = ?)"
                    " AND (? OR (SELECT count(*) FROM notice WHERE node = ? AND kind IN (?,?)"
                    " AND at BETWEEN ? AND ?) < ?)", rows)  # fmt: skip

    def receivers(self, names: Iterable[str]) -> dict[str, Receiver]:
        """Each of these, new ones from now on; those that are not named are forgotten."""
        wanted = list(names)
        known = {one.name: one for one in map(_receiver, self._rows.read("SELECT * FROM sink"))}
        if known.keys() != set(wanted):
            with self._rows.transaction():
                self._rows.write_many("DELETE FROM sink WHERE name = ?",
                                      [(name,) for name in known.keys() - set(wanted)])  # fmt: skip
                self._rows.write_many(
                    "INSERT OR IGNORE INTO sink (name, told_to, tries, problem)"
                    " VALUES (?, (SELECT coalesce(max(id), 0) FROM notice), 0, '')",
                    [(name,) for name in wanted],
                )
            known = {one.name: one
                     for one in map(_receiver, self._rows.read("SELECT * FROM sink"))}  # fmt: skip
        return {name: known[name] for name in wanted}

    def known(self, name: str) -> Receiver | None:
        """How it fares; None: no round has met it yet."""
        rows = self._rows.read("SELECT * FROM sink WHERE name = ?", [name])
        return _receiver(rows[0]) if rows else None

    def waiting(self, receiver: Receiver, kinds: Collection[str]) -> list[Happened]:
        """What it has still to be told, oldest first, so many at most."""
        marks = ",".join("?" * len(kinds))
        rows = self._rows.read(
            f"SELECT * FROM notice WHERE id > ? AND kind IN ({marks})"  # noqa: S608 - only marks
            " ORDER BY id LIMIT ?", [receiver.told_to, *kinds, BATCH_MAX])  # fmt: skip
        return [_happened(row) for row in rows]

    def lately(self, kind: str, *, since: datetime) -> list[Happened]:
        """What happened of this kind since then, newest first, whoever was told of it."""
        rows = self._rows.read(
            "SELECT * FROM notice WHERE at >= ? AND kind = ? ORDER BY id DESC LIMIT ?",
            [iso(since), kind, BATCH_MAX])  # fmt: skip
        return [_happened(row) for row in rows]

    def told(self, name: str, up_to: int) -> None:
        """It has everything up to here; on the disk before this returns."""
        with self._rows.transaction(durable=True):
            self._rows.write(
                "UPDATE sink SET told_to = ?, told_at = ?, tries = 0, again_at = NULL,"
                " problem = '' WHERE name = ?", [up_to, iso(self._clock.now()), name])  # fmt: skip

    def failed(self, receiver: Receiver, problem: str) -> int:
        """One more try was in vain; how many were."""
        tries = receiver.tries + 1
        again = self._clock.now() + timedelta(seconds=again_after_s(tries))
        with self._rows.transaction():
            self._rows.write(
                "UPDATE sink SET tries = ?, again_at = ?, problem = ? WHERE name = ?",
                [tries, iso(again), problem, receiver.name],
            )
        return tries

    def give_up(self, name: str, up_to: int, problem: str) -> None:
        """Nobody is told these; what comes later is tried anew. The problem stays to be seen."""
        with self._rows.transaction(durable=True):
            self._rows.write(
                "UPDATE sink SET told_to = ?, tries = 0, again_at = NULL, problem = ?"
                " WHERE name = ?", [up_to, problem, name])  # fmt: skip


def _receiver(row: Row) -> Receiver:
    told, again = row["told_at"], row["again_at"]
    return Receiver(
        str(row["name"]), cast("int", row["told_to"]), parse_iso(str(told)) if told else None,
        cast("int", row["tries"]), parse_iso(str(again)) if again else None, str(row["problem"]),
    )  # fmt: skip


def _happened(row: Row) -> Happened:
    return Happened(str(row["kind"]), str(row["thing"]), str(row["node"]), str(row["text"]),
                    parse_iso(str(row["at"])), cast("int", row["id"]))  # fmt: skip
