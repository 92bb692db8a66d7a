"""Decides what may still be spent: exactly, in decimals, and before it is spent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow

from .clock import iso
from .fields import is_money

# Sums are exact or an error: an amount has 21 digits at most, so that this many never run out.
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation, Overflow, DivisionByZero])
NOTHING, CENT = Decimal(0), Decimal("0.01")
NODE, FLEET, DAG = "node", "fleet", "dag:"
DAILY = (NODE, FLEET)  # what was spent of these is forgotten at midnight, UTC
_KEYS = {NODE: 'budget_usd = "{}" in node.toml, and its daemon restarted',
         FLEET: 'budget.per_day: "{}" in fleet.yaml'}  # fmt: skip
URGENT = 4  # P1 to this P may go on over budget, where `urgent_overdraft` says so


@dataclass(frozen=True)
class Money:
    """What node.toml says of money."""

    budget_usd: str | None = None  # a day; None: no limit
    urgent_overdraft: bool = False
    assume_usd: str = "0"  # what a task may cost that names no `max_cost_usd`


@dataclass(frozen=True)
class Purse:
    """One scope at one moment: its limit, what is spent, and what is set aside for what runs."""

    scope: str
    day: str  # empty where a scope knows no days
    limit: Decimal
    spent: Decimal = NOTHING
    reserved: Decimal = NOTHING
    urgent_overdraft: bool = False
    alone: bool = False  # no hub was ever met where it is kept: nobody there can type `arc`

    @property
    def remaining(self) -> Decimal:
        """What nobody has spent or reserved yet; below zero when things cost more than expected."""
        return minus(minus(self.limit, self.spent), self.reserved)

    @property
    def empty(self) -> bool:
        """Nothing is left, so nothing more begins, however little it asks for."""
        return self.remaining <= 0


def objection(
    purse: Purse, asks: Decimal, priority: int, *, at: str = "", ahead: Decimal = NOTHING
) -> str | None:  # fmt: skip
    """Why a task that may cost so much must not begin; None: it may. `at`: the moment of the
    figures, where they are kept and read later. `ahead`: what those ask for that wait before it.
    """
    if purse.urgent_overdraft and priority <= URGENT:
        return None
    if not purse.empty and asks <= purse.remaining:
        return None
    until = " until midnight UTC" if purse.scope in DAILY else ""
    before = f", what waits before it for {text_of(ahead)}" if ahead else ""
    return (
        f"{name_of(purse.scope)} has {text_of(purse.limit)} USD{until}: {text_of(purse.spent)}"
        f" spent, {text_of(purse.reserved)} reserved{at and f' at {at}'};"
        f" this asks for {text_of(asks)}{before}"
        f"{_way_out(purse, asks, ahead)}"
    )


def _way_out(purse: Purse, asks: Decimal, ahead: Decimal) -> str:
    """A day's limit comes back by itself, as far as it goes; a graph's is for all its days."""
    enough = text_of(enough_for(purse, asks, ahead))
    if purse.scope in DAILY:
        smaller = "; or cancel it, and add it with a smaller max cost" if purse.limit > 0 else ""
        return "" if comes_back(purse, asks) else (
            f"; it never starts with that, but with: {key_of(purse.scope, enough)}{smaller}")
    when = "it starts when enough is given back, or at once" if comes_back(purse, asks) else (
        "it never starts with that, but")  # fmt: skip
    who = "agent-node" if purse.alone else "arc"
    return f"; {when} with: {who} dag budget {purse.scope.removeprefix(DAG)} {enough}"


def comes_back(purse: Purse, asks: Decimal) -> bool:
    """Whether it could be afforded if nothing of what is reserved were spent; of a day's limit,
    whether it could be on a day on which nothing else is.
    """
    left = purse.limit if purse.scope in DAILY else minus(purse.limit, purse.spent)
    return left > 0 and asks <= left


def enough_for(purse: Purse, asks: Decimal, ahead: Decimal = NOTHING) -> Decimal:
    """The limit with which it begins now, and all that waits before it: of nothing at all there has
    to be a cent left.
    """
    return plus(plus(plus(purse.spent, purse.reserved), ahead), max(asks, CENT))


def key_of(scope: str, usd: str) -> str:
    """Where the limit of a day is written, with this sum."""
    return _KEYS[scope].format(usd)


def name_of(scope: str) -> str:
    """How people call a scope."""
    return f"graph {scope.removeprefix(DAG)}" if scope.startswith(DAG) else f"the {scope}"


def asked_by(max_cost_usd: str | None, *, cost_so_far: Decimal, assume_usd: str) -> Decimal:
    """What an attempt is taken to cost: what the task still may, else what the node assumes."""
    if max_cost_usd is None:
        return amount_of(assume_usd)
    return max(minus(amount_of(max_cost_usd), cost_so_far), NOTHING)


def amount_of(text: str) -> Decimal:
    """An amount as it was checked when it came in; anything else is a ValueError."""
    if not is_money(text):
        raise ValueError("no amount of money")
    return Decimal(text)


def is_spent(left_usd: str) -> bool:
    """Whether nothing is left of a limit: below zero, as it is told, where more was spent."""
    return Decimal(left_usd) <= NOTHING


def plus(one: Decimal, other: Decimal) -> Decimal:
    """The exact sum."""
    return _EXACT.add(one, other)


def minus(one: Decimal, other: Decimal) -> Decimal:
    """The exact difference."""
    return _EXACT.subtract(one, other)


def text_of(amount: Decimal) -> str:
    """Plain digits, never an exponent, and no more of them than say something."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text


def day_of(scope: str, now: datetime) -> str:
    """The UTC day that a cost of this scope counts for; empty: for all days."""
    return now.astimezone(UTC).date().isoformat() if scope in DAILY else ""


def midnight_after(now: datetime) -> str:
    """When the next UTC day begins."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return iso(day + timedelta(days=1))
