"""Does what has come due, and lets go of what ended long ago."""

from __future__ import annotations

import json
from datetime import timedelta

from ..clock import iso
from ..commands import Forget, Wake, Woken
from ..queries import FoldersKept
from ..removal import UNFINISHED, remove_folder
from ..task import State
from ..ulid import new_ulid
from .artifact_inputs import forget_kept
from .by_state import by_state
from .care import forget_cares, forget_marks, let_anyone
from .forgetting import NEEDED, forget_graphs
from .purses import limit_read
from .settling import end_leases
from .transaction import Transaction, may_change
from .transfers import IN_ESCROW
from .turns import urge
from .unaffordable import day_turned, forget_money
from .weights import forget_pulls

_READY = f"""
UPDATE task SET state = 'READY', wake_at = NULL, ready_at = :now, agent = NULL, released = 1
 WHERE state = :was AND wake_at <= :now AND {may_change(State.READY, State.PENDING, State.RETRYING)}
RETURNING uid
"""


def wake(tx: Transaction, command: Wake) -> Woken:
    """Retries and delayed starts become READY, ended leases are given back."""
    readied = end_leases(tx)
    let_anyone(tx, tx.stamp)
    urge(tx)
    readied += day_turned(tx)
    readied += limit_read(tx)
    if tx.node.state != "quarantined":
        for was in (State.PENDING, State.RETRYING):
            values = {"now": tx.stamp, "was": was.value}
            uids = tx.db.execute(_READY, values).fetchall()
            readied += len(uids)
            if uids:
                tx.moves(was, State.READY, len(uids))
            for (uid,) in uids:
                tx.event("task_ready", uid, was=was, state="READY", because="its time came")
    return Woken(readied, next_at(tx), next_lease(tx))


_NEXT_AT = """
SELECT (SELECT min(wake_at) FROM task WHERE wake_at IS NOT NULL),
       (SELECT min(until) FROM care WHERE until IS NOT NULL),
       (SELECT min(urge_at) FROM pull WHERE urge_at IS NOT NULL),
       (SELECT min(until) FROM unaffordable WHERE until IS NOT NULL)
"""


def next_at(tx: Transaction) -> str | None:
    """When the next delayed task is due, by the wall; None when none waits for a time."""
    found = tx.db.execute(_NEXT_AT).fetchone()
    return min((str(at) for at in found if at is not None), default=None)


def next_lease(tx: Transaction) -> float | None:
    """When the next lease ends, in seconds since boot; 0 for one of an earlier boot, None: none."""
    (until,) = tx.db.execute(
        "SELECT min(CASE lease_boot WHEN ? THEN lease_until ELSE 0 END)"
        f" FROM {IN_ESCROW}",
        (tx.clock.boot_id(),),
    ).fetchone()
    return None if until is None else float(until)


def forget(tx: Transaction, command: Forget) -> int:
    """Let go of transfers, tombstones and ended tasks that nobody can ask about any more."""
    stuck = tx.live.stuck if tx.live.stuck is not None else dict[str, str]()
    tx.live.stuck = stuck
    before: dict[str, str | int] = {
        # A transfer whose id lies in the future is kept: the floor must not rise above today.
        "now": new_ulid(int(tx.now.timestamp() * 1000), bytes(10)),
        "before": iso(tx.now - timedelta(days=command.days)),
        "stamp": tx.stamp,
        "limit": command.limit,
        "stuck": json.dumps(sorted(stuck)),
    }
    gone = (
        _forget_moves(tx, before) + _forget_tasks(tx, before, stuck) + _forget_events(tx, before)
        + forget_graphs(tx, before)
    )
    forget_marks(tx)
    if gone:
        tx.changed = True
        forget_cares(tx)
        forget_kept(tx)
        forget_pulls(tx)
        forget_money(tx, before=str(before["before"]))
    return gone


def folders_kept(tx: Transaction, query: FoldersKept) -> dict[str, str] | None:
    """Of which tasks that ended long ago the folder could not be removed, and why."""
    return None if tx.live.stuck is None else dict(tx.live.stuck)


def _forget_events(tx: Transaction, before: dict[str, str | int]) -> int:
    """The newest event always stays: it holds the place in the numbering. And that by which a task
    that completed is found stays as long as the task.
    """
    return tx.db.execute(_FORGET_EVENTS, before).rowcount


# What was tried in vain is tried again in an hour: at once, it would keep all others from going.
_UNNEEDED = f"""NOT EXISTS (SELECT 1 FROM transfer x WHERE x.uid = task.uid) AND NOT ({NEEDED})
   AND task.uid NOT IN (SELECT value FROM json_each(:stuck))"""
