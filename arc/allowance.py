"""Sees to it that the hub's own queue keeps to what fleet.yaml lets the whole fleet spend a day."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from agent_node.strict import JsonValue

from .journal_work import BUDGET, LastAdded

if TYPE_CHECKING:
    from .hub import Hub


async def set_allowance(hub: Hub) -> None:
    """What fleet.yaml says of money is the inbox's own rule from here on; to say it again is fine.

    Due before anything may be given away: a hub that lives for one round or one order knows of no
    other moment.
    """
    settings, work = hub.settings, hub.journal.work
    wanted = (settings.budget_per_day, settings.urgent_overdraft)
    if wanted == hub.allowance:
        return
    last = work.last(BUDGET, "fleet")  # a limit that was taken out while no hub ran
    known = last is not None and last.spec == str(wanted)
    if wanted[0] is not None or (last is not None and not known):
        stands = known and await _stands(hub, wanted)
        if not stands:
            await _say(hub, wanted)
            since = None if known else _books_since(last)  # a queue that forgot it begins anew
            work.begin(BUDGET, "fleet", str(wanted), since or hub.clock.now())
    hub.allowance = wanted


def is_unset(hub: Hub) -> bool:
    """Whether fleet.yaml says something of money that its queue was not told; asks nobody."""
    settings, last = hub.settings, hub.journal.work.last(BUDGET, "fleet")
    wanted = (settings.budget_per_day, settings.urgent_overdraft)
    return last.spec != str(wanted) if last is not None else wanted[0] is not None


def counted_since(hub: Hub) -> datetime | None:
    """Since when today the books of the fleet's day are kept: midnight UTC, or the moment when a
    limit came where there was none. Another limit in its place goes on with them. None: no limit
    was ever set here.
    """
    since = _books_since(hub.journal.work.last(BUDGET, "fleet"))
    if since is None:
        return None
    midnight = hub.clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return max(since, midnight)


def _books_since(last: LastAdded | None) -> datetime | None:
    """Since when there is a limit; None: what was said last is that there is none, or nothing."""
    return None if last is None or last.spec.startswith("(None,") else last.seen_to


async def _stands(hub: Hub, wanted: tuple[str | None, bool]) -> bool:
    """Whether the queue has this very limit: then looking writes nothing."""
    scopes = (await hub.inbox.ask("budget")).get("scopes")
    return isinstance(scopes, list) and any(
        isinstance(one, dict) and one.get("scope") == "fleet"
        and (_amount(one.get("limit_usd")), one.get("urgent_overdraft"))
        == (_amount(wanted[0]), wanted[1])
        for one in scopes
    )  # fmt: skip


def _amount(usd: JsonValue) -> Decimal | None:
    return Decimal(usd) if isinstance(usd, str) else None


async def _say(hub: Hub, wanted: tuple[str | None, bool]) -> None:
    met = await hub.inbox.meet()
    await hub.inbox.ask("set_budget", {
        "scope": "fleet", "limit_usd": wanted[0], "urgent_overdraft": wanted[1],
        "by": f"human:{hub.settings.file.name}", "incarnation": met.incarnation})  # fmt: skip
