"""Reserves for members of a graph that began to live elsewhere without being given away."""

from __future__ import annotations

from decimal import Decimal

from ..budget import DAG, NOTHING, amount_of, asked_by, text_of
from .purses import post, purse_of
from .spending import AGAIN, MOST, RESERVE
from .transaction import Transaction

_BORN = "born"  # `away` of a member that came to life elsewhere: no move took it there
_TOLD_OF = "SELECT 1 FROM told_cost WHERE uid = ? AND scope = ?"
_NOTE_MOST = "INSERT OR IGNORE INTO told_cost (uid, scope, day, cost_usd) VALUES (?, ?, '', ?)"
_RESERVE_ONCE = RESERVE.replace("INSERT", "INSERT OR IGNORE")


def reserve_for_birth(tx: Transaction, uid: str, dag: str, max_cost_usd: str | None) -> None:
    """A member was born elsewhere, and may have begun there: what it may cost is set aside also
    where its graph has not enough, so that nothing else begins on that money.
    """
    scope = f"{DAG}{dag}"
    if purse_of(tx, scope) is None or tx.db.execute(_TOLD_OF, (uid, scope)).fetchone():
        return
    if max_cost_usd is not None:
        tx.db.execute(_NOTE_MOST, (uid, MOST, max_cost_usd))
    _reserve(tx, uid, scope, max_cost_usd, cost_so_far=NOTHING, away=_BORN)


# Of what was given away the copy says what it may cost, of what was born elsewhere its birth did.
_MOST_OF = """
SELECT m.dag, coalesce(json_extract(x.spec, '$.max_cost_usd'), c.cost_usd)
  FROM member m LEFT JOIN tombstone x ON x.uid = m.uid
  LEFT JOIN told_cost c ON c.uid = m.uid AND c.scope = :most
 WHERE m.uid = :uid
"""


def reserve_again(tx: Transaction, uid: str, told_usd: str | None) -> None:
    """A member that had ended elsewhere lives again there: what is left of what it may cost."""
    if not tx.live.budgeted:
        return
    row = tx.db.execute(_MOST_OF, {"uid": uid, "most": MOST}).fetchone()
    if row is not None:
        cost = NOTHING if told_usd is None else amount_of(told_usd)
        _reserve(tx, uid, f"{DAG}{row[0]}", row[1], cost_so_far=cost, away=AGAIN)


def _reserve(
    tx: Transaction, uid: str, scope: str, most: str | None, *, cost_so_far: Decimal, away: str
) -> None:
    purse = purse_of(tx, scope)
    if purse is None:
        return
    assumed = tx.live.money.assume_usd
    amount = asked_by(most, cost_so_far=cost_so_far, assume_usd=assumed)
    values = (uid, scope, purse.day, text_of(amount), 0, away)
    if tx.db.execute(_RESERVE_ONCE, values).rowcount:
        post(tx, scope, purse.day, reserved=amount)
