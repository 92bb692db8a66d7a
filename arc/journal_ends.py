"""Keeps which tasks were heard to have ended on which node, so that none is started again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso

if TYPE_CHECKING:
    from .journal import Row, Rows

CHUNK = 500  # uids that one question names
FINAL = "COMPLETED"  # the one end that no word takes back


@dataclass(frozen=True)
class TaskEnd:
    """A task that ended on a node: how, and when by the hub's clock."""

    node: str
    uid: str
    state: str  # COMPLETED | FAILED | CANCELLED
    at: datetime


class EndBook:
    """The last word of each node on each task, where that word is an end."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def note(self, ends: Iterable[TaskEnd]) -> None:
        """These ended there; an end that is known already keeps its moment."""
        with self._rows.transaction():
            self._rows.write_many(
                "INSERT INTO task_end (node, uid, state, at) VALUES (?,?,?,?)"
                " ON CONFLICT DO UPDATE SET state = excluded.state, at = excluded.at"
                " WHERE state <> excluded.state",
                [(one.node, one.uid, one.state, iso(one.at)) for one in ends],
            )

    def take_back(self, node: str, uids: Iterable[str]) -> None:
        """These live there again, such as a cancelled one that was retried."""
        with self._rows.transaction():
            self._rows.write_many("DELETE FROM task_end WHERE node = ? AND uid = ?",
                                  [(node, uid) for uid in uids])  # fmt: skip

    def forget(self, uid: str) -> None:
        """A person let the task run again, whatever was heard of it."""
        with self._rows.transaction():
            self._rows.write("DELETE FROM task_end WHERE uid = ?", [uid])

    def of(
        self, uids: Iterable[str], *, nodes: Collection[str] | None = None
    ) -> dict[str, TaskEnd]:
        """The end of each of these tasks that was heard, on any node or on one of `nodes`."""
        wanted = list(uids)
        found: dict[str, TaskEnd] = {}
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            marks = ",".join("?" * len(some))
            query = f"SELECT * FROM task_end WHERE uid IN ({marks}) ORDER BY node"  # noqa: S608
            for row in self._rows.read(query, some):
                if nodes is None or row["node"] in nodes:
                    found[str(row["uid"])] = _end(row)
        return found

    def of_moved(self, node: str) -> list[str]:
        """The tasks that were moved to this node and ended there, by uid."""
        rows = self._rows.read(
            "SELECT uid FROM task_end AS e WHERE node = ? AND EXISTS (SELECT 1 FROM move AS m"
            " WHERE m.uid = e.uid AND m.idle = e.node AND m.outcome = 'moved') ORDER BY uid",
            [node],
        )
        return [str(row["uid"]) for row in rows]


def _end(row: Row) -> TaskEnd:
    return TaskEnd(str(row["node"]), str(row["uid"]), str(row["state"]),
                   parse_iso(str(row["at"])))  # fmt: skip
