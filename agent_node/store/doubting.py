"""Answers which moves are not over, and what left this node and is still kept as a copy."""

from __future__ import annotations

from typing import Literal

from ..queries import Doubt, Doubts, Given, Moved
from .move_tables import UNSETTLED
from .transaction import Transaction
from .transfers import HELD_HERE, IN_ESCROW

_COLUMNS = """
SELECT x.xfer, x.uid, x.epoch, x.side, x.outcome, x.peer, x.peer_incarnation,
       max(0.0, (julianday(:now) - julianday(x.at)) * 86400.0)
"""
_DOUBTS = f"""
{_COLUMNS} FROM {IN_ESCROW} AND x.settled_at IS NULL AND x.side = 'giver'
UNION ALL
{_COLUMNS} FROM {HELD_HERE} AND x.settled_at IS NULL AND x.side = 'taker'
UNION ALL
{_COLUMNS} FROM transfer x WHERE {UNSETTLED}
 ORDER BY 1
"""
_DoubtState = Literal["ESCROW", "HELD", "MOVED", "ABORTED"]
_DOUBT_STATES: dict[str, _DoubtState] = {
    "escrowed": "ESCROW", "committed": "MOVED", "aborted": "ABORTED", "held": "HELD",
}  # fmt: skip


def doubts(tx: Transaction, query: Doubts) -> tuple[Doubt, ...]:
    """Every HELD, and every giver's record not yet settled."""
    return tuple(
        Doubt(xfer, uid, epoch, side, _DOUBT_STATES[outcome], peer, incarnation, round(age, 3))
        for xfer, uid, epoch, side, outcome, peer, incarnation, age in tx.db.execute(
            _DOUBTS, {"now": tx.stamp}
        )
    )


_GIVEN = """
SELECT m.uid, m.epoch, m.xfer, m.peer, m.peer_incarnation, m.at,
       coalesce(x.settled_at, m.settled_at) IS NOT NULL, m.ended,
       EXISTS (SELECT 1 FROM task t WHERE t.uid = m.uid)
  FROM tombstone m LEFT JOIN transfer x ON x.xfer = m.xfer
 WHERE m.spec IS NOT NULL AND m.xfer IS NOT NULL AND m.peer IS NOT NULL AND m.uid > :after
   AND (:peer IS NULL OR m.peer = :peer) AND (NOT :open_only OR m.ended IS NULL)
 ORDER BY m.uid LIMIT :limit
"""


def moved(tx: Transaction, query: Moved) -> tuple[Given, ...]:
    """What left this node and is still kept as a copy, in the order of the uids."""
    values = {"after": query.after, "peer": query.peer, "open_only": query.open_only,
              "limit": query.limit}  # fmt: skip
    return tuple(
        Given(uid, epoch, xfer, peer, incarnation, at, bool(settled), ended, bool(here))
        for uid, epoch, xfer, peer, incarnation, at, settled, ended, here in tx.db.execute(
            _GIVEN, values
        )
    )
