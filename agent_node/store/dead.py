"""Keeps what is known of dead letters: what spoke against them, who looked, what became of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from ..commands import Because, Changed, Review
from ..queries import DeadLetter, DeadLetters, DeadPage
from ..strict import JsonObject
from ..task import State, Task
from .by_state import by_state
from .giving import gone
from .history import ATTEMPTS
from .rows import WITHOUT_BODY, find_task, task_of, with_history
from .senders import check_not_quarantined, check_sender
from .transaction import Transaction, to_json

_SAID = "uid, poison, reviewed, resolution"
_DIED = """
INSERT INTO care (uid, poison) VALUES (:uid, :poison)
ON CONFLICT (uid) DO UPDATE SET poison = :poison, reviewed = NULL, resolution = NULL
"""
_NOTE = """
INSERT INTO care (uid, {name}) VALUES (:uid, :said)
ON CONFLICT (uid) DO UPDATE SET {name} = :said
"""
_KNOWN = f"""
SELECT {_SAID} FROM care WHERE uid IN (SELECT value FROM json_each(?))
   AND (poison = 1 OR reviewed IS NOT NULL OR resolution IS NOT NULL)
"""
_COSTS = f"SELECT cost_usd FROM {ATTEMPTS} WHERE cost_usd IS NOT NULL"
_PAGE = f"""
SELECT {WITHOUT_BODY} FROM task
 WHERE seq > :after AND seq IN (
       SELECT seq FROM task WHERE {by_state(State.DEAD_LETTERED)}
       UNION ALL
       SELECT t.seq FROM care r CROSS JOIN task t ON t.uid = r.uid
        WHERE :resolved AND r.resolution IS NOT NULL AND t.state <> 'DEAD_LETTERED')
   AND (NOT :poison OR uid IN (SELECT uid FROM care WHERE poison = 1))
 ORDER BY seq LIMIT :limit
"""


def note_death(tx: Transaction, uid: str, *, poison: bool) -> None:
    """The task is dead now; what was said of an earlier death of it is over."""
    tx.db.execute(_DIED, {"uid": uid, "poison": int(poison)})


def note_resolution(tx: Transaction, uid: str, *, what: str, by: str, reason: str) -> None:
    """Somebody decided what becomes of a dead letter."""
    said: JsonObject = {"what": what, "by": by, "at": tx.stamp, "reason": reason}
    _note(tx, uid, "resolution", said)


def _note(tx: Transaction, uid: str, name: str, said: JsonObject) -> None:
    tx.db.execute(_NOTE.format(name=name), {"uid": uid, "said": to_json(said)})


def review(tx: Transaction, command: Review) -> Changed:
    """Who looked at a dead letter, when, and what they noted. Looking again writes anew."""
    sender, uid = command.sender, command.uid
    check_sender(tx, incarnation=sender.incarnation, term=sender.term)
    check_not_quarantined(tx)
    row = tx.db.execute("SELECT state FROM task WHERE uid = ?", (uid,)).fetchone()
    if row is None:
        return Changed(uid, "refused", because=gone(tx, uid))
    if row[0] != State.DEAD_LETTERED:
        because = Because("not_dead", f"{uid} is {row[0]}; only dead letters are reviewed")
        return Changed(uid, "refused", because=because)
    _note(tx, uid, "reviewed", {"by": sender.by, "at": tx.stamp, "note": command.reason})
    tx.event("task_reviewed", uid, by=sender.by, because=command.reason or None)
    return Changed(uid, "changed", find_task(tx, uid))


def cares_of(tx: Transaction, uids: Iterable[str]) -> dict[str, JsonObject]:
    """By uid, what is known of those that are or were dead letters; nothing for all others."""
    rows = tx.db.execute(_KNOWN, (json.dumps([*uids]),)).fetchall()
    return {uid: _said(*said) for uid, *said in rows}


def _said(poison: int, reviewed: str | None, resolution: str | None) -> JsonObject:
    return {
        "poison": bool(poison),
        "reviewed": None if reviewed is None else json.loads(reviewed),
        "resolution": None if resolution is None else json.loads(resolution),
    }


def care_of(tx: Transaction, uid: str) -> JsonObject:
    """The same of one task, with what all its attempts cost together; null: none named a cost."""
    known = cares_of(tx, [uid]).get(uid) or _said(0, None, None)
    return {**known, "total_cost_usd": total_cost(tx, uid)}


def total_cost(tx: Transaction, uid: str) -> str | None:
    """What its attempts cost wherever they ran; None: none of them named a cost."""
    costs = [cost for (cost,) in tx.db.execute(_COSTS, {"uid": uid})]
    return format(sum(map(Decimal, costs), Decimal()), "f") if costs else None


def dead_letters(tx: Transaction, query: DeadLetters) -> DeadPage:
    """One page of them, oldest first, each with everything that is known of it."""
    values = {"after": query.after, "limit": query.limit + 1, "poison": query.poison,
              "resolved": query.resolved}  # fmt: skip
    rows = tx.db.execute(_PAGE, values).fetchall()
    tasks = [with_history(tx, task_of(row)) for row in rows[: query.limit]]
    letters = tuple(_letter(tx, task) for task in tasks)
    return DeadPage(letters, tasks[-1].seq if len(rows) > query.limit else None)


def _letter(tx: Transaction, task: Task) -> DeadLetter:
    attempts = tuple(one for one in task.attempts if isinstance(one, dict))
    return DeadLetter(replace(task, attempts=[]), attempts, care_of(tx, task.uid))
