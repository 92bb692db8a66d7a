"""Reserves money before it is spent and settles it afterwards, each in its own transaction."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import reduce

from ..budget import (
    DAG,
    FLEET,
    NODE,
    NOTHING,
    Purse,
    amount_of,
    asked_by,
    day_of,
    minus,
    objection,
    plus,
    text_of,
)
from ..commands import Because, Finish
from .history import ATTEMPTS
from .past_attempts import CAME_ALONG, live_here
from .purses import post, purse_of, room_again
from .transaction import Transaction
from .unaffordable import RULE, set_aside

RESERVE = (
    "INSERT INTO reservation (uid, scope, day, amount, n, away) VALUES (?, ?, ?, ?, ?, ?)"
)


# --- Before it is spent -------------------------------------------------------------------------


class Ask:
    """What a task may cost now, and whose money that is."""

    def __init__(self, tx: Transaction, uid: str, *, moves: bool) -> None:
        self.tx, self.uid = tx, uid
        self.priority, self.n, spec = tx.db.execute(
            "SELECT priority, attempt, spec FROM task WHERE uid = ?", (uid,)
        ).fetchone()
        said = json.loads(spec)
        dag = said.get("dag")
        scopes = [FLEET if moves else NODE, *([f"{DAG}{dag}"] if dag else [])]
        found = [purse_of(tx, scope) for scope in scopes]
        self.purses = [purse for purse in found if purse is not None]
        self.amount = asked_by(
            said.get("max_cost_usd"),
            cost_so_far=cost_of(tx, uid) if self.purses and "max_cost_usd" in said else NOTHING,
            assume_usd=tx.live.money.assume_usd,
        )

    def objection(self) -> tuple[Purse, str] | None:
        """The first purse that has not enough, and the reason; None: all have."""
        for purse in self.purses:
            why = objection(purse, self.amount, self.priority, at=self.tx.stamp)
            if why is not None:
                return purse, why
        return None

    def reserve(self, *, away: str | None = None) -> None:
        """Set it aside in the transaction that claims the task or gives it away."""
        settle(self.tx, self.uid, None)  # whatever it had was for another attempt
        for purse in self.purses:
            values = (purse.scope, purse.day, text_of(self.amount), self.n, away)
            self.tx.db.execute(RESERVE, (self.uid, *values))
            post(self.tx, purse.scope, purse.day, reserved=self.amount)


def cost_of(tx: Transaction, uid: str, *, after: int = 0, before: int = 2**62) -> Decimal:
    """What the attempts of a task cost together, those between these two numbers."""
    rows = tx.db.execute(
        f"SELECT cost_usd FROM {ATTEMPTS}"
        " WHERE cost_usd IS NOT NULL AND n > :after AND n < :before",
        {"uid": uid, "after": after, "before": before},
    )
    return reduce(plus, (amount_of(cost) for (cost,) in rows), NOTHING)


_BROUGHT = f"SELECT cost_usd FROM attempt WHERE {CAME_ALONG} AND cost_usd IS NOT NULL"


def cost_brought(tx: Transaction, uid: str, epoch: int | None) -> Decimal:
    """What those attempts cost together that came with its copy of this epoch, and with those that
    were barred before they lived here. None: no copy is held.
    """
    rows = tx.db.execute(_BROUGHT, {"uid": uid, "epoch": epoch})
    return reduce(plus, (amount_of(cost) for (cost,) in rows), NOTHING)


def is_used_up(tx: Transaction, spec: str, *, command: Finish) -> bool:
    """Whether a task has cost what it may cost at most, with the attempt that ends just now."""
    limit = json.loads(spec).get("max_cost_usd")
    last = command.result.cost_usd
    if limit is None or last is None:
        return False
    cost = plus(cost_of(tx, command.uid, before=command.n), amount_of(last))
    return cost > 0 and cost >= amount_of(limit)


def set_aside_or_refuse(tx: Transaction, ask: Ask) -> Because | None:
    """Whether this task cannot be afforded: then it waits aside, and here is why. None: it can."""
    found = ask.objection()
    if found is None:
        return None
    purse, why = found
    set_aside(tx, ask.uid, purse=purse, asks=ask.amount, why=why)
    return Because(RULE, why)


def afford_move(tx: Transaction, uid: str, *, epoch: int, pinned: bool) -> Because | None:
    """The same for a task that is to be given away, where it may be given away at all."""
    row = tx.db.execute(
        "SELECT 1 FROM task WHERE uid = ? AND epoch = ? AND state = 'READY'"
        " AND (pinned = 0 OR ?)", (uid, epoch, pinned),
    ).fetchone()  # fmt: skip
    if row is None or tx.node.state == "quarantined":
        return None  # which is refused for another reason
    return set_aside_or_refuse(tx, Ask(tx, uid, moves=True))


# --- Afterwards ---------------------------------------------------------------------------------


def settle(
    tx: Transaction, uid: str, cost_usd: str | None, *, n: int | None = None, proved: bool = True
) -> None:  # fmt: skip
    """An attempt here has ended: what was reserved is free again, and what it cost is spent.

    `cost_usd` None: nothing is known to have been spent. `n`: only if that attempt is the one.
    Not `proved`: it may cost more, so what is left of what was reserved stays so.
    """
    if cost_usd is None and not (proved and tx.live.budgeted):
        return
    cost = NOTHING if cost_usd is None else amount_of(cost_usd)
    if not proved:
        _spend_so_far(tx, uid, cost)
        return
    rows = tx.db.execute(
        "DELETE FROM reservation WHERE uid = ?1 AND (?2 IS NULL OR n = ?2 - 1)"
        " RETURNING scope, day, amount", (uid, n),
    ).fetchall()  # fmt: skip
    for scope, day, amount in rows:
        post(tx, scope, day, spent=cost, reserved=minus(NOTHING, Decimal(amount)))
    if cost:
        known = {scope for scope, _, _ in rows}
        for scope in _unreserved(tx, uid, known):
            post(tx, scope, day_of(scope, tx.now), spent=cost)
    for scope, _, _ in rows:
        room_again(tx, scope)


def _spend_so_far(tx: Transaction, uid: str, cost: Decimal) -> None:
    """Out of what was reserved for it, as far as that goes."""
    rows = tx.db.execute(
        "SELECT scope, day, amount FROM reservation WHERE uid = ?", (uid,)
    ).fetchall()
    for scope, day, amount in rows:
        left = max(minus(Decimal(amount), cost), NOTHING)
        post(tx, scope, day, spent=cost, reserved=minus(left, Decimal(amount)))
        values = (text_of(left), uid, scope)
        tx.db.execute("UPDATE reservation SET amount = ? WHERE uid = ? AND scope = ?", values)
    for scope in _unreserved(tx, uid, {scope for scope, _, _ in rows}):
        post(tx, scope, day_of(scope, tx.now), spent=cost)


def _unreserved(tx: Transaction, uid: str, known: set[str]) -> list[str]:
    """Scopes for which it was claimed before they had a limit; the node counts without one, too."""
    row = tx.db.execute("SELECT json_extract(spec, '$.dag') FROM task WHERE uid = ?", (uid,))
    (dag,) = row.fetchone() or (None,)
    scopes = [NODE, *([f"{DAG}{dag}"] if dag and purse_of(tx, f"{DAG}{dag}") else [])]
    return [scope for scope in scopes if scope not in known]


def settle_elsewhere(tx: Transaction, uid: str, cost_usd: str | None) -> None:
    """A task that was given away has ended; `cost_usd` is what all its attempts cost together.

    Those that are on file here were counted when they ended here, or came back from elsewhere.
    May be told again, and told more: what was counted before is counted once.
    """
    if tx.live.budgeted:
        told = NOTHING if cost_usd is None else minus(amount_of(cost_usd), _counted_here(tx, uid))
        _charge_its_graph(tx, uid)
        _settle_away(tx, uid, told)


def _counted_here(tx: Transaction, uid: str) -> Decimal:
    """A copy that is only held has come back from nowhere yet: what it brought is not counted."""
    held = "SELECT epoch FROM task WHERE uid = ? AND state = 'HELD'"
    (epoch,) = tx.db.execute(held, (uid,)).fetchone() or (None,)
    return minus(cost_of(tx, uid), cost_brought(tx, uid, epoch))


MOST = "most"  # no scope: what the task may cost in all, kept beside what was told of it
AGAIN = "again"  # `away` of what lives again elsewhere: its `n` says nothing


# What came home before the word of its birth is no member yet, but it names its graph itself.
_DAG_OF = """
SELECT coalesce((SELECT dag FROM member WHERE uid = :uid),
                (SELECT json_extract(spec, '$.dag') FROM task WHERE uid = :uid AND state = 'READY'))
