"""Gives each task its turn, and brings it forward when its deadline comes nearer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from ..budget import midnight_after
from ..clock import iso, parse_iso
from ..priority import (
    POINT,
    URGENCY_MAX,
    USUAL_PACE,
    Turn,
    arrived_of,
    arriving,
    base_of,
    class_of,
    effective,
    grown,
    shown,
    standing,
    tier,
    turn_of,
    urgency_of,
)
from ..strict import JsonObject
from ..task import Task
from .care import GRACE_S
from .transaction import Transaction

URGED_MAX = 1000  # deadlines that one Wake looks at; the next one follows at once
_STANDS_STILL_MS = 60_000
_PULL = (
    "INSERT INTO pull (uid, weight, urgency, urge_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (uid) DO UPDATE SET weight = excluded.weight, urgency = excluded.urgency,"
    " urge_at = excluded.urge_at"
)


def milliseconds(moment: datetime) -> int:
    """Since 1970, as turns count; a clock that is not set yet is not before that."""
    return max(int(moment.timestamp() * 1000), 0)


def first_turn(
    tx: Transaction, task: Task, *, weight: float = 0.0, since: str | None = None
) -> Turn:
    """The turn of a task that comes here now; `since` is when it began to wait elsewhere."""
    if (
        task.boost_per_minute is None
        and task.deadline is None
        and not (task.heat or weight or task.not_before)
    ):
        stands = base_of(task.priority, task.priority_100) * POINT
        if since is None:
            return Turn(USUAL_PACE, stands + usual_growth(tx))
        now = order_ms(tx)
        arrived = min(milliseconds(parse_iso(since)), now)
        return Turn(USUAL_PACE, arriving(stands, USUAL_PACE, arrived_ms=arrived, now_ms=now))
    now = order_ms(tx)
    urgency = _draw(tx, task, weight=weight, now=now)
    arrived = now if since is None else min(milliseconds(parse_iso(since)), now)
    if task.not_before is not None:  # what must not start yet does not wait yet
        arrived = max(arrived, milliseconds(parse_iso(task.not_before)))
    pace = class_of(task.boost_per_minute)
    _note_pace(tx, pace)
    stands = standing(
        base_of(task.priority, task.priority_100), urgency=urgency, weight=weight, heat=task.heat
    )
    to_come = URGENCY_MAX - urgency if task.deadline is not None else 0
    return Turn(pace, arriving(stands, pace, arrived_ms=arrived, now_ms=now, to_come=to_come))


def order_ms(tx: Transaction) -> int:
    """This moment as turns count it, the same for a whole transaction.

    A clock that is put back a little stands still instead; after more than that, whoever arrived
    at a time that is still to come arrives now.
    """
    if tx.order_ms is None:
        tx.order_ms, known = milliseconds(tx.now), tx.live.order_ms
        if known is not None and tx.order_ms < known:
            if known - tx.order_ms <= _STANDS_STILL_MS:
                tx.order_ms = known
            else:
                _mend_turns(tx)
    return tx.order_ms


def last_moment(db: sqlite3.Connection) -> int | None:
    """When something was last written down here; None: nothing ever was. ValueError: a moment
    stands there that is none.
    """
    row = db.execute("SELECT at FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    return None if row is None else milliseconds(parse_iso(str(row[0])))


def usual_growth(tx: Transaction) -> int:
    """What a turn of the usual pace has grown by at this moment."""
    if tx.usual_growth is None:
        tx.usual_growth = grown(USUAL_PACE, order_ms(tx))
    return tx.usual_growth


def _draw(tx: Transaction, task: Task, *, weight: float, now: int) -> int:
    """What the deadline gives by now; when it gives more stands in the table."""
    urgency, more_at = 0, None
    if task.deadline is not None:
        urgency, more_at = urgency_of(milliseconds(parse_iso(task.deadline)), now)
    tx.live.weighed = tx.live.weighed or weight > 0
    if weight or more_at is not None or urgency:
        tx.write_later(_PULL, (task.uid, weight, urgency, _moment(more_at)))
    return urgency


def _moment(at_ms: int | None) -> str | None:
    if at_ms is None:
        return None
    return iso(datetime.fromtimestamp(at_ms / 1000, tz=UTC))


def _note_pace(tx: Transaction, pace: int) -> None:
    """A claim looks only at paces that are in use here."""
    if pace != USUAL_PACE:
        tx.live.paces.add(pace)
        tx.write_later("INSERT OR IGNORE INTO pace (pace) VALUES (?)", (pace,))


_ROW = """
SELECT t.pace, t.turn, coalesce(p.weight, 0), coalesce(p.urgency, 0)
  FROM task t LEFT JOIN pull p ON p.uid = t.uid WHERE t.uid = ?
