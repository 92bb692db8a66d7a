"""Pushes the tasks of the hub's own queue to the nodes whose work they are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from arc.decisions.explain import ends_of
from arc.endings import hinted
from arc.entitling import tying
from arc.looking import INBOX, look_and_settle
from arc.planning import routes_now
from arc.sensor import SensorReport
from arc.settings import FleetSettings
from arc.transfer import carry_out

from .reporting import Planned, paused, refusals_of, report_of

if TYPE_CHECKING:
    from arc.hub import Hub

EVERY_S = 1800.0


class FleetRouter:
    """Every thirty minutes: the hub's queue, the most urgent first, to the owner of each domain.

    1. Read every node's report; end what earlier moves left in doubt. 2. Look into the hub's queue.
    3. Plan: the owner, else who also does it, the least loaded first, within soft and hard limits;
    what nobody wanted twice goes to the fallback node. 4. Carry it out. What stays says why.
    """

    name = "fleet-router"
    verbs: Mapping[str, str] = {
        "status": "the last run, what waits at the hub and why, each node's load",
        "dry-run": "where each task would go now; changes nothing",
        "route": "run now",
    }

    def __init__(self, settings: FleetSettings) -> None:
        entry = settings.sensors.get(self.name)
        self.every_s = entry.every_s if entry else EVERY_S

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        """One cycle over the whole fleet."""
        return await self._cycle(hub, frozenset(), counted=True)

    async def run_woken(self, hub: Hub, now: datetime, woken: frozenset[str]) -> SensorReport:
        """One cycle for these nodes' sake. It is no cycle that nobody wanted a task in."""
        return await self._cycle(hub, woken - {INBOX}, counted=False)

    async def _cycle(self, hub: Hub, woken: frozenset[str], *, counted: bool) -> SensorReport:
        stopped = paused(hub, self.name)
        if stopped is not None:
            return stopped
        async with hub.moving:
            seen = await look_and_settle(hub, woken=woken)
            plan = await routes_now(seen)
            outcomes = await carry_out(plan.routes, seen.links, note=tying(hub))
            hub.stirred |= ends_of(plan.routes)
            hub.journal.ends.note(await hinted(hub, seen.links, outcomes))
        hub.journal.nodes.refuse(refusals_of(outcomes))
        if counted:
            hub.journal.nodes.count_unclaimed(plan.unclaimed)
        empty = not (plan.routes or plan.kept or plan.counts)
        planned = Planned(len(plan.routes), plan.counts, plan.kept, plan.nodes,
                          "nothing to route" if empty else None)  # fmt: skip
        return report_of(self.name, seen, planned, outcomes)