"""


def _charge_its_graph(tx: Transaction, uid: str) -> None:
    """A member's cost counts also where nothing was reserved for it: its graph had no limit yet, or
    it had ended before anybody told that it was born.
    """
    (dag,) = tx.db.execute(_DAG_OF, {"uid": uid}).fetchone()
    purse = None if dag is None else purse_of(tx, f"{DAG}{dag}")
    if purse is not None:
        known = (uid, purse.scope, purse.day)
        tx.db.execute("INSERT OR IGNORE INTO told_cost VALUES (?, ?, ?, '0')", known)


def _settle_away(tx: Transaction, uid: str, cost: Decimal) -> None:
    rows = tx.db.execute(
        "SELECT scope, day, amount FROM reservation WHERE uid = ? AND away IS NOT NULL", (uid,)
    ).fetchall()
    for scope, day, amount in rows:
        post(tx, scope, day, reserved=minus(NOTHING, Decimal(amount)))
        tx.db.execute("INSERT OR IGNORE INTO told_cost VALUES (?, ?, ?, '0')", (uid, scope, day))
    tx.db.execute("DELETE FROM reservation WHERE uid = ? AND away IS NOT NULL", (uid,))
    told = "SELECT scope, day, cost_usd FROM told_cost WHERE uid = ? AND scope <> ?"
    for scope, day, known in tx.db.execute(told, (uid, MOST)).fetchall():
        more = minus(cost, Decimal(known))
        if more > 0:
            post(tx, scope, day, spent=more)
            tx.db.execute(
                "UPDATE told_cost SET cost_usd = ? WHERE uid = ? AND scope = ?",
                (text_of(cost), uid, scope),
            )
        room_again(tx, scope)


def await_end(tx: Transaction, uid: str) -> None:
    """Somebody has to tell what it cost, for as long as money is reserved for it."""
    tx.db.execute(
        "INSERT OR IGNORE INTO awaited (uid) SELECT uid FROM reservation"
        " WHERE uid = ? AND away IS NOT NULL", (uid,),
    )  # fmt: skip


def give_money_back(tx: Transaction, xfer: str) -> None:
    """The task stays here after all: what was reserved for its life elsewhere is free again."""
    if not tx.live.budgeted:
        return
    rows = tx.db.execute(
        "DELETE FROM reservation WHERE away = ? RETURNING scope, day, amount", (xfer,)
    ).fetchall()
    for scope, day, amount in rows:
        post(tx, scope, day, reserved=minus(NOTHING, Decimal(amount)))
        room_again(tx, scope)


_LEFT_AFTER = "SELECT min(n) FROM reservation WHERE uid = ? AND away IS NOT ?"


def settle_at_home(tx: Transaction, uid: str, *, epoch: int | None) -> None:
    """A task that was given away is back, READY: its attempts elsewhere are what it cost. `epoch`:
    of the copy that was held here; None: it was not, so nothing came with it now.
    """
    if not tx.live.budgeted:
        return
    (after,) = tx.db.execute(_LEFT_AFTER, (uid, AGAIN)).fetchone()
    if after is not None:
        cost = cost_of(tx, uid, after=after)
    else:  # nothing was reserved as it left: no limit yet, no word of its birth, or a retry there
        cost = cost_brought(tx, uid, epoch)
        if cost:
            _charge_its_graph(tx, uid)
    live_here(tx, uid)
    _settle_away(tx, uid, cost)
    settle(tx, uid, None)
    tx.db.execute("DELETE FROM told_cost WHERE uid = ?", (uid,))
