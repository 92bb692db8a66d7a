"""Knows the weights that graphs give to tasks here, so that they keep them wherever they go."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from .transaction import Transaction

_ANY = "SELECT EXISTS (SELECT 1 FROM pull WHERE weight > 0)"
_THESE = """
SELECT p.uid, p.weight FROM json_each(?) j CROSS JOIN pull p ON p.uid = j.value AND p.weight > 0
"""
# Whoever gave a task away may have to own it again, and then it is as heavy as it was.
_FORGET = """
DELETE FROM pull WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.uid = pull.uid)
   AND (weight = 0 OR NOT EXISTS (SELECT 1 FROM tombstone x WHERE x.uid = pull.uid))
"""


def any_weights(db: sqlite3.Connection) -> bool:
    """Whether some task here has a weight; where none has, nobody has to look for any."""
    (found,) = db.execute(_ANY).fetchone()
    return bool(found)


def weights_of(tx: Transaction, uids: Iterable[str]) -> dict[str, float]:
    """By uid, in points, of those that have one."""
    if not tx.live.weighed:
        return {}
    return dict(tx.db.execute(_THESE, (json.dumps([*uids]),)).fetchall())


def weight_of(tx: Transaction, uid: str) -> float:
    """The same of one task; 0: none is known here."""
    return weights_of(tx, (uid,)).get(uid, 0.0)


def forget_pulls(tx: Transaction) -> None:
    """Let go of what drew tasks that are gone."""
    tx.db.execute(_FORGET)