# Events are not in the order of their times where a clock was put back or forward; but they are
# read from the oldest one, up to the first that is young, and never more of them than may go now.
# What completed and has its attempt in its own row is in no index: the event says which it was.
_FRONT = f"""
FROM (SELECT e.seq, e.at >= :before AS young, task.uid, task.state FROM event e
        LEFT JOIN task ON e.state = 'COMPLETED' AND task.uid = e.uid AND task.end_event = e.seq
             AND task.state = 'COMPLETED' AND task.life IS NOT NULL
       WHERE (e.at >= :before AND e.at <= :stamp) OR (e.at < :before AND (
             task.uid IS NULL OR (task.completed_at < :before AND {_UNNEEDED})))
       ORDER BY e.seq LIMIT :limit) AS front"""
_GOES = f"NOT young AND front.seq < coalesce((SELECT min(seq) {_FRONT} WHERE young), 1 << 62)"
_FORGET_EVENTS = f"""
DELETE FROM event WHERE seq IN (
  SELECT front.seq {_FRONT} WHERE {_GOES} AND uid IS NULL
     AND front.seq < (SELECT max(seq) FROM event))
"""


# A record goes only when both ends are done with it and the task's end is known; whoever comes
# later with a transfer this old is answered `too_old`, because the floor rises with it.
_OLD_TRANSFERS = """
SELECT x.xfer, x.uid, x.side, x.outcome FROM transfer x
 WHERE x.at < :before AND x.xfer < :now AND (
   (x.side = 'giver' AND x.settled_at < :before AND (x.outcome <> 'committed' OR EXISTS (
      SELECT 1 FROM tombstone t WHERE t.uid = x.uid AND (t.xfer <> x.xfer
           OR (t.ended IS NOT NULL AND t.settled_at < :before)))))
   OR x.outcome = 'refused'
   OR (x.side = 'taker' AND x.outcome IN ('activated', 'dropped') AND NOT EXISTS (
      SELECT 1 FROM task t WHERE t.uid = x.uid AND t.completed_at IS NULL)))
 LIMIT :limit
"""


def _forget_moves(tx: Transaction, before: dict[str, str | int]) -> int:
    rows = tx.db.execute(_OLD_TRANSFERS, before).fetchall()
    if not rows:
        return 0
    raise_floor(tx, max(row[0] for row in rows))
    for xfer, uid, side, outcome in rows:
        tx.db.execute("DELETE FROM transfer WHERE xfer = ?", (xfer,))
        if side == "giver" and outcome == "committed":
            tx.db.execute("DELETE FROM tombstone WHERE uid = ? AND xfer = ?", (uid, xfer))
    tx.generation_due = True
    return len(rows)


def raise_floor(tx: Transaction, xfer: str) -> None:
    """From now on an unknown transfer up to this one is `too_old`, in the same transaction."""
    if xfer > tx.node.xfer_floor:
        tx.set_node(xfer_floor=xfer)


LOOK_S = 1.0  # for all folders that one look removes: the daemon stands still meanwhile
_OLD_TASKS = f"""
SELECT uid, state FROM task
 WHERE completed_at < :before AND {by_state(State.COMPLETED, State.FAILED, State.CANCELLED)}
   AND {_UNNEEDED}
UNION ALL
SELECT uid, state {_FRONT} WHERE {_GOES} AND uid IS NOT NULL
 LIMIT :limit
"""


def _forget_tasks(tx: Transaction, before: dict[str, str | int], stuck: dict[str, str]) -> int:
    """How many there were; as many as there may be, where time ran out before the last."""
    rows = tx.db.execute(_OLD_TASKS, before).fetchall()
    until = tx.clock.boottime() + LOOK_S
    for number, (uid, state) in enumerate(rows):
        if number and tx.clock.boottime() >= until:
            return int(before["limit"])
        if tx.live.tasks_dir is not None:
            # The folder goes first: one without a row would look like a restored database.
            because = remove_folder(
                str(tx.live.tasks_dir), uid, lambda: tx.clock.boottime() >= until
            )
            if because == UNFINISHED and number:
                return int(before["limit"])  # next time it is the first, and has all the time
            if because is not None:
                stuck[uid] = because
                continue
        tx.db.execute("DELETE FROM attempt WHERE uid = ?", (uid,))
        tx.db.execute("DELETE FROM task WHERE uid = ?", (uid,))
        tx.moves(state, None)
        last = tx.live.last_completed[1]
        if last is not None and last[0] == uid:
            tx.live.last_completed = (0, None)  # who asks next looks for one that is still here
    return len(rows)
