"""Keeps which tasks were heard to have ended on which node, so that none is started again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from agent_node.clock import iso, parse_iso

from .history_seen import CAME

if TYPE_CHECKING:
    from .journal import Row, Rows

CHUNK = 500  # uids that one question names
BECAUSE_MAX = 500  # characters of a reason that are kept
FINAL = "COMPLETED"  # the one end that no word takes back
INBOX = "inbox"
UNNUMBERED = -1  # the number of an end that no event told
# What keeps a task from being started again. A dead letter is none of these: it waits for a person,
# and a fence must not lose it with its machine.
SETTLED = ("COMPLETED", "FAILED", "CANCELLED")


@dataclass(frozen=True)
class TaskEnd:
    """A task that ended on a node: how, and when by the hub's clock."""

    node: str
    uid: str
    state: str  # COMPLETED | FAILED | CANCELLED | DEAD_LETTERED
    at: datetime
    because: str = ""
    seq: int = UNNUMBERED  # of the event that told it
    result: str = ""  # what the task left, as JSON, where somebody was known to wait for it
    lived: bool = True  # until the event of this number; False: a person's word on what was over


@dataclass(frozen=True)
class AttemptCost:
    """What one attempt said that it cost, in the words of the node that ran it: checked money."""

    uid: str
    node: str
    n: int
    cost_usd: str


class EndBook:
    """The last word of each node on each task, where that word is an end."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def note(self, ends: Iterable[TaskEnd]) -> None:
        """These ended there; an end that is known already keeps its moment, and the number of the
        event that ended it, whatever a person says of it afterwards. Where the task lived again
        and a later event ended it, also as before, it is another end.
        """
        rows = [(one.node, one.uid, one.state, iso(one.at), one.because[:BECAUSE_MAX], one.seq,
                 one.result, one.lived) for one in ends]  # fmt: skip
        if not rows:
            return
        with self._rows.transaction():
            self._rows.write_many(
                "INSERT INTO task_end (node, uid, state, at, because, seq, result)"
                " VALUES (?1,?2,?3,?4,?5,?6,?7)"
                " ON CONFLICT DO UPDATE SET state = excluded.state, at = excluded.at,"
                " because = excluded.because, result = excluded.result,"
                " seq = CASE WHEN ?8 THEN excluded.seq ELSE seq END"
                " WHERE state <> excluded.state"
                " OR (?8 AND seq >= 0 AND excluded.seq > seq)",  # of one UNNUMBERED nobody knows
                rows,
            )

    def note_costs(self, costs: Iterable[AttemptCost], at: datetime) -> None:
        """These attempts cost so much; what is heard twice is the same row."""
        rows = [(one.node, one.uid, one.n, one.cost_usd, iso(at)) for one in costs]
        if rows:
            with self._rows.transaction():
                self._rows.write_many(
                    "INSERT OR REPLACE INTO attempt_cost (node, uid, n, cost_usd, at)"
                    " VALUES (?,?,?,?,?)", rows)  # fmt: skip

    def costs_of(self, uid: str) -> list[AttemptCost]:
        """What each of its attempts cost, as far as that was heard in the last 30 days."""
        rows = self._rows.read("SELECT * FROM attempt_cost WHERE uid = ? ORDER BY n, node", [uid])
        return [AttemptCost(uid, str(row["node"]), cast("int", row["n"]), str(row["cost_usd"]))
                for row in rows]  # fmt: skip

    def take_back(self, node: str, uids: Iterable[str]) -> None:
        """These live there again, such as a cancelled one that was retried."""
        rows = [(node, uid) for uid in uids]
        if not rows:
            return
        with self._rows.transaction():
            self._rows.write_many("DELETE FROM task_end WHERE node = ? AND uid = ?", rows)

    def forget(self, uid: str) -> None:
        """A person let the task run again, whatever was heard of it."""
        with self._rows.transaction():
            self._rows.write("DELETE FROM task_end WHERE uid = ?", [uid])

    def of(
        self, uids: Iterable[str], *, nodes: Collection[str] | None = None
    ) -> dict[str, TaskEnd]:
        """The settled end of each of these tasks that was heard, on any node of the fleet or on
        one of `nodes`; what the hub's own queue itself says of them is not asked.
        """
        return {one.uid: one for one in self.all_of(uids)
                if one.state in SETTLED and one.node != INBOX
                and (nodes is None or one.node in nodes)}  # fmt: skip

    def all_of(self, uids: Iterable[str]) -> list[TaskEnd]:
        """Every end of these tasks that was heard, dead letters and the hub's own queue included;
        by node.
        """
        wanted = list(uids)
        found: list[TaskEnd] = []
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            marks = ",".join("?" * len(some))
            query = f"SELECT * FROM task_end WHERE uid IN ({marks})"  # noqa: S608
            found += map(_end, self._rows.read(query, some))
        return sorted(found, key=lambda one: one.node)

    def of_moved(self, node: str) -> list[str]:
        """The tasks that were moved to this node and ended there, by uid."""
        rows = self._rows.read(
            "SELECT uid FROM task_end AS e"  # noqa: S608
            " WHERE node = ? AND state <> 'DEAD_LETTERED' AND EXISTS"
            " (SELECT 1 FROM move AS m WHERE m.uid = e.uid AND m.idle = e.node"
            f" AND {CAME}) ORDER BY uid",
            [node],
        )
        return [str(row["uid"]) for row in rows]


def _end(row: Row) -> TaskEnd:
    return TaskEnd(
        str(row["node"]), str(row["uid"]), str(row["state"]), parse_iso(str(row["at"])),
        str(row["because"]), cast("int", row["seq"]), str(row["result"]),
    )
