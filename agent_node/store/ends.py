"""Lets what waits for a task go on when it has ended, and ends graphs with their last task.

All of it happens in the transaction that records the end, and in one pass: a chain of ten
thousand tasks is a loop here, and no depth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..readiness import BY_GRAPH, Came, came_of, is_unheard
from ..task import State
from ..text import counted
from .artifact_inputs import arrive
from .edges import HOLDS, INPUTS_MISSING, WAITS_FOR, Standing, hold_of_inputs, standings
from .planting import plant_following
from .transaction import Transaction, may_change

_ARRIVE = "UPDATE edge SET came = ? WHERE needs = ? AND came IS NULL RETURNING uid"
_INPUT_HERE = (
    "UPDATE input SET here = 1 WHERE source = ? AND here = 0 AND kind NOT IN ('artifact', ?)"
    " RETURNING uid"
)
_TOLD = (
    "SELECT because FROM told WHERE uid = ? AND NOT EXISTS (SELECT 1 FROM task t"
    " WHERE t.uid = told.uid AND t.state <> 'HELD')"
)
_CLOSE = "UPDATE member SET ended = ? WHERE uid = ? AND ended IS NULL RETURNING dag"


def after_end(tx: Transaction, uid: str, state: str, because: str | None = None) -> None:
    """Called wherever a task ends. Where nothing waits for anything it costs one look at a flag."""
    came = came_of(state, because) if tx.live.graphs else None
    if came is not None:
        spread(tx, {uid: came})


def spread(tx: Transaction, came: dict[str, Came]) -> None:
    """These ended: whatever waits for them is released, ended in its turn, or waits on."""
    while came:
        closed = _close_members(tx, came)
        touched: set[str] = set()
        for uid, how in came.items():
            touched.update(dep for (dep,) in tx.db.execute(_ARRIVE, (how, uid)))
            touched.update(dep for (dep,) in tx.db.execute(_INPUT_HERE, (uid, _lacks(tx, uid))))
            touched |= arrive(tx, uid)
        came = settle(tx, touched, State.PENDING) if touched else {}
        came |= _count_ends(tx, closed)
        tx.changed = True


def _lacks(tx: Transaction, uid: str) -> str:
    """What of this ended task nobody has told yet, beside its files; empty: nothing is missing."""
    (because,) = tx.db.execute(_TOLD, (uid,)).fetchone() or (None,)
    return "output" if is_unheard(because) else ""


def _close_members(tx: Transaction, came: dict[str, Came]) -> Counter[tuple[str, bool]]:
    closed: Counter[tuple[str, bool]] = Counter()
    for uid, how in came.items():
        row = tx.db.execute(_CLOSE, (how, uid)).fetchone()
        if row is not None:
            closed[row[0], how == "badly"] += 1
    return closed


def settle(tx: Transaction, uids: Iterable[str], *states: State) -> dict[str, Came]:
    """Carry out what its edges say of each of these tasks; those that ended by it, and how."""
    release: list[Standing] = []
    waits: list[tuple[Standing, str]] = []
    fell: list[Standing] = []
    for one in standings(tx, uids, *states):
        if one.verdict.kind in ("fails", "skips"):
            fell.append(one)
        elif one.verdict.kind == "waits":
            waits.append((one, WAITS_FOR))
        elif one.lacks:
            waits.append((one, INPUTS_MISSING))
        else:
            release.append(one)
    _release(tx, [one for one in release if one.state == State.PENDING])
    hold(tx, waits)
    _fell(tx, fell)
    return {one.uid: one.verdict.came for one in fell}


_TO_READY = (
    "UPDATE task SET state = 'READY', blocked_by = '[]', wake_at = NULL, ready_at = ?,"
    " released = 1"
    f" WHERE seq = ? AND {may_change(State.READY, State.PENDING)}"
)
_TO_LATER = (
    "UPDATE task SET blocked_by = '[]', wake_at = not_before WHERE seq = ? AND state = 'PENDING'"
)


def _release(tx: Transaction, waiting: list[Standing]) -> None:
    """Nothing holds them any more but perhaps the hour before which they must not start."""
    later = [one for one in waiting if one.not_before is not None and one.not_before > tx.stamp]
    tx.db.executemany(_TO_LATER, [(one.seq,) for one in later])
    ready = [one for one in waiting if one.not_before is None or one.not_before <= tx.stamp]
    if not ready:
        return
    tx.db.executemany(_TO_READY, [(tx.stamp, one.seq) for one in ready])
    tx.moves(State.PENDING, State.READY, len(ready))
    for one in ready:
        tx.event("task_ready", one.uid, was=State.PENDING, state=State.READY, by=BY_GRAPH,
                 because="what it waited for has ended")  # fmt: skip


TO_PENDING = (
    "UPDATE task SET state = 'PENDING', ready_at = NULL WHERE seq = ?"
    f" AND {may_change(State.PENDING, State.READY)}"
)
BLOCK = (
    "UPDATE task SET blocked_by = ?, wake_at = NULL WHERE seq = ? AND state = 'PENDING'"
    " AND blocked_by <> ?"
)


def hold(tx: Transaction, waiting: list[tuple[Standing, str]]) -> None:
    """They wait from now on, and say for what."""
    from_ready = [(one, rule) for one, rule in waiting if one.state == State.READY]
    tx.db.executemany(TO_PENDING, [(one.seq,) for one, _ in from_ready])
    holds = [(hold_of_inputs(tx, one.uid) if rule == INPUTS_MISSING else HOLDS[rule], one.seq)
             for one, rule in waiting]  # fmt: skip
    tx.db.executemany(BLOCK, [(held, seq, held) for held, seq in holds])
    for one, rule in from_ready:
        tx.moves(State.READY, State.PENDING)
        tx.event("task_blocked", one.uid, was=State.READY, state=State.PENDING, by=BY_GRAPH,
                 because=rule)  # fmt: skip


_NOT_BEGUN = (State.PENDING, State.READY)
_TO_CANCELLED = (
    "UPDATE task SET state = 'CANCELLED', blocked_by = '[]', wake_at = NULL, completed_at = ?,"
    f" failure_reason = ? WHERE seq = ? AND {may_change(State.CANCELLED, *_NOT_BEGUN)}"
)


def _fell(tx: Transaction, fell: list[Standing]) -> None:
    """They will never run, and nobody has to be asked: that is what their edges say."""
    tx.db.executemany(
        _TO_CANCELLED, [(tx.stamp, one.verdict.because, one.seq) for one in fell]
    )
    tx.db.executemany(
        "INSERT OR REPLACE INTO fell (uid, because_of) VALUES (?, ?)",
        [(one.uid, one.verdict.uid) for one in fell],
    )
    for one in fell:
        tx.moves(one.state, State.CANCELLED)
        tx.event("task_cancelled", one.uid, was=one.state, state=State.CANCELLED, by=BY_GRAPH,
                 because=one.verdict.because)  # fmt: skip


# --- Graphs end with their members -------------------------------------------------------------

_COUNT = """
UPDATE graph SET open = open - ?, bad = bad + ? WHERE id = ?
RETURNING open, bad, state, then_document
"""


def _count_ends(tx: Transaction, closed: Counter[tuple[str, bool]]) -> dict[str, Came]:
    """Count members that ended; a graph whose last one did so ends, and what follows it begins."""
    fallen: dict[str, Came] = {}
    for dag in sorted({dag for dag, _ in closed}):
        bad = closed[dag, True]
        still, badly, state, following = tx.db.execute(
            _COUNT, (closed[dag, False] + bad, bad, dag)
        ).fetchone() or (1, 0, "", None)
        if still == 0 and state == "running":
            _end_graph(tx, dag, "failed" if badly else "completed")
            if not badly and following is not None:
                born = plant_following(tx, dag)
                fallen |= settle(tx, born, State.PENDING) if born else {}
    return fallen


_END_GRAPH = "UPDATE graph SET state = ?, ended_at = ? WHERE id = ? RETURNING title, bad, total"


def _end_graph(tx: Transaction, dag: str, state: str) -> None:
    title, bad, total = tx.db.execute(_END_GRAPH, (state, tx.stamp, dag)).fetchone()
    badly = state == "failed"
    tx.event(f"dag_{state}", dag, by=BY_GRAPH,
             because=f"{bad} of {counted(total, 'task')} ended badly" if badly else None,
             data={"title": title} if badly else None)  # fmt: skip
