"""Sees to it that the hub's own queue keeps to what fleet.yaml lets the whole fleet spend a day."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from agent_node.strict import JsonValue

from .journal_work import BUDGET

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
        if not (known and await _stands(hub, wanted)):
            await _say(hub, wanted)
        if not known:
            work.begin(BUDGET, "fleet", str(wanted), hub.clock.now())
    hub.allowance = wanted


def is_unset(hub: Hub) -> bool:
    """Whether fleet.yaml says something of money that its queue was not told; asks nobody."""
    settings, last = hub.settings, hub.journal.work.last(BUDGET, "fleet")
    wanted = (settings.budget_per_day, settings.urgent_overdraft)
    return last.spec != str(wanted) if last is not None else wanted[0] is not None


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
