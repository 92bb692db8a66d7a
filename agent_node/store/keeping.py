"""Keeps whole copies of tasks that left, so that one of them can be owned again."""

from __future__ import annotations

import json

from ..spec import values_of
from ..task import State, Task, built_task
from .past_attempts import attempts_of
from .rows import life_of
from .transaction import Transaction, may_change, to_json

# The copy is made by the statement that reads the row: what the hash covers as the text that it
# is, everything else as one object; attempts stay in their own table.
_KEEP = f"""
INSERT INTO tombstone (uid, epoch, xfer, peer, peer_incarnation, key, at, sha256, life, spec)
SELECT uid, epoch + :further, {{move}}, key, :now, sha256,
       {life_of()}, spec
  FROM {{rows}}
ON CONFLICT (uid) DO UPDATE SET epoch = excluded.epoch, xfer = excluded.xfer, peer = excluded.peer,
  peer_incarnation = excluded.peer_incarnation, key = excluded.key, ended = NULL, at = excluded.at,
  settled_at = NULL, sha256 = excluded.sha256, life = excluded.life, spec = excluded.spec
"""
_ONE = {"move": ":xfer, :peer, :peer_incarnation"}
_KEEP_MOVED = _KEEP.format(
    **_ONE, rows=f"task WHERE uid = :uid AND xfer = :xfer AND {may_change(State.MOVED)}"
)
_KEEP_ROW = _KEEP.format(**_ONE, rows="task WHERE uid = :uid")
# Of many moves their records say the rest; the rows come in the order of the moves.
_KEEP_ALL_MOVED = _KEEP.format(move="xfer, peer, peer_incarnation", rows=f"""(
       SELECT x.uid AS moved, x.xfer AS by_move, x.peer, x.peer_incarnation
         FROM json_each(:xfers) j CROSS JOIN transfer x ON x.xfer = j.value
        WHERE x.side = 'giver' AND x.outcome = 'escrowed')
 CROSS JOIN task ON uid = moved WHERE xfer = by_move AND {may_change(State.MOVED)}""")


def keep_moved(
    tx: Transaction, *, uid: str, xfer: str, peer: str, peer_incarnation: str | None
) -> bool:
    """A tombstone one epoch on, with the whole task; False when the task is not in that escrow."""
    values = {"uid": uid, "xfer": xfer, "peer": peer, "peer_incarnation": peer_incarnation,
              "further": 1, "now": tx.stamp}  # fmt: skip
    return tx.db.execute(_KEEP_MOVED, values).rowcount == 1


def keep_all_moved(tx: Transaction, xfers: list[str]) -> int:
    """The same of the tasks that are in these escrows, and how many they were."""
    values = {"xfers": to_json(xfers), "further": 1, "now": tx.stamp}
    return tx.db.execute(_KEEP_ALL_MOVED, values).rowcount


def keep_copy(tx: Transaction, uid: str) -> None:
    """The copy of a row that is about to give way to another owner."""
    values = {"uid": uid, "xfer": None, "peer": None, "peer_incarnation": None,
              "further": 0, "now": tx.stamp}  # fmt: skip
    tx.db.execute(_KEEP_ROW, values)


def kept_task(tx: Transaction, uid: str) -> Task:
    """The whole task as it was when it left."""
    life, spec = tx.db.execute(
        "SELECT life, spec FROM tombstone WHERE uid = ?", (uid,)
    ).fetchone()
    fields = {**values_of(spec), **json.loads(life), "attempts": attempts_of(tx.db, uid)}
    return built_task({**fields, "pinned": bool(fields.get("pinned"))})
