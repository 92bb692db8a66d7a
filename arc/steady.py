"""Says whether the hub's wall clock is to be believed where something is forgotten for its age."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from .journal import KEEP_DAYS

if TYPE_CHECKING:
    from .hub import Hub

DAY = timedelta(days=1)


def why_not_by_age(hub: Hub) -> str:
    """Why nothing may be forgotten for its age now; "": it may.

    A clock that is wrong for an hour, or at one start, would make everything old at once, and what
    is forgotten does not come back. So it has to have gone on for a day with the hub at work, which
    the journal itself bears witness to, whatever was restarted meanwhile; and of the nodes more
    than half must agree with it to within a day. Until then only what is too much goes.
    """
    now = hub.clock.now()
    if not hub.journal.ran_between(now - 2 * DAY, now - DAY):
        return "no run of a day ago is known, so the clock may just have been set on"
    met = hub.journal.nodes.met()
    known = [met[node.name].clock_off_s for node in hub.settings.nodes if node.name in met]
    offs = [abs(off) for off in known if off is not None]
    wrong = sum(off > DAY.total_seconds() for off in offs)
    if wrong and 2 * wrong >= len(offs):
        return f"by {wrong} of {len(offs)} nodes the hub's clock is more than a day off"
    return ""


def may_forget(hub: Hub, told: str) -> tuple[bool, str]:
    """Whether what is old may go, and why not; that is logged once, where anything would have gone.
    `told` is what was said the last time.
    """
    why = why_not_by_age(hub)
    old = hub.clock.now() - timedelta(days=KEEP_DAYS)
    if why and why != told and hub.journal.ran_between(old - 36_500 * DAY, old):
        hub.journal.runs.log("forgetting_waits", fields={"because": why})
        return False, why
    return not why, told if why else ""
