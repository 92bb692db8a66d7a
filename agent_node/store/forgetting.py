"""Lets go of graphs that ended long ago, and of what was only kept for them."""

from __future__ import annotations

import sqlite3

from .transaction import Transaction

_ANY = """
SELECT EXISTS (SELECT 1 FROM graph) OR EXISTS (SELECT 1 FROM edge) OR EXISTS (SELECT 1 FROM input)
    OR EXISTS (SELECT 1 FROM awaited)
"""
# A task that a graph still needs stays: what it left may be asked for.
NEEDED = """
EXISTS (SELECT 1 FROM member m JOIN graph g ON g.id = m.dag
         WHERE m.uid = task.uid AND g.state = 'running')
OR EXISTS (SELECT 1 FROM input i JOIN task t ON t.uid = i.uid
            WHERE i.source = task.uid AND t.completed_at IS NULL)
"""
_OLD = "SELECT id FROM graph WHERE ended_at < :before ORDER BY ended_at LIMIT :limit"
_OF_MEMBERS = """
DELETE FROM {table} WHERE uid IN (SELECT uid FROM member WHERE dag = :dag)
   AND NOT EXISTS (SELECT 1 FROM task t WHERE t.uid = {table}.uid AND t.completed_at IS NULL)
"""
# What belongs to no graph goes with its task; nobody asks for the end of what nobody waits for.
_LOOSE = (
    "DELETE FROM {table} WHERE uid IN (SELECT e.uid FROM {table} e WHERE NOT EXISTS (SELECT 1 FROM"
    " task t WHERE t.uid = e.uid) AND NOT EXISTS (SELECT 1 FROM member m WHERE m.uid = e.uid)"
    " LIMIT :limit)"
)
_OLD_TOLD = """
DELETE FROM told WHERE uid IN (SELECT o.uid FROM told o WHERE o.noted_at < :before
   AND NOT EXISTS (SELECT 1 FROM input i JOIN task t ON t.uid = i.uid
                    WHERE i.source = o.uid AND t.completed_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM member m JOIN graph g ON g.id = m.dag
                    WHERE m.uid = o.uid AND g.state = 'running') LIMIT :limit)
"""


def any_graphs(db: sqlite3.Connection) -> bool:
    """Whether anything here waits, or waited, for something else."""
    return bool(db.execute(_ANY).fetchone()[0])


def forget_graphs(tx: Transaction, before: dict[str, str | int]) -> int:
    """Graphs that ended before then, and all that only they needed; how many they were."""
    if not tx.live.graphs:
        return 0
    ended = [dag for (dag,) in tx.db.execute(_OLD, before).fetchall()]
    for dag in ended:
        for table in ("edge", "input", "fell", "told"):
            tx.db.execute(_OF_MEMBERS.format(table=table), {"dag": dag})
        tx.db.execute("DELETE FROM member WHERE dag = ?", (dag,))
        tx.db.execute("DELETE FROM graph WHERE id = ?", (dag,))
    gone = len(ended) + tx.db.execute(_OLD_TOLD, before).rowcount
    for table in ("edge", "input", "fell", "workspace"):
        gone += tx.db.execute(_LOOSE.format(table=table), before).rowcount
    return gone
