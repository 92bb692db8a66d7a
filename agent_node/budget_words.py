"""The words by which a store is asked about money, and told how much of it there is."""

from __future__ import annotations

from dataclasses import dataclass

from .commands import OWNER, Because, Command, Sender
from .queries import Query


@dataclass(frozen=True)
class SetBudget(Command["BudgetSet"]):
    """The fleet, or a graph whose home is here, may spend so much from now on."""

    scope: str  # fleet, or dag:ID; the node's own stands in node.toml
    limit_usd: str | None  # None: as much as it likes
    urgent_overdraft: bool = False
    sender: Sender = OWNER


@dataclass(frozen=True)
class BudgetSet:
    """What became of it."""

    scope: str
    because: Because | None = None  # None: it is so now


@dataclass(frozen=True)
class ScopeFacts:
    """One scope: amounts as decimal text; None where it has no limit."""

    scope: str
    day: str | None
    limit_usd: str | None
    spent_usd: str
    reserved_usd: str
    remaining_usd: str | None
    urgent_overdraft: bool
    waiting: int


class Budgets(Query[tuple[ScopeFacts, ...]]):
    """Every scope that has a limit here, and what the node spent today."""
