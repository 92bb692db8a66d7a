"""Knows of every task that comes here or leaves, whether somebody waits for it or it for others."""

from __future__ import annotations

from ..readiness import BY_GRAPH
from ..task import State
from .ends import settle, spread
from .reviving import alive_again
from .transaction import Transaction, may_change


def arrived(tx: Transaction, uid: str) -> None:
    """A task has just become READY here by coming or coming back; it may have to wait all the same.

    What its graph's end decided while it was on its way holds for it, too.
    """
    if not tx.live.graphs:
        return
    tx.db.execute("DELETE FROM awaited WHERE uid = ?", (uid,))
    if tx.db.execute(_NOT_FINAL, (uid,)).rowcount:
        alive_again(tx, uid)
    row = tx.db.execute(
        "SELECT g.reason FROM member m JOIN graph g ON g.id = m.dag"
        " WHERE m.uid = ? AND m.ended IS NULL AND g.state = 'cancelled'", (uid,),
    ).fetchone()  # fmt: skip
    if row is None:
        spread(tx, settle(tx, [uid], State.READY))
        return
    tx.db.execute(
        "UPDATE task SET state = 'CANCELLED', completed_at = ?"
        f" WHERE uid = ? AND {may_change(State.CANCELLED, State.READY)}", (tx.stamp, uid),
    )  # fmt: skip
    tx.moves(State.READY, State.CANCELLED)
    tx.event("task_cancelled", uid, was=State.READY, state=State.CANCELLED, by=BY_GRAPH,
             because=row[0] or "its graph was cancelled")  # fmt: skip
    spread(tx, {uid: "badly"})


_NOT_FINAL = "DELETE FROM told WHERE uid = ? AND state <> 'COMPLETED'"
_WAITED_FOR = """
INSERT OR IGNORE INTO awaited (uid) SELECT :uid WHERE
   EXISTS (SELECT 1 FROM edge WHERE needs = :uid AND came IS NULL)
OR EXISTS (SELECT 1 FROM member WHERE uid = :uid AND ended IS NULL)
OR EXISTS (SELECT 1 FROM input WHERE source = :uid AND here = 0)
"""


def left(tx: Transaction, uid: str) -> None:
    """A task lives elsewhere from now on; whoever waits for it here has to hear of its end."""
    if tx.live.graphs:
        tx.db.execute(_WAITED_FOR, {"uid": uid})
        forget_inputs(tx, uid)


def forget_inputs(tx: Transaction, uid: str) -> None:
    """Whoever has the task knows what to give it."""
    if tx.live.graphs:
        tx.db.execute("DELETE FROM input WHERE uid = ?", (uid,))
        tx.db.execute("DELETE FROM workspace WHERE uid = ?", (uid,))


def stay_cancelled(tx: Transaction, uid: str) -> None:
    """A person cancelled what an edge had ended already: nothing brings it back by itself now."""
    if tx.live.graphs and tx.db.execute("DELETE FROM fell WHERE uid = ?", (uid,)).rowcount:
        tx.changed = True
