"""Says which tasks wait in the hub's queue although another node says that they have ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.asking import read_shown
from arc.custody import settled_elsewhere
from arc.errors import ArcError
from arc.looking import INBOX

if TYPE_CHECKING:
    from arc.hub import Hub

ROUTER, RULE = "fleet-router", "not_ended_elsewhere"
SHOWN_MAX = 20


async def leftovers(hub: Hub) -> list[JsonValue]:
    """A line for each, with what to type; found by the router's last run, looked at again now."""
    run = hub.journal.runs.last_that_ran(ROUTER)
    kept = run.report.details.get("kept") if run else None
    if run is None or not isinstance(kept, dict) or not kept.get(RULE):
        return []
    whole = hub.journal.runs.run(run.id)
    said = {one.uid: one.because for one in (whole.report.decisions if whole else ())
            if one.rule == RULE and one.uid}  # fmt: skip
    shown = list(said)[:SHOWN_MAX]
    waits = await asyncio.gather(*(_waits(hub, uid) for uid in shown))
    return [_line(uid, said[uid]) for uid, there in zip(shown, waits, strict=True) if there]


async def _waits(hub: Hub, uid: str) -> bool:
    """Whether it still waits here. Where the queue cannot say, what was true last is not hidden."""
    if uid not in settled_elsewhere(hub, [uid]):
        return False
    try:
        shown = read_shown(INBOX, uid, await hub.inbox.ask("show", {"uid": uid}))
    except ArcError:
        return True
    return shown.task.state == "READY"


def _line(uid: str, because: str) -> JsonObject:
    return {"node": INBOX, "text": f"{uid} waits in the hub's queue: {because}",
            "try": f"arc why {uid}"}  # fmt: skip