"""


def set_anew(tx: Transaction, was: Task, task: Task) -> None:
    """A person changed what the order goes by; the age stays what it was."""
    if all(getattr(was, name) == getattr(task, name) for name in _GOES_BY):
        return
    pace, turn, weight, urgency = tx.db.execute(_ROW, (task.uid,)).fetchone()
    arrived = arrived_of(turn, pace, _stands(was, urgency, weight))
    if task.not_before != was.not_before and task.not_before is not None:
        arrived = max(arrived, milliseconds(parse_iso(task.not_before)))
    _write(tx, task, weight=weight, arrived=arrived)


def arrive_anew(tx: Transaction, task: Task) -> None:
    """A person tries a task again that had ended: it waits from now on, or from its time on."""
    *_, weight, _urgency = tx.db.execute(_ROW, (task.uid,)).fetchone()
    later = milliseconds(parse_iso(task.not_before)) if task.not_before else 0
    _write(tx, task, weight=weight, arrived=max(order_ms(tx), later))


def _write(tx: Transaction, task: Task, *, weight: float, arrived: int) -> None:
    now = order_ms(tx)
    urgency, pace = _draw(tx, task, weight=weight, now=now), class_of(task.boost_per_minute)
    if task.deadline is None:
        tx.write_later("UPDATE pull SET urgency = 0, urge_at = NULL WHERE uid = ?", (task.uid,))
    _note_pace(tx, pace)
    turn = turn_of(_stands(task, urgency, weight), pace, arrived)
    tx.db.execute("UPDATE task SET pace = ?, turn = ? WHERE uid = ?", (pace, turn, task.uid))


_GOES_BY = ("priority", "priority_100", "boost_per_minute", "heat", "deadline", "not_before")


def _stands(task: Task, urgency: int, weight: float) -> int:
    base = base_of(task.priority, task.priority_100)
    return standing(base, urgency=urgency, weight=weight, heat=task.heat)


_DUE = """
SELECT p.uid, p.urgency, t.deadline FROM pull p LEFT JOIN task t
    ON t.uid = p.uid AND (t.state = 'READY' OR t.completed_at IS NULL)
 WHERE p.urge_at <= ? ORDER BY p.urge_at LIMIT ?
"""


def urge(tx: Transaction) -> None:
    """Deadlines that came so near that they count for more bring their tasks forward."""
    order_ms(tx)
    rows = tx.db.execute(_DUE, (tx.stamp, URGED_MAX)).fetchall()
    now = order_ms(tx)
    for uid, before, deadline in rows:
        points, more_at = before, None
        if deadline is not None:
            points, more_at = urgency_of(milliseconds(parse_iso(deadline)), now)
        values = (points, _moment(more_at), uid)
        tx.db.execute("UPDATE pull SET urgency = ?, urge_at = ? WHERE uid = ?", values)
        nearer = (points - before) * POINT
        if nearer:
            tx.db.execute("UPDATE task SET turn = turn - ? WHERE uid = ?", (nearer, uid))
            if tx.live.ready is not None:
                tx.live.ready.turned.add(uid)
    if rows:
        tx.changed = True


_STANDS = f"""cast(round({POINT} * (rank - coalesce(heat, 0)
       - coalesce((SELECT p.urgency + p.weight FROM pull p WHERE p.uid = task.uid), 0))) AS INTEGER)
"""
_ARRIVE_NOW = f"""
UPDATE task SET turn = :now + {_STANDS}
 WHERE pace = :pace AND turn > :now + {_STANDS} AND wake_at IS NULL AND completed_at IS NULL
"""


def _mend_turns(tx: Transaction) -> None:
    """Who arrived at a time that is still to come would wait for it, behind all newcomers.

    A clock was wrong then, so such tasks arrive now. It is rare, and reads every row.
    """
    tx.live.ready = None
    for pace in {USUAL_PACE, *tx.live.paces}:
        values = {"now": grown(pace, order_ms(tx)), "pace": pace}
        if tx.db.execute(_ARRIVE_NOW, values).rowcount:
            tx.changed = True
    for statement in _COME_SOONER:
        soon = {"now": tx.stamp, "grace": iso(tx.now + timedelta(seconds=GRACE_S)),
                "midnight": midnight_after(tx.now)}  # fmt: skip
        if tx.db.execute(statement, soon).rowcount:
            tx.changed = True


# A failure that lies ahead was written by the wrong clock, and so was the time of its retry: it is
# as long from now as it was from then. What a person said (`not_before`) stays. And who is READY
# since an hour that is still to come waits from now: else nobody would seem to wait until then.
_ENDED_AT = "(SELECT a.ended_at FROM attempt a WHERE a.uid = task.uid AND a.n = task.attempt)"
_COME_SOONER = (
    f"""
UPDATE task SET wake_at = strftime('%Y-%m-%dT%H:%M:%fZ', :now,
       ((julianday(wake_at) - julianday({_ENDED_AT})) * 86400.0) || ' seconds')
 WHERE state = 'RETRYING' AND wake_at > :now AND {_ENDED_AT} > :now""",
    f"""
UPDATE care SET until = max(:grace, coalesce((SELECT strftime('%Y-%m-%dT%H:%M:%fZ', t.wake_at,
       '{GRACE_S} seconds') FROM task t WHERE t.uid = care.uid AND t.state = 'RETRYING'), ''))
 WHERE until > :grace""",
    "UPDATE unaffordable SET until = :midnight WHERE until > :midnight",
    "UPDATE task SET ready_at = :now, released = 1 WHERE state = 'READY' AND ready_at > :now",
)


def orders_of(tx: Transaction, uids: Iterable[str]) -> dict[str, JsonObject]:
    """By uid what a task that has not ended is worth at this moment, and its tier."""
    now = milliseconds(tx.now)
    found: dict[str, JsonObject] = {}
    for uid in uids:
        row = tx.db.execute(_OPEN, (uid,)).fetchone()
        if row is not None:
            worth = effective(Turn(*row), now)
            found[uid] = {"effective": shown(worth), "tier": tier(worth)}
    return found


_OPEN = "SELECT pace, turn FROM task WHERE uid = ? AND completed_at IS NULL"
