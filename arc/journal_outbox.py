"""Keeps what stores have yet to hear of births and cancels, and were told of tasks gone badly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from agent_node.clock import Clock, iso

from .decisions.outbox import COMPLETED, EndHeard, JoinHeard

if TYPE_CHECKING:
    from .journal import Row, Rows, Value

BIRTHS_MAX = 10_000  # that one run looks at
OF_A_NODE_MAX = 20_000  # births that are kept until somebody was told
DOUBTED_MAX = 1_000  # births of one node that are kept although nobody believes them


@dataclass(frozen=True)
class OwedCancel:
    """One task that is to be cancelled wherever it is: whose word it was, and why."""

    uid: str
    by: str
    reason: str


class OutBook:
    """What outlives a run of the outbox: only what cannot be asked of the nodes again."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock

    def note_births(self, births: Sequence[JoinHeard]) -> None:
        """These were born into graphs; whoever keeps the graph has to hear it. Written before the
        events count as heard, so that none is lost with the hub. Of one node so many are kept; what
        is doubted goes first, then the oldest.
        """
        now = iso(self._clock.now())
        self._write(
            "INSERT OR IGNORE INTO birth (uid, dag, node, seq, parent, name, waits,"
            " max_cost_usd, at) VALUES (?,?,?,?,?,?,?,?,?)",
            [(one.uid, one.dag, one.node, one.seq, one.parent, one.name, int(one.waits),
              one.max_cost_usd, now)
             for one in births],
        )  # fmt: skip
        self._write(
            "DELETE FROM birth WHERE rowid IN (SELECT rowid FROM birth WHERE node = ?"
            " ORDER BY doubts, rowid DESC LIMIT -1 OFFSET ?)",
            [(node, OF_A_NODE_MAX) for node in sorted({one.node for one in births})])  # fmt: skip

    def _write(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        """All of them in one transaction; none for nothing."""
        if rows:
            with self._rows.transaction():
                self._rows.write_many(statement, rows)

    def open(self) -> bool:
        """Whether somebody may have to be told of a birth, a cancel, or of what lives again."""
        rows = self._rows.read("SELECT EXISTS (SELECT 1 FROM birth) AS born,"
                               " EXISTS (SELECT 1 FROM owed_cancel) AS owed")  # fmt: skip
        return bool(rows[0]["born"] or rows[0]["owed"] or self.revived())

    def owe_cancels(self, uids: Iterable[str], *, by: str, reason: str) -> None:
        """These are to be cancelled wherever they are; on the disk before this returns."""
        now = iso(self._clock.now())
        with self._rows.transaction(durable=True):
            self._rows.write_many(
                "INSERT OR IGNORE INTO owed_cancel (uid, said_by, reason, at) VALUES (?,?,?,?)",
                [(uid, by, reason, now) for uid in uids])  # fmt: skip

    def owed_cancels(self) -> tuple[OwedCancel, ...]:
        """What is still to be cancelled, oldest first."""
        rows = self._rows.read("SELECT * FROM owed_cancel ORDER BY rowid")
        return tuple(OwedCancel(str(row["uid"]), str(row["said_by"]), str(row["reason"]))
                     for row in rows)  # fmt: skip

    def cancelled(self, uids: Iterable[str]) -> None:
        """These are over, or a person lets them live after all."""
        self._write("DELETE FROM owed_cancel WHERE uid = ?", [(uid,) for uid in uids])

    def births(self) -> tuple[JoinHeard, ...]:
        """Births that nobody was told of yet: each node's in turn, so that none fills the list, and
        of each those first that were doubted least, oldest first.
        """
        rows = self._rows.read(
            "SELECT *, row_number() OVER (PARTITION BY node ORDER BY doubts, rowid) AS turn"
            " FROM birth ORDER BY turn, rowid LIMIT ?", [BIRTHS_MAX])  # fmt: skip
        return tuple(map(_birth, rows))

    def doubted(self, births: Sequence[JoinHeard]) -> None:
        """Nobody believes these now. They are looked at again after the others; of one node's that
        were doubted, the oldest are let go where they are too many.
        """
        nodes = {one.node for one in births}
        self._write("UPDATE birth SET doubts = doubts + 1 WHERE uid = ?",
                    [(one.uid,) for one in births])  # fmt: skip
        self._write(
            "DELETE FROM birth WHERE rowid IN (SELECT rowid FROM birth WHERE node = ?"
            " AND doubts > 0 ORDER BY rowid DESC LIMIT -1 OFFSET ?)",
            [(node, DOUBTED_MAX) for node in sorted(nodes)])  # fmt: skip

    def heard_of(self, uids: Iterable[str]) -> None:
        """Whoever keeps their graph knows of these births."""
        self._write("DELETE FROM birth WHERE uid = ?", [(uid,) for uid in uids])

    def telling(self, store: str, ends: Iterable[EndHeard]) -> None:
        """The store is about to be told these ends. Bad ones are kept: they may be taken back."""
        now = iso(self._clock.now())
        self._write(
            "INSERT OR REPLACE INTO end_told (store, uid, node, at, seq) VALUES (?,?,?,?,?)",
            [(store, one.uid, one.node, now, one.seq) for one in ends if one.state != COMPLETED],
        )

    def is_damage_known(self, uid: str, node: str) -> bool:
        """Whether the log has it already that what this task left on that node was damaged."""
        rows = self._rows.read(
            "SELECT EXISTS (SELECT 1 FROM line WHERE task = ? AND node = ?"
            " AND event = 'output_damaged') AS known", [uid, node])  # fmt: skip
        return bool(rows[0]["known"])

    def revived(self) -> tuple[tuple[str, str], ...]:
        """(store, uid): the store was told of a bad end there, and the task lives again or is done,
        or has lived again and ended anew by now: the same word then tells of another end.

        That is read off what is known of ends now, so no word of it can be missed. An end that was
        told without the number of its event (by an older hub, or seen in a list) is the same one
        for as long as the task is not heard to live.
        """
        rows = self._rows.read(
            "SELECT store, uid FROM end_told AS t WHERE NOT EXISTS (SELECT 1 FROM task_end AS e"
            " WHERE e.uid = t.uid AND e.node = t.node AND e.state <> 'COMPLETED'"
            " AND e.seq = coalesce(t.seq, e.seq)) ORDER BY store, uid"
        )
        return tuple((str(row["store"]), str(row["uid"])) for row in rows)

    def alive(self, store: str, uids: Sequence[str]) -> None:
        """The store knows that these live again."""
        self._write("DELETE FROM end_told WHERE store = ? AND uid = ?",
                    [(store, uid) for uid in uids])  # fmt: skip


def _birth(row: Row) -> JoinHeard:
    return JoinHeard(
        uid=str(row["uid"]), dag=str(row["dag"]), node=str(row["node"]),
        seq=cast("int", row["seq"]), parent=cast("str | None", row["parent"]),
        name=cast("str | None", row["name"]), waits=bool(row["waits"]),
        max_cost_usd=cast("str | None", row["max_cost_usd"]),
    )  # fmt: skip
