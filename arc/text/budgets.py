"""Renders what may be spent and what was."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from agent_node.budget import DAG, DAILY, key_of
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted

from .columns import age, number, objects, rows, said
from .look import Look

HELD_SHOWN = 10


def render_budget(data: JsonObject, look: Look) -> str:
    """A line a limit, then a line a node with what was spent there today."""
    scopes, nodes = objects(data, "scopes"), objects(data, "nodes")
    parts: list[str] = []
    if scopes:
        lines = [(_whose(one), *(usd(one.get(f"{name}_usd")) for name in
                                 ("limit", "spent", "reserved", "remaining")),
                  said(one.get("waiting"), "?")) for one in scopes]  # fmt: skip
        head = ("BUDGET", "LIMIT", "SPENT", "RESERVED", "LEFT", "HELD BACK")
        parts.append(rows(head, lines, look))
        parts += _counted(scopes)
        parts += _held_back(scopes)
    else:
        unread = said(data.get("unread"), "")
        parts.append("no limit is set" + (f" where it could be seen; not {unread}" * bool(unread)))
    if nodes:
        today = [(said(one.get("node")), usd(one.get("spent_today_usd"), "unknown"),
                  usd(one.get("heard_today_usd")), age(one.get("heard_s"))) for one in nodes]
        parts.append(rows(("NODE", "SPENT TODAY", "AS WAS HEARD", "UP TO"), today, look))
    parts.append(f"spent today, as was heard: {usd(data.get('heard_today_usd'))} USD")
    return "\n".join(parts)


def usd(amount: JsonValue, unknown: str = "-") -> str:
    """An amount for people: all of its digits, and two places at least."""
    if not isinstance(amount, str):
        return unknown
    try:
        return format(Decimal(amount).normalize() + Decimal("0.00"), "f")
    except InvalidOperation:
        return said(amount)


def _counted(scopes: list[JsonObject]) -> list[str]:
    """What the fleet's limit counts, and since when: not all that is spent in the fleet."""
    day = next((one for one in scopes if one.get("counted_since")), None)
    if day is None:
        return []
    since = str(day["counted_since"])
    when = "midnight UTC" if since[11:19] == "00:00:00" else (
        f"{said(since[11:16])} UTC, when the limit was set")  # fmt: skip
    gaps = "; ".join(_gap(one) for one in objects(day, "not_counted"))
    return [f"the fleet, a day: what the hub's own queue gives out, counted since {when}"
            + f"; not counted while no limit was set{gaps and f', {gaps}'}"
            * bool(day.get("not_counted"))]


def _gap(one: JsonObject) -> str:
    """From when until when, in UTC; what is not known is left out."""
    since, until = (str(one[name])[11:16] if one.get(name) else "" for name in ("since", "until"))
    return f"{since} to {until} UTC" if since else f"until {until} UTC" * bool(until)


def _held_back(scopes: list[JsonObject]) -> list[str]:
    """How a scope whose tasks wait for money is allowed more: no midnight brings a graph any, and
    none brings more than the day's limit.
    """
    held = [one for one in scopes if one.get("waiting")]
    lines = [f"{counted(int(number(one.get('waiting'))), 'task')} held back by {_whose(one)}: "
             f"{_way(said(one.get('scope')))}" for one in held[:HELD_SHOWN]]  # fmt: skip
    return [*lines, *([f"… and {len(held) - HELD_SHOWN} more limits"] * (len(held) > HELD_SHOWN))]


def _way(scope: str) -> str:
    if scope in DAILY:
        return key_of(scope, "USD")
    return f"arc dag budget {scope.removeprefix(DAG)} USD"


def _whose(one: JsonObject) -> str:
    scope, store = said(one.get("scope")), said(one.get("store"))
    if scope == "fleet":
        return "the fleet, a day"
    if scope == "node":
        return f"{store}, a day"
    return f"graph {scope.removeprefix(DAG)}"
