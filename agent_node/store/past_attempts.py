"""Reads the attempts of a task as they stand on the wire, and writes down those that it brings."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from ..fields import is_money
from ..lines import encode
from ..queries import AttemptsPage
from ..strict import JsonObject, JsonValue
from ..task import Task
from .history import ATTEMPTS
from .transaction import Transaction, to_json

_ATTEMPT = (
    "n", "node", "incarnation", "agent", "claimed_at", "started_at", "ended_at", "outcome",
    "counted", "error_kind", "message", "exit_code", "duration_s", "cost_usd", "tokens",
    "blamed",
)  # fmt: skip
ATTEMPTS_MAX = 100  # the last so many travel and are shown; their numbers go on all the same
_LAST = f"SELECT {', '.join(_ATTEMPT)} FROM {ATTEMPTS} ORDER BY n DESC LIMIT :most"
# What was put back before it cost a try or a cent says nothing of the task, and there is no bound
# to it: a program that cannot be started, day after day, must not make a task's costs forgotten.
_ATTEMPTS_OF = f"""
SELECT {', '.join(_ATTEMPT)} FROM (SELECT * FROM {ATTEMPTS}
  ORDER BY outcome IS 'requeued' AND counted = 0 AND cost_usd IS NULL, n DESC LIMIT :most)
 ORDER BY n DESC
"""


def attempts_of(db: sqlite3.Connection, uid: str) -> list[JsonValue]:
    """The task's attempts so far, wherever they ran, as they stand on the wire."""
    rows = db.execute(_ATTEMPTS_OF, {"uid": uid, "most": ATTEMPTS_MAX}).fetchall()
    said = [_attempt_on_wire(row) for row in rows]
    return [*reversed(said if _are_short(rows) else _shortened(said))]


_AFTER = f"SELECT {', '.join(_ATTEMPT)} FROM {ATTEMPTS} WHERE n > :after ORDER BY n LIMIT :most"


def attempts_page(tx: Transaction, query: AttemptsPage) -> tuple[JsonObject, ...]:
    """So many of them, in order: those that follow a number whole, as far as one answer holds them,
    and always one; without a number the last ones, the older of them in brief.
    """
    asked = {"uid": query.uid, "most": query.limit, "after": query.after}
    if query.after is None:
        last = [_attempt_on_wire(row) for row in tx.db.execute(_LAST, asked)]
        return tuple(one for one in reversed(_shortened(last)) if isinstance(one, dict))
    kept, left = list[JsonObject](), HISTORY_MAX
    for row in tx.db.execute(_AFTER, asked):
        said = _attempt_on_wire(row)
        left -= len(encode(said).encode())
        if left < 0 and kept:
            break
        kept.append(said)
    return tuple(kept)


# What a program said of its failures must not keep its task from being shown, moved or told of.
HISTORY_MAX = 512 * 1024  # bytes on the wire; whatever is older is told in brief
_BRIEF = 64  # characters of each text
_SPOKEN = [(_ATTEMPT.index("message"), 6), (_ATTEMPT.index("tokens"), 4)]  # and bytes a character


def _are_short(rows: Iterable[Sequence[JsonValue]]) -> bool:
    """Surely; nothing is encoded for the usual few attempts with a few words each."""
    most = sum(len(str(row[at] or "")) * wide for row in rows for at, wide in _SPOKEN)
    return most < HISTORY_MAX // 2


def _shortened(newest_first: Iterable[JsonObject]) -> list[JsonValue]:
    told: list[JsonValue] = []
    left = HISTORY_MAX
    for one in newest_first:
        left -= len(encode(one).encode())
        told.append(one if left >= 0 else _in_brief(one))
    return told


def _in_brief(one: JsonObject) -> JsonObject:
    return {name: value[:_BRIEF] if isinstance(value, str) else value
            for name, value in one.items() if name != "tokens"}  # fmt: skip


def _attempt_on_wire(row: Sequence[JsonValue]) -> JsonObject:
    said: JsonObject = {
        name: value for name, value in zip(_ATTEMPT, row, strict=True) if value is not None
    }
    said["counted"] = bool(said["counted"])
    said.update({} if said.pop("blamed") else {"blamed": False})  # said where it is unusual alone
    if "tokens" in said:
        said["tokens"] = json.loads(str(said["tokens"]))
    return said


_TEXT = ("node", "incarnation", "agent", "claimed_at", "started_at", "ended_at", "outcome",
         "error_kind", "message", "cost_usd")  # fmt: skip
# No event here tells how an attempt began that a copy brought: there stands which copy that was, as
# its epoch below zero; 0 of one that was barred while it was held, and nothing of a copy that lives
# here, or was held by a program that did not write it.
_KEEP_ATTEMPT = (
    f"INSERT OR IGNORE INTO attempt (uid, {', '.join(_ATTEMPT)}, claim_event)"
    f" VALUES (?, {', '.join('?' * len(_ATTEMPT))}, ?)"
)


def keep_attempts(tx: Transaction, task: Task, *, epoch: int | None = None) -> None:
    """Write down the attempts that a task brings along; what is known here is not overwritten.

    `epoch`: of the copy that is held here with them.
    """
    for one in task.attempts:
        if not isinstance(one, dict) or type(one.get("n")) is not int:
            continue
        values: list[object] = [task.uid]
        for name in _ATTEMPT:
            value = one.get(name)
            if name == "blamed":
                value = int(value is not False)
            elif name == "cost_usd" and not (isinstance(value, str) and is_money(value)):
                value = None  # sums are made of these
            elif name in _TEXT:
                value = None if value is None else str(value)[:4096]
            elif name == "tokens":
                value = None if value is None else to_json(value)
            elif not isinstance(value, int | float):
                value = None
            values.append(value)
        values[2] = values[2] or "unknown"
        values[3] = values[3] or "unknown"
        values[4] = values[4] or "unknown"
        values[5] = values[5] or tx.stamp
        values[9] = int(bool(values[9]))
        values.append(None if epoch is None else -epoch)
        tx.db.execute(_KEEP_ATTEMPT, values)


def drop_attempts(tx: Transaction, uid: str, *, epoch: int) -> None:
    """A held copy is let go: what it brought is told by whoever has the task, and counts there."""
    tx.db.execute("DELETE FROM attempt WHERE uid = ? AND claim_event = ?", (uid, -epoch))


# Of the copy that is held here, by its epoch, and of any that never lived here. Those of a copy
# that an older program held have no mark: they began after the task had last left this node.
CAME_ALONG = """
uid = :uid AND (claim_event IN (0, -:epoch)
  OR (claim_event IS NULL AND machine IS NULL AND :epoch IS NOT NULL AND claimed_at >
      coalesce((SELECT x.at FROM tombstone x WHERE x.uid = :uid), '')))
"""


def never_live(tx: Transaction, uid: str, *, epoch: int) -> None:
    """A held copy gives way, and is kept with its attempts: they count wherever they are told."""
    tx.db.execute(
        f"UPDATE attempt SET claim_event = 0 WHERE {CAME_ALONG}", {"uid": uid, "epoch": epoch}
    )


def live_here(tx: Transaction, uid: str) -> None:
    """The task lives here: whatever any copy brought is counted."""
    tx.db.execute("UPDATE attempt SET claim_event = NULL WHERE uid = ? AND claim_event = 0", (uid,))
