"""Sets aside tasks that cannot be afforded, and brings them back when they can."""

from __future__ import annotations

from decimal import Decimal
from functools import reduce

from ..budget import (
    DAG,
    DAILY,
    NOTHING,
    URGENT,
    Purse,
    amount_of,
    comes_back,
    enough_for,
    midnight_after,
    minus,
    objection,
    plus,
    text_of,
)
from ..strict import JsonValue
from ..task import State
from .by_state import by_state
from .transaction import Transaction, may_change, to_json

RULE = "over_budget"
_HOLD = f"""
UPDATE task SET state = 'PENDING', ready_at = NULL, blocked_by = ? WHERE uid = ?
   AND {may_change(State.PENDING, State.READY)}
"""
# The books of a graph are kept as long as anything of it may still spend.
_OF_NO_GRAPH = f"""
substr(scope, 1, {len(DAG)}) = '{DAG}'
AND NOT EXISTS (SELECT 1 FROM graph g WHERE g.id = substr(scope, {len(DAG) + 1}))
AND scope NOT IN (SELECT scope FROM reservation)
AND substr(scope, {len(DAG) + 1}) NOT IN (
    SELECT json_extract(spec, '$.dag') FROM task
     WHERE state = 'READY' AND json_extract(spec, '$.dag') IS NOT NULL
    UNION ALL
    SELECT json_extract(spec, '$.dag') FROM task
     WHERE {by_state()} AND json_extract(spec, '$.dag') IS NOT NULL)
"""
_NOTE = "INSERT OR REPLACE INTO unaffordable (uid, scope, asks, until) VALUES (?, ?, ?, ?)"
# A person, or an edge, may have changed since what the task waits for.
_WAITS = "t.state = 'PENDING' AND instr(t.blocked_by, '\"over_budget\"') > 0"
_NEVER = "'\"comes_back\":false'"
_FREE = f"""
UPDATE task AS t SET state = 'READY', ready_at = ?, blocked_by = '[]', released = 1
 WHERE uid = ? AND {_WAITS}
   AND {may_change(State.READY, State.PENDING)}
"""
# The hour before which a person does not want it to start is still to come.
_TO_LATER = f"""
UPDATE task AS t SET blocked_by = '[]', wake_at = not_before
 WHERE uid = ? AND not_before > ? AND {_WAITS}
"""


def set_aside(tx: Transaction, uid: str, *, purse: Purse, asks: Decimal, why: str) -> bool:
    """READY becomes PENDING, and says why, of whose money, and which limit would be enough; False
    when the task was not READY.
    """
    scope = purse.scope
    if not tx.db.execute(_HOLD, (_reason(purse, asks, why), uid)).rowcount:
        return False
    until = midnight_after(tx.now) if scope in DAILY else None
    tx.db.execute(_NOTE, (uid, scope, text_of(asks), until))
    tx.moves(State.READY, State.PENDING)
    tx.event("task_blocked", uid, was="READY", state="PENDING", because=f"{RULE}: {why}")
    return True


def _reason(purse: Purse, asks: Decimal, why: str) -> str:
    return to_json(reasons_of(purse, asks, why))


def reasons_of(
    purse: Purse, asks: Decimal, why: str, *, ahead: Decimal = NOTHING
) -> list[JsonValue]:  # fmt: skip
    """Why it waits, as `blocked_by` has it. `ahead`: what those ask for that wait before it."""
    return [{
        "rule": RULE, "text": why, "scope": purse.scope,
        "enough_usd": text_of(enough_for(purse, asks, ahead)),
        "comes_back": comes_back(purse, asks),
    }]  # fmt: skip


def tell_anew(tx: Transaction, purse: Purse, *, uid: str | None = None) -> int:
    """After a word on its limit: what still waits for it says how it stands now, not as it was, and
    what is urgent enough to go on regardless does: how many. `uid`: of that task alone.
    """
    rows = tx.db.execute(
        f"SELECT u.uid, u.asks, t.priority FROM unaffordable u JOIN task t ON t.uid = u.uid"
        f" AND {_WAITS} WHERE u.scope = ?1 AND (?2 IS NULL OR u.uid = ?2)",
        (purse.scope, uid),
    ).fetchall()
    freed = 0
    for one, text, priority in rows:
        if purse.urgent_overdraft and priority <= URGENT:
            freed += _free(tx, one, "it is urgent, and may go on over budget")
            continue
        asks = amount_of(text)
        why = objection(purse, asks, priority, at=tx.stamp)
        if why is not None:
            values = (_reason(purse, asks, why), one)
            tx.db.execute("UPDATE task SET blocked_by = ? WHERE uid = ?", values)
            tx.changed = True
    return freed


