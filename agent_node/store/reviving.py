"""Takes back what the end of a task had done, where that task lives again."""

from __future__ import annotations

from collections.abc import Iterable

from ..readiness import BY_GRAPH
from ..task import State
from .edges import HOLDS, WAITS_FOR, standings
from .ends import BLOCK, TO_PENDING, after_end, settle
from .transaction import Transaction, may_change

# Edges of those that still wait, or that an edge ended: whoever went on has gone on.
_WAITERS = """
SELECT e.uid FROM edge e JOIN task t ON t.uid = e.uid
 WHERE e.needs = ? AND e.came IN ('badly', 'skipped')
   AND (t.state = 'PENDING' OR (t.state = 'CANCELLED' AND t.quarantined = 0
        AND EXISTS (SELECT 1 FROM fell f WHERE f.uid = e.uid)))
"""


def alive_again(tx: Transaction, uid: str) -> None:
    """A task that had ended lives again: so does what that end alone had ended."""
    if not tx.live.graphs:
        return
    again = [uid]
    while again:
        waiting: list[str] = []
        for one in again:
            _reopen_member(tx, one)
            uids = [dep for (dep,) in tx.db.execute(_WAITERS, (one,)).fetchall()]
            tx.db.executemany(
                "UPDATE edge SET came = NULL WHERE uid = ? AND needs = ?",
                [(dep, one) for dep in uids],
            )
            tx.db.execute("UPDATE input SET here = 0 WHERE source = ?", (one,))
            waiting += uids
        again = _revive(tx, waiting)
        settle(tx, set(waiting) - {*again}, State.PENDING)
        tx.changed = True


def _reopen_member(tx: Transaction, uid: str) -> None:
    row = tx.db.execute("SELECT dag, ended FROM member WHERE uid = ?", (uid,)).fetchone()
    if row is None or row[1] is None:
        return
    dag, ended = row
    tx.db.execute("UPDATE member SET ended = NULL WHERE uid = ?", (uid,))
    reopen_graph(tx, dag, bad=int(ended == "badly"))


def reopen_graph(tx: Transaction, dag: str, *, bad: int = 0, joining: int = 0) -> None:
    """One more of its members has not ended; a graph that had ended runs again."""
    row = tx.db.execute(
        "UPDATE graph SET open = open + 1, bad = bad - ?, total = total + ? WHERE id = ?"
        " RETURNING state", (bad, joining, dag),
    ).fetchone()  # fmt: skip
    if row is not None and row[0] != "running":
        tx.db.execute(
            "UPDATE graph SET state = 'running', ended_at = NULL, reason = '' WHERE id = ?", (dag,)
        )
        tx.event("dag_reopened", dag, by=BY_GRAPH)


_ADD_MEMBER = """
INSERT INTO member (uid, dag, place, name)
SELECT :uid, :dag, coalesce(max(place), -1) + 1, :name FROM member WHERE dag = :dag
"""


def add_member(tx: Transaction, uid: str, dag: str, name: str | None) -> None:
    """One more task in a graph whose home is here; one that had ended runs again."""
    tx.live.graphs = True
    tx.db.execute(_ADD_MEMBER, {"uid": uid, "dag": dag, "name": name})
    reopen_graph(tx, dag, joining=1)
    tx.changed = True


_TO_LIFE = (
    "UPDATE task SET state = 'READY', completed_at = NULL, failure_reason = NULL, agent = NULL"
    f" WHERE seq = ? AND {may_change(State.READY, State.CANCELLED)}"
)


def _revive(tx: Transaction, uids: Iterable[str]) -> list[str]:
    """Those that only this end had ended wait again; another bad end still holds the others."""
    revived = [one for one in standings(tx, set(uids), State.CANCELLED)
               if one.verdict.kind == "waits"]  # fmt: skip
    tx.db.executemany(_TO_LIFE, [(one.seq,) for one in revived])
    tx.db.executemany(TO_PENDING, [(one.seq,) for one in revived])
    tx.db.executemany(
        BLOCK, [(HOLDS[WAITS_FOR], one.seq, HOLDS[WAITS_FOR]) for one in revived]
    )
    tx.db.executemany("DELETE FROM fell WHERE uid = ?", [(one.uid,) for one in revived])
    for one in revived:
        tx.moves(State.CANCELLED, State.PENDING)
        tx.event("task_revived", one.uid, was=State.CANCELLED, state=State.PENDING, by=BY_GRAPH,
                 because="what had ended it lives again")  # fmt: skip
    return [one.uid for one in revived]


def insist(tx: Transaction, uid: str, state: State = State.READY) -> None:
    """A person wants this task to run, whatever ended badly before it. `state`: its own by now."""
    if not tx.live.graphs:
        return
    tx.db.execute("UPDATE edge SET on_failure = 'run' WHERE uid = ? AND came = 'badly'", (uid,))
    if tx.db.execute("DELETE FROM fell WHERE uid = ?", (uid,)).rowcount:
        tx.db.execute("UPDATE task SET failure_reason = NULL WHERE uid = ?", (uid,))
    alive_again(tx, uid)
    settle(tx, [uid], state)


def ended_by_word(tx: Transaction, uid: str, was: State, new: State) -> None:
    """A person ended it. What a death had ended lives again where the work is done after all."""
    if was is State.DEAD_LETTERED and new is State.COMPLETED:
        alive_again(tx, uid)
    after_end(tx, uid, new)
