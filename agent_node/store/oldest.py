"""Finds the task that has been READY the longest, without an index that every claim would write."""

from __future__ import annotations

from .transaction import Transaction

# A task that became READY when it was added, and stays as it came, became so in the order of `seq`.
# Every other way to READY leaves one of these marks for ever; those alone are in an index by time.
_LATER = "(attempt > 0 OR epoch > 1 OR shared = 1 OR not_before IS NOT NULL OR released = 1)"
_OLDEST_LATER = f"SELECT min(ready_at) FROM task WHERE state = 'READY' AND {_LATER}"
# None before this row is a first-comer, and none will be: what was claimed comes back marked.
_OLDEST_FIRST_COMER = f"""
SELECT seq, ready_at FROM task NOT INDEXED
 WHERE seq >= ? AND state = 'READY' AND NOT {_LATER} ORDER BY seq LIMIT 1
"""
# The lowest `seq` of READY tasks, from the index that claims go by. It is read once, as the counts
# are, when somebody opens the queue; from then on `first_comer` is never forgotten.
_LOWEST = "SELECT min(seq) FROM task INDEXED BY task_ready WHERE state = 'READY' AND shared = 0"
_BEYOND = "SELECT coalesce(max(seq), 0) + 1 FROM task"


def oldest_ready_at(tx: Transaction) -> str | None:
    """Since when the longest waiting task is READY; None when none is."""
    (later,) = tx.db.execute(_OLDEST_LATER).fetchone()
    found = [moment for moment in (later, _first_comer(tx)) if moment is not None]
    return min(found, default=None)


def _first_comer(tx: Transaction) -> str | None:
    start = tx.live.first_comer
    if start is None:
        (start,) = tx.db.execute(_LOWEST).fetchone()
    row = None if start is None else tx.db.execute(_OLDEST_FIRST_COMER, (start,)).fetchone()
    if row is None:
        (tx.live.first_comer,) = tx.db.execute(_BEYOND).fetchone()
        return None
    tx.live.first_comer = row[0]
    return str(row[1])