def bring_back(tx: Transaction, scope: str, room: Decimal | None) -> int:
    """The first of those that fit into what is left now; None: there is no limit any more."""
    if room is not None and room <= 0:
        return 0
    rows = tx.db.execute(
        f"SELECT u.uid, u.asks FROM unaffordable u JOIN task t ON t.uid = u.uid AND {_WAITS}"
        " WHERE u.scope = ? ORDER BY t.turn, t.seq",
        (scope,),
    ).fetchall()
    freed = 0
    for uid, text in rows:
        asks = NOTHING if room is None else amount_of(text)
        if (room is None or asks <= room) and _free(tx, uid, "there is money for it again"):
            room = None if room is None else minus(room, asks)
            freed += 1
    return freed


def day_turned(tx: Transaction) -> int:
    """What waited for the next day waits no longer for that."""
    rows = tx.db.execute("SELECT uid FROM unaffordable WHERE until <= ?", (tx.stamp,)).fetchall()
    return sum(_free(tx, uid, "a new day") for (uid,) in rows)


def _free(tx: Transaction, uid: str, because: str) -> int:
    """It waits for money no more: READY, or PENDING until its `not_before`."""
    tx.db.execute("DELETE FROM unaffordable WHERE uid = ?", (uid,))
    tx.changed = True
    if tx.db.execute(_TO_LATER, (uid, tx.stamp)).rowcount:
        return 0
    if not tx.db.execute(_FREE, (tx.stamp, uid)).rowcount:
        return 0
    tx.moves(State.PENDING, State.READY)
    tx.event("task_ready", uid, was="PENDING", state="READY", because=because)
    return 1


def waits_behind(tx: Transaction, uid: str) -> tuple[str, Decimal, Decimal] | None:
    """Whose money this one waits for, how much of it, and how much those ask for that would go on
    before it; None: it waits for none.
    """
    row = tx.db.execute(
        "SELECT u.scope, u.asks, t.turn, t.seq FROM unaffordable u JOIN task t ON t.uid = u.uid"
        f" AND {_WAITS} WHERE u.uid = ?",
        (uid,),
    ).fetchone()
    if row is None:
        return None
    scope, asks, *place = row
    before = tx.db.execute(
        f"SELECT u.asks FROM unaffordable u JOIN task t ON t.uid = u.uid AND {_WAITS}"
        " WHERE u.scope = ? AND (t.turn, t.seq) < (?, ?)",
        (scope, *place),
    )
    return scope, amount_of(asks), reduce(plus, (amount_of(one) for (one,) in before), NOTHING)


def waiting_for(tx: Transaction, scope: str) -> int:
    """How many tasks wait for money of this scope."""
    (number,) = tx.db.execute(
        f"SELECT count(*) FROM unaffordable u JOIN task t ON t.uid = u.uid AND {_WAITS}"
        " WHERE u.scope = ?",
        (scope,),
    ).fetchone()
    return int(number)


def forget_money(tx: Transaction, *, before: str) -> None:
    """Let go of old days, of graphs that are gone, and of tasks that are or wait for no money."""
    tx.db.execute(
        "DELETE FROM unaffordable WHERE NOT EXISTS"
        f" (SELECT 1 FROM task t WHERE t.uid = unaffordable.uid AND {_WAITS})"
    )
    tx.db.execute(
        "DELETE FROM told_cost WHERE NOT EXISTS"
        " (SELECT 1 FROM tombstone m WHERE m.uid = told_cost.uid)"
        " AND NOT EXISTS (SELECT 1 FROM member m WHERE m.uid = told_cost.uid)"
    )
    tx.db.execute(
        "DELETE FROM spending WHERE day <> '' AND day < ? AND reserved = '0'", (before[:10],)
    )
    tx.db.execute(f"DELETE FROM budget WHERE {_OF_NO_GRAPH}")
    tx.db.execute(f"DELETE FROM spending WHERE {_OF_NO_GRAPH}")


def unaffordable_counts(tx: Transaction) -> tuple[int, int]:
    """How many tasks wait for money, of whatever scope; and how many of them no day brings any."""
    if not tx.live.budgeted:
        return 0, 0
    number, never = tx.db.execute(
        f"SELECT count(*), count(*) FILTER (WHERE instr(t.blocked_by, {_NEVER}) > 0)"
        f" FROM unaffordable u JOIN task t ON t.uid = u.uid AND {_WAITS}"
    ).fetchone()
    return int(number), int(never)
