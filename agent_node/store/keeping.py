"""Keeps whole copies of tasks that left, so that one of them can be owned again."""

from __future__ import annotations

import json

from ..spec import values_of
from ..task import IMMUTABLE, Task, built_task, to_wire
from .rows import WHOLE, attempts_of, task_of
from .transaction import Transaction

_BURY = """
INSERT INTO tombstone (uid, epoch, xfer, peer, peer_incarnation, key, at, sha256, life, spec)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (uid) DO UPDATE SET epoch = excluded.epoch, xfer = excluded.xfer, peer = excluded.peer,
  peer_incarnation = excluded.peer_incarnation, key = excluded.key, ended = NULL, at = excluded.at,
  settled_at = NULL, sha256 = excluded.sha256, life = excluded.life, spec = excluded.spec
"""


def bury(
    tx: Transaction,
    row: tuple[object, ...],
    *,
    epoch: int,
    xfer: str | None = None,
    peer: str | None = None,
    peer_incarnation: str | None = None,
) -> None:
    """A tombstone at this epoch with the whole task; `row` is `WHOLE`, sha256 and key."""
    *whole, sha256, key = row
    task = task_of(whole)
    life = to_wire(task)
    life["attempts"] = attempts_of(tx.db, task.uid)
    kept = {name: value for name, value in life.items() if name not in IMMUTABLE}
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    values = (task.uid, epoch, xfer, peer, peer_incarnation, key, tx.stamp, sha256, text, whole[-1])
    tx.db.execute(_BURY, values)


def keep_copy(tx: Transaction, uid: str) -> None:
    """The copy of a row that is about to give way to another owner."""
    row = tx.db.execute(f"SELECT {WHOLE}, sha256, key FROM task WHERE uid = ?", (uid,)).fetchone()
    bury(tx, row, epoch=task_of(row[:-2]).epoch)


def kept_task(tx: Transaction, uid: str) -> Task:
    """The whole task as it was when it left."""
    life, spec = tx.db.execute(
        "SELECT life, spec FROM tombstone WHERE uid = ?", (uid,)
    ).fetchone()
    return built_task({**values_of(spec), **json.loads(life)})
