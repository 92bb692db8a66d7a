"""Tells what may be spent and what was: of the fleet, of each node, and of each graph."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.allowance import counted_since, is_unset, not_counted
from arc.asking import ENTRIES_MAX, reading
from arc.decisions.tallying import UNIT
from arc.errors import LinkError
from arc.looking import INBOX

from . import Told
from .everybody import ask_all, not_asked

if TYPE_CHECKING:
    from arc.hub import Hub

FLEET = "fleet"
COSTS = "task_cost_usd_total"
MONEY_MAX = 64
WAITING_MAX = 2**53


async def budget(hub: Hub, args: JsonObject) -> Told:
    """Every scope that has a limit, as the store that keeps its books tells it; and what was spent
    today on each node: as it says itself, and as the hub heard it. One that does not answer is
    unknown.
    """
    answers = await ask_all(hub, "budget", {}, scopes_of)
    heard, now = _heard_today(hub), hub.clock.now()
    names = sorted({*hub.roles(), *(node for node in heard if node not in {"", INBOX})})
    nodes: list[JsonValue] = [
        {"node": name, "known": name in answers.said, "heard_today_usd": money(heard.get(name)),
         "spent_today_usd": _own(answers.said.get(name, [])),
         "heard_s": _heard_ago(hub, name, now)}
        for name in names
    ]  # fmt: skip
    scopes = [one for name in sorted(answers.said) for one in answers.said[name]
              if one["limit_usd"] is not None]  # fmt: skip
    data: JsonObject = {
        "scopes": [*_since(hub, _as_written(hub, scopes))],
        "nodes": nodes, "heard_today_usd": money(sum(heard.values())),
        "unread": [*sorted(answers.failed)],
    }  # fmt: skip
    said = (*not_asked(hub), *_not_obeyed(hub))
    return Told(data, 3 if answers.failed else 0, answers.partial, said)


def _not_obeyed(hub: Hub) -> tuple[str, ...]:
    """That the limits are those from before a change, where fleet.yaml is refused as it is now."""
    if not hub.complaint:
        return ()
    file = hub.settings.file.name
    text = (f"{file} is refused as it stands now, so the hub runs on with what it knew, limits of "
            f"money too: {hub.complaint}; arc config check")  # fmt: skip
    return (text,)


def _as_written(hub: Hub, scopes: list[JsonObject]) -> list[JsonObject]:
    """Where no hub runs and the queue has yet to be told what fleet.yaml says of the fleet's day,
    what fleet.yaml says: of its figures those that the queue has.
    """
    if hub.schedule is not None or not is_unset(hub):
        return scopes
    told = next((one for one in scopes if one["scope"] == FLEET), {})
    others = [one for one in scopes if one["scope"] != FLEET]
    limit = hub.settings.budget_per_day
    if limit is None:
        return others
    figures: JsonObject = {name: told.get(name) for name in ("spent_usd", "reserved_usd")}
    gone = [value for value in figures.values() if isinstance(value, str)]
    left = str(Decimal(limit) - sum(map(Decimal, gone))) if len(gone) == len(figures) else None
    return [*others, {"store": INBOX, "scope": FLEET, "limit_usd": limit, **figures,
                      "remaining_usd": left, "waiting": told.get("waiting"),
                      "urgent_overdraft": hub.settings.urgent_overdraft}]


def _since(hub: Hub, scopes: list[JsonObject]) -> list[JsonObject]:
    """The fleet's day with the moment since which it is counted, and when meanwhile it was not;
    null: that is not known here.
    """
    since = counted_since(hub)
    gaps: list[JsonValue] = [
        {"since": iso(gap.since) if gap.since else None,
         "until": iso(gap.until) if gap.until else None} for gap in not_counted(hub)
    ]  # fmt: skip
    said: JsonObject = {"counted_since": None if since is None else iso(since),
                        "not_counted": gaps}  # fmt: skip
    return [{**one, **said} if one["scope"] == FLEET else one for one in scopes]


async def fleet_day(hub: Hub) -> JsonObject | None:
    """What the fleet's day is as its queue keeps the books; None: there is no limit, or the queue
    cannot tell.
    """
    try:
        scopes = scopes_of(INBOX, await hub.inbox.ask("budget"))
    except LinkError:
        return None
    found = [one for one in scopes if one["scope"] == FLEET and one["limit_usd"] is not None]
    if not found:
        return None
    (day,) = _since(hub, found)
    sums = (day["spent_usd"], day["reserved_usd"])
    counted = sum((Decimal(one) for one in sums if isinstance(one, str)), Decimal(0))
    told = ("limit_usd", "spent_usd", "reserved_usd", "counted_since")
    return {**{name: day[name] for name in told}, "counted_usd": str(counted)}


def scopes_of(node: str, said: JsonObject) -> list[JsonObject]:
    """Every scope with a limit there, as this store tells it, and the node itself."""
    with reading(node, "budget"):
        return [_scope(node, one) for one in Fields(said).objects("scopes", ENTRIES_MAX)]


def _scope(node: str, one: Fields) -> JsonObject:
    scope = one.text("scope", 80)
    money: JsonObject = {name: one.maybe_text(name, MONEY_MAX) for name in
                         ("limit_usd", "spent_usd", "reserved_usd", "remaining_usd")}  # fmt: skip
    return {
        "store": node, "scope": scope, **money, "urgent_overdraft": one.flag("urgent_overdraft"),
        "waiting": one.maybe_whole("waiting", 0, WAITING_MAX),
    }  # fmt: skip


def _own(scopes: list[JsonObject]) -> JsonValue:
    """What a node says itself that it spent today; null: it did not say."""
    return next((one["spent_usd"] for one in scopes if one["scope"] == "node"), None)


def _heard_ago(hub: Hub, node: str, now: datetime) -> float | None:
    """Seconds since everything that had happened there was heard; None: never, or not known."""
    at = hub.journal.nodes.heard_at(node)
    return None if at is None else round(max((now - at).total_seconds(), 0.0), 1)


def _heard_today(hub: Hub) -> Counter[str]:
    """What attempts said today that they cost, by node, in millionths; as events told it."""
    found: Counter[str] = Counter()
    for (_, labels), value in hub.journal.tallies.of_today(COSTS).items():
        found[dict(labels).get("node", "")] += value
    return found


def money(millionths: int | None) -> str:
    """USD, exactly, with two places at least."""
    return format((Decimal(millionths or 0) / UNIT).normalize() + Decimal("0.00"), "f")
