"""Sees to it that the hub's own queue keeps to what fleet.yaml lets the whole fleet spend a day."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from agent_node.clock import iso, parse_iso
from agent_node.strict import JsonValue

from .journal_work import BUDGET, LastAdded

if TYPE_CHECKING:
    from .hub import Hub

GAPS_MAX = 20  # of one day; of more the last


class Gap(NamedTuple):
    """A time without a limit; None: that moment is not known, or it is not over."""

    since: datetime | None
    until: datetime | None


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
            _note(hub, last, wanted)
    hub.allowance = wanted


def is_unset(hub: Hub) -> bool:
    """Whether fleet.yaml says something of money that its queue was not told; asks nobody."""
    settings, last = hub.settings, hub.journal.work.last(BUDGET, "fleet")
    wanted = (settings.budget_per_day, settings.urgent_overdraft)
    return last.spec != str(wanted) if last is not None else wanted[0] is not None


def counted_since(hub: Hub) -> datetime | None:
    """Since when today the books of the fleet's day are kept: midnight UTC, or the moment when a
    limit came where there was none that day. Another limit goes on with them, and so does one that
    comes back. None: there is no limit.
    """
    last, now = hub.journal.work.last(BUDGET, "fleet"), hub.clock.now()
    if last is None or _is_none(last):
        return None
    midnight = _midnight(now)  # also where a clock that was ahead wrote the moment
    return last.seen_to if midnight < last.seen_to <= now else midnight


def not_counted(hub: Hub) -> tuple[Gap, ...]:
    """When today no limit stood: what was given out meanwhile is in no books."""
    last, now = hub.journal.work.last(BUDGET, "fleet"), hub.clock.now()
    return tuple(
        gap if gap.until <= now else Gap(None, None) for gap in _gaps(last)
        if gap.until is not None and gap.until >= _midnight(now)
    )  # fmt: skip


def _note(hub: Hub, last: LastAdded | None, wanted: tuple[str | None, bool]) -> None:
    """What was said, since when the books are kept, and when no limit stood. A queue that forgot
    what it was told begins anew.
    """
    now, gaps = hub.clock.now(), _gaps(last)
    if last is None or last.spec == str(wanted):
        since, gaps = now, ()
    elif wanted[0] is None:
        since, gaps = last.seen_to, gaps if _is_none(last) else (*gaps, Gap(now, None))
    else:
        since, gaps = _come_back(last, now) if _is_none(last) else (last.seen_to, gaps)
    said = " ".join("/".join(iso(at) if at else "" for at in gap) for gap in gaps[-GAPS_MAX:])
    hub.journal.work.begin(BUDGET, "fleet", str(wanted), since, because=said)


def _come_back(last: LastAdded, now: datetime) -> tuple[datetime, tuple[Gap, ...]]:
    """The same for a limit where there was none: the books of a day go on if it had one before."""
    *closed, left = _gaps(last) or (Gap(None, None),)  # an older hub kept no moment
    if left.since is not None and left.since < _midnight(now):
        return now, ()
    known = left.since if left.since is not None and left.since <= now else None
    return last.seen_to, (*closed, Gap(known, now))


def _gaps(last: LastAdded | None) -> tuple[Gap, ...]:
    pairs = [one.partition("/") for one in (last.because.split() if last else ())]
    return tuple(Gap(*(parse_iso(at) if at else None for at in (since, until)))
                 for since, _, until in pairs)  # fmt: skip


def _midnight(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _is_none(last: LastAdded) -> bool:
    """Whether what was said last is that there is no limit."""
    return last.spec.startswith("(None,")


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
