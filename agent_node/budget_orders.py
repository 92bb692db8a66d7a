"""Answers what may still be spent here, and takes a person's word on it."""

from __future__ import annotations

from .budget import DAG, FLEET
from .budget_words import Budgets, ScopeFacts, SetBudget
from .desk import Desk, Session
from .errors import BadInput, Refused
from .fields import money
from .requests import Request
from .strict import JsonObject

SCOPE_MAX = 80  # characters: the longest id of a graph, and what stands before it


def answer_budget(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Every scope that has a limit here, and what the node itself spent today."""
    return {"scopes": [_scope_out(facts) for facts in desk.store.read(Budgets())]}


def _scope_out(facts: ScopeFacts) -> JsonObject:
    return {
        "scope": facts.scope,
        "day": facts.day,
        "limit_usd": facts.limit_usd,
        "spent_usd": facts.spent_usd,
        "reserved_usd": facts.reserved_usd,
        "remaining_usd": facts.remaining_usd,
        "urgent_overdraft": facts.urgent_overdraft,
        "waiting": facts.waiting,
    }


def answer_set_budget(desk: Desk, session: Session, request: Request) -> JsonObject:
    """What the fleet, or a graph whose home is here, may spend from now on; null: no limit."""
    asked = request.fields
    scope = asked.text("scope", SCOPE_MAX)
    if scope != FLEET and not scope.startswith(DAG):
        raise BadInput('should be "fleet" or "dag:ID"; a node has it in node.toml', "scope")
    limit = asked.values.get("limit_usd")
    if "limit_usd" not in asked.values:
        raise BadInput("is missing; null takes the limit away", "limit_usd")
    if limit is not None:
        limit = str(money(limit, "limit_usd"))
    command = SetBudget(
        scope, limit, urgent_overdraft=asked.flag("urgent_overdraft"),
        sender=session.sender(request),
    )  # fmt: skip
    told = desk.apply(request, command)
    if told.because is not None:
        raise Refused(told.because.rule, told.because.text)
    return answer_budget(desk, session, request)
