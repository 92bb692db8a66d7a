"""Moves waiting tasks from busy nodes to idle ones, away from who failed them, and off drains."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from arc.decisions.explain import ends_of
from arc.entitling import tying
from arc.looking import look_and_settle
from arc.planning import after_drains, drains_now, retries_now, steals_now
from arc.sensor import SensorReport
from arc.settings import FleetSettings
from arc.transfer import carry_out

from .reporting import Planned, paused, refusals_of, report_of

if TYPE_CHECKING:
    from arc.hub import Hub

EVERY_S = 300.0


class FleetRebalance:
    """Every five minutes the whole fleet; under `swift`, or with `on_idle`, also when a node asks.

    1. Read every node's report, all at once; end what earlier moves left in doubt.
    2. Find idle nodes, 3. find busy ones. 4. Without a pair of them nothing more is asked.
    5. Look into the busy nodes' queues, plan for each idle node, and carry the plan out; what
    waits on nodes that drain goes with it, whatever the caps and thresholds of stealing, and so
    does what everybody on its node has failed, within the caps.
    """

    name = "fleet-rebalance"
    verbs: Mapping[str, str] = {
        "status": "the last run and its cost, every node, what moved and what stays, the totals",
        "plan": "what a run would do now; changes nothing",
        "steal": "run now",
        "why": "why a task was not moved",
        "show": "one run whole, by its number",
    }

    def __init__(self, settings: FleetSettings) -> None:
        entry = settings.sensors.get(self.name)
        self.every_s = entry.every_s if entry else EVERY_S

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        """One cycle over the whole fleet."""
        return await self.run_woken(hub, now, frozenset())

    async def run_woken(self, hub: Hub, now: datetime, woken: frozenset[str]) -> SensorReport:
        """One cycle for the sake of these nodes; without any, for all."""
        stopped = paused(hub, self.name)
        if stopped is not None:
            return stopped
        async with hub.moving:
            seen = await look_and_settle(hub, woken=woken, for_queues=True)
            drain = await drains_now(seen)
            seen = after_drains(seen, drain)
            retry = await retries_now(seen)
            plan, _ = await steals_now(seen, after=retry.steals)
            moves = (*drain.steals, *retry.steals, *plan.steals)
            outcomes = await carry_out(moves, seen.links, note=tying(hub))
            hub.stirred |= ends_of(moves)
        hub.journal.nodes.refuse(refusals_of(outcomes))
        planned = Planned(
            len(moves), (*drain.counts, *plan.counts),
            [*retry.kept, *plan.kept] if retry.kept else plan.kept,
            (*plan.nodes, *retry.nodes), plan.skipped, plan.caps_hit,
        )  # fmt: skip
        return report_of(self.name, seen, planned, outcomes)
