"""Answers what happened here: the events of one task, its moves, and all events by number."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from ..lines import encode
from ..queries import Events
from ..strict import JsonObject, JsonValue
from .history import ATTEMPTS
from .move_tables import OF_A_MOVE
from .transaction import Transaction

SHOWN_MAX = 1024 * 1024  # bytes of the events of one task that are told with it
# A move names the two events that tell of it, and an attempt its own: one when it was claimed, one
# when it started, and up to two in one transaction at its end (it failed, and what follows).
_EVENT = (
    f"e.seq, e.at, e.uid, nullif(e.n, {OF_A_MOVE}) AS n, e.event, e.was, e.state, e.by, e.because,"
    " e.data"
)
_EVENTS_OF = f"""
SELECT {_EVENT} FROM event e WHERE uid = :uid AND n IS NULL
UNION
SELECT {_EVENT} FROM transfer x JOIN event e
    ON e.seq IN (x.begun_event, x.ended_event) AND e.uid = x.uid
 WHERE x.uid = :uid
UNION
SELECT {_EVENT} FROM {ATTEMPTS} a JOIN event e
    ON e.seq IN (a.claim_event, a.start_event, a.end_event - 1, a.end_event)
   AND e.uid = a.uid AND e.n = a.n
 ORDER BY 1
"""


def events_of(tx: Transaction, uid: str) -> tuple[JsonObject, ...]:
    """What happened to one task, the newest of it where it was much, in order."""
    return _newest(_dicts(tx.db, _EVENTS_OF, {"uid": uid}))


_MOVES_OF = """
SELECT xfer, uid, epoch, side, peer, peer_incarnation, why, outcome, rule, because, lease_boot,
       lease_until, at, settled_at
  FROM transfer WHERE uid = ? ORDER BY xfer
"""


def moves_of(tx: Transaction, uid: str) -> tuple[JsonObject, ...]:
    """The transfers of one task that are known here."""
    return _dicts(tx.db, _MOVES_OF, (uid,))


def _newest(events: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """As many as an answer holds beside all else; a task may have been tried for weeks."""
    left, kept = SHOWN_MAX, list[JsonObject]()
    for event in reversed(events):
        left -= len(encode(event).encode())
        if left < 0:
            break
        kept.append(event)
    return tuple(reversed(kept))


def _dicts(
    db: sqlite3.Connection, query: str, values: tuple[object, ...] | dict[str, object]
) -> tuple[JsonObject, ...]:
    cursor = db.execute(query, values)
    names = [column[0] for column in cursor.description]
    return tuple(_dict(names, row) for row in cursor)


def _dict(names: list[str], row: tuple[JsonValue, ...]) -> JsonObject:
    said: JsonObject = {
        name: value for name, value in zip(names, row, strict=True) if value is not None
    }
    for name in ("data", "traits"):
        if isinstance(said.get(name), str):
            said[name] = json.loads(str(said[name]))
    return said


_DOMAIN = """,
  CASE WHEN e.event IN ('task_completed', 'task_failed') THEN t.domain END AS domain,
  CASE WHEN e.event IN ('task_completed', 'task_failed')
       THEN json_extract(t.spec, '$.type') END AS type"""
# Who made it is told by its kind alone; what a task is about is nobody's business here.
_TRAITS = """,
  CASE WHEN t.uid IS NOT NULL
        AND e.event IN ('task_added', 'task_held', 'task_arrived', 'task_claimed') THEN
    json_object('priority', t.priority, 'domain', t.domain, 'skills', json(t.skills),
                'needs', json(t.needs), 'pinned', json(iif(t.pinned, 'true', 'false')),
                'expected_s', t.expected_s,
                'source', substr(t.source, 1, instr(t.source || ':', ':') - 1))
  END AS traits"""
_EVENTS = f"SELECT {_EVENT}{{also}} FROM event e {{tasks}} WHERE e.seq > ? ORDER BY e.seq LIMIT ?"
_OF_TASKS = "LEFT JOIN task t ON t.uid = e.uid"


def events(tx: Transaction, query: Events) -> tuple[JsonObject, ...]:
    """Numbered events after a number, oldest first."""
    also = (_DOMAIN if query.domains else "") + (_TRAITS if query.traits else "")
    asked = (query.after_seq, query.limit)
    return _dicts(tx.db, _EVENTS.format(also=also, tasks=_OF_TASKS if also else ""), asked)
