"""Keeps which nodes came back as another queue than before, and what had been moved to the old."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from agent_node.clock import Clock, iso, parse_iso

from .history_seen import CAME
from .journal_ends import SETTLED

if TYPE_CHECKING:
    from .journal import Row, Rows

TOLD_FOR = timedelta(days=7)  # where no task is known to have gone with the old queue
LOST_MAX = 10_000  # tasks of one node that are written down
# Ends are remembered for so long: of what was moved before, nobody knows whether it is over.
SINCE = timedelta(days=29)

_ENDED = f"e.state IN ({', '.join(map(repr, SETTLED))})"
# What was moved to any life of the node since it was replaced last, to no other node since, did
# not end as far as was heard, and was not owned again by a fence or a person.
_LOST = (
    "INSERT OR REPLACE INTO lost_task (uid, node, life)"  # noqa: S608 - the words are our own
    " SELECT m.uid, m.idle, ?2 FROM move m LEFT JOIN (SELECT task, max(at) AS at FROM line"
    " WHERE event = 'task_settled' AND json_extract(fields, '$.outcome') = 'reowned'"
    " GROUP BY task) w ON w.task = m.uid"
    f" WHERE m.idle = ?1 AND m.at >= ?3 AND {CAME} AND m.idle_incarnation <= ?2"
    " AND m.idle_incarnation > ?4 AND m.idle_incarnation >"
    " coalesce((SELECT max(life) FROM replaced WHERE node = ?1 AND life < ?2), '')"
    " AND (w.at IS NULL OR w.at < m.at)"
    " AND NOT EXISTS (SELECT 1 FROM fence f WHERE f.node = m.idle"
    " AND f.incarnation = m.idle_incarnation)"
    f" AND NOT EXISTS (SELECT 1 FROM move l WHERE l.uid = m.uid AND l.id > m.id AND {CAME})"
    f" AND NOT EXISTS (SELECT 1 FROM task_end e WHERE e.uid = m.uid AND {_ENDED})"
    f" ORDER BY m.id DESC LIMIT {LOST_MAX}"
)


@dataclass(frozen=True)
class Replaced:
    """A node that was met as another queue than before, without having told of a quarantine."""

    node: str
    life: str  # the incarnation that is not seen any more
    now: str  # the one that was met in its place
    at: datetime
    open: int | None  # tasks of the old queue that were not over, as it said last; None: not known
    moved: int  # those of them that were moved there and have no known end, as of that moment
    lost: tuple[str, ...] = ()  # those of which that is so still, and that nobody decided about


class LifeBook:
    """Queues that were lost, until they are back or all that was moved to them is decided."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock

    def replace(
        self, node: str, life: str, now: str, *, open_tasks: int | None, back: bool = False
    ) -> int:
        """The node is another queue since now; how many tasks that were moved to the old one are
        not known to have ended. `back`: it is an earlier one again, so that without any such task
        there is nothing to tell.
        """
        at = self._clock.now()
        with self._rows.transaction():
            self._rows.write(_LOST, [node, life, iso(at - SINCE), now if now < life else ""])
            lost = self._rows.read("SELECT count(*) AS many FROM lost_task WHERE node = ?"
                                   " AND life = ?", [node, life])[0]["many"]  # fmt: skip
            if lost or not back:
                self._rows.write(
                    "INSERT OR REPLACE INTO replaced (node, life, now, at, open, moved)"
                    " VALUES (?,?,?,?,?,?)",
                    [node, life, now, iso(at), open_tasks, lost],
                )
        return cast("int", lost)

    def is_back(self, node: str, life: str) -> bool:
        """The old queue is there again, if it was ever replaced: nothing of it is lost."""
        known = self._rows.read("SELECT 1 FROM replaced WHERE node = ? AND life = ?", [node, life])
        if known:
            with self._rows.transaction():
                for table in ("replaced", "lost_task"):
                    self._rows.write(f"DELETE FROM {table} WHERE node = ?"  # noqa: S608
                                     " AND life = ?", [node, life])  # fmt: skip
        return bool(known)

    def decided(self, uids: Iterable[str]) -> None:
        """Where these tasks live was said by a person, or found out."""
        with self._rows.transaction():
            self._rows.write_many("DELETE FROM lost_task WHERE uid = ?", [(one,) for one in uids])

    def standing(self) -> tuple[Replaced, ...]:
        """The replaced ones of which a person should know, oldest first, each with the tasks that
        nobody who answers owns. One to which tasks had been moved stands until they are decided.
        """
        rows = self._rows.read("SELECT * FROM replaced ORDER BY at, node")
        found = [_replaced(row, self._lost(row)) for row in rows]
        since = self._clock.now() - TOLD_FOR
        return tuple(one for one in found if one.lost or (not one.moved and one.at >= since))

    def _lost(self, row: Row) -> tuple[str, ...]:
        rows = self._rows.read(
            "SELECT uid FROM lost_task t WHERE node = ?1 AND life = ?2"  # noqa: S608
            f" AND NOT EXISTS (SELECT 1 FROM task_end e WHERE e.uid = t.uid AND {_ENDED})"
            " AND NOT EXISTS (SELECT 1 FROM move m"
            f" WHERE m.uid = t.uid AND m.at > ?3 AND {CAME}) ORDER BY uid",
            [row["node"], row["life"], row["at"]],
        ) if row["moved"] else []  # fmt: skip
        return tuple(str(one["uid"]) for one in rows)

    def was_removed(self, node: str, since: datetime) -> bool:
        """Whether a person took the node out of the fleet since: another one may have its name."""
        rows = self._rows.read("SELECT 1 FROM line WHERE at >= ? AND event = 'node_removed'"
                               " AND node = ? LIMIT 1", [iso(since), node])  # fmt: skip
        return bool(rows)


def _replaced(row: Row, lost: tuple[str, ...]) -> Replaced:
    return Replaced(
        str(row["node"]), str(row["life"]), str(row["now"]), parse_iso(str(row["at"])),
        cast("int | None", row["open"]), cast("int", row["moved"]), lost,
    )  # fmt: skip
