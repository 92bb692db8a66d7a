"""Keeps what each scope may spend, has spent and has reserved, and who may ask and say so."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from ..budget import DAG, NODE, NOTHING, Purse, amount_of, day_of, objection, plus, text_of
from ..budget_words import Budgets, BudgetSet, ScopeFacts, SetBudget
from ..commands import Because
from ..task import Task
from .senders import check_not_quarantined, check_sender
from .transaction import Transaction
from .unaffordable import bring_back, reasons_of, tell_anew, waiting_for, waits_behind

_PURSE = "SELECT spent, reserved FROM spending WHERE scope = ? AND day = ?"
_POST = (
    "INSERT INTO spending (scope, day, spent, reserved) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (scope, day) DO UPDATE SET spent = excluded.spent, reserved = excluded.reserved"
)


def purse_of(tx: Transaction, scope: str) -> Purse | None:
    """The purse of this scope as it is now; None where it has no limit here."""
    if scope == NODE:
        limit, overdraft = tx.live.money.budget_usd, tx.live.money.urgent_overdraft
    else:
        row = tx.db.execute(
            "SELECT limit_usd, urgent_overdraft FROM budget WHERE scope = ?", (scope,)
        ).fetchone()
        limit, overdraft = row or (None, False)
    if limit is None:
        return None
    day = day_of(scope, tx.now)
    spent, reserved = totals(tx, scope, day)
    return Purse(scope, day, amount_of(limit), spent, reserved, bool(overdraft),
                 alone=tx.node.hub is None)  # fmt: skip


def totals(tx: Transaction, scope: str, day: str) -> tuple[Decimal, Decimal]:
    """What was spent and what is reserved of a scope on a day."""
    spent, reserved = tx.db.execute(_PURSE, (scope, day)).fetchone() or ("0", "0")
    return Decimal(spent), Decimal(reserved)


def post(
    tx: Transaction, scope: str, day: str, *, spent: Decimal = NOTHING, reserved: Decimal = NOTHING
) -> None:
    """Add to what was spent and reserved; what is given back is below zero."""
    was_spent, was_reserved = totals(tx, scope, day)
    values = (text_of(plus(was_spent, spent)), text_of(plus(was_reserved, reserved)))
    tx.db.execute(_POST, (scope, day, *values))
    tx.changed = True


def note_budgets(tx: Transaction) -> None:
    """Whether anything here has a limit: without one a claim pays nothing for money."""
    (limits,) = tx.db.execute("SELECT EXISTS (SELECT 1 FROM budget)").fetchone()
    (open_ones,) = tx.db.execute("SELECT EXISTS (SELECT 1 FROM reservation)").fetchone()
    tx.live.budgeted = bool(tx.live.money.budget_usd is not None or limits or open_ones)


def room_again(tx: Transaction, scope: str) -> int:
    """What was set aside for want of money, and fits into what there is now, goes on."""
    purse = purse_of(tx, scope)
    return bring_back(tx, scope, None if purse is None else purse.remaining)


def limit_read(tx: Transaction) -> int:
    """What node.toml says of money may be another word than before: how many tasks go on by it."""
    if not tx.live.money_read:
        return 0
    tx.limit_looked = True  # forgotten when this is rolled back: the next one looks then
    freed, purse = room_again(tx, NODE), purse_of(tx, NODE)
    return freed + (0 if purse is None else tell_anew(tx, purse))


def priority_said(tx: Transaction, uid: str) -> bool:
    """After a word on its priority: whether a task that waited for money is READY, for it is urgent
    now. What still waits says how it stands now.
    """
    row = tx.db.execute("SELECT scope FROM unaffordable WHERE uid = ?", (uid,)).fetchone()
    purse = None if row is None else purse_of(tx, row[0])
    return purse is not None and tell_anew(tx, purse, uid=uid) > 0


def held_as_of_now(tx: Transaction, task: Task) -> Task:
    """The same task; of one that waits for money the reason is reckoned from the books as they are,
    and from what waits before it: what it says itself is of the moment when it was set aside. Of a
    node's own money only its daemon knows the limit that it waits under.
    """
    found = waits_behind(tx, task.uid) if task.blocked_by else None
    purse = None if found is None else purse_of(tx, found[0])
    if found is None or purse is None or (purse.scope == NODE and not tx.live.money_holds):
        return task  # who only looks in may read another limit than the one that it waits under
    _, asks, ahead = found
    why = objection(purse, asks, task.priority, at=tx.stamp, ahead=ahead)
    if why is None:  # there is room for it just now
        return task
    return replace(task, blocked_by=reasons_of(purse, asks, why, ahead=ahead))


def set_budget(tx: Transaction, command: SetBudget) -> BudgetSet:
    """A person's, or fleet.yaml's, word; what waited for more money goes on at once."""
    sender, scope = command.sender, command.scope
    check_sender(tx, incarnation=sender.incarnation, term=sender.term)
    check_not_quarantined(tx)
    if scope.startswith(DAG) and not tx.db.execute(
        "UPDATE graph SET budget_usd = ? WHERE id = ?",
        (command.limit_usd, scope.removeprefix(DAG)),
    ).rowcount:
        text = f"no graph {scope.removeprefix(DAG)} has its home on {tx.node.name}"
        return BudgetSet(scope, Because("unknown_graph", text))
    set_limit(tx, scope, command.limit_usd, urgent_overdraft=command.urgent_overdraft)
    return BudgetSet(scope)


def set_limit(
    tx: Transaction, scope: str, limit_usd: str | None, *, urgent_overdraft: bool = False
) -> None:
    """From now on this scope may spend so much; None: it has no limit."""
    now = (limit_usd, int(urgent_overdraft))
    was = tx.db.execute(
        "SELECT limit_usd, urgent_overdraft FROM budget WHERE scope = ?", (scope,)
    ).fetchone()
    if was == (None if limit_usd is None else now):
        return
    if limit_usd is None:
        tx.db.execute("DELETE FROM budget WHERE scope = ?", (scope,))
    else:
        tx.db.execute(
            "INSERT OR REPLACE INTO budget (scope, limit_usd, urgent_overdraft) VALUES (?, ?, ?)",
            (scope, *now),
        )
    tx.live.budgeted = True
    tx.event("budget_set", data={"scope": scope, "limit_usd": limit_usd})
    room_again(tx, scope)
    purse = purse_of(tx, scope)
    if purse is not None:
        tell_anew(tx, purse)


def budgets(tx: Transaction, query: Budgets) -> tuple[ScopeFacts, ...]:
    """The node first, then the fleet and the graphs by name."""
    scopes = [scope for (scope,) in tx.db.execute("SELECT scope FROM budget ORDER BY scope")]
    return tuple(_facts(tx, scope) for scope in (NODE, *scopes))


def _facts(tx: Transaction, scope: str) -> ScopeFacts:
    purse, day = purse_of(tx, scope), day_of(scope, tx.now)
    spent, reserved = totals(tx, scope, day)
    return ScopeFacts(
        scope=scope,
        day=day or None,
        limit_usd=None if purse is None else text_of(purse.limit),
        spent_usd=text_of(spent),
        reserved_usd=text_of(reserved),
        remaining_usd=None if purse is None else text_of(purse.remaining),
        urgent_overdraft=purse is not None and purse.urgent_overdraft,
        waiting=waiting_for(tx, scope),
    )


def remaining_usd(tx: Transaction) -> str | None:
    """What the node may still spend today; None: it has no limit."""
    purse = purse_of(tx, NODE) if tx.live.money.budget_usd is not None else None
    return None if purse is None else text_of(purse.remaining)
