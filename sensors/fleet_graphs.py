"""Carries ends of tasks to the stores that wait for them, so that graphs go on across the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.text import counted
from arc.bringing import bring, with_artifacts
from arc.circling import unheard_circles
from arc.endings import tell_heard
from arc.graph_cancels import carry_out_cancels
from arc.looking import INBOX, Look, look
from arc.lost_files import note_lost_files
from arc.outbox import WHY_MAX, Delivered, deliver, waiting_for_others
from arc.sensor import SensorReport, skipped
from arc.settings import FleetSettings
from arc.unfound import unheard

from .hearing import Heard, hear_events
from .reporting import costs

if TYPE_CHECKING:
    from arc.hub import Hub

EVERY_S = 60.0
TIED_S = 180.0  # after which tasks that others wait for have left the hub, or wait there for long
ROUTER = "fleet-router"


class FleetGraphs:
    """Every minute, and when a task finished while somebody waits for one; it moves nothing.

    1. Read every node's report. 2. Hear what ended on each, where a store waits for a task that
    another has. 3. Cancel what is left of cancelled graphs. 4. Ask who waits for what, and tell
    it: births into graphs, what lives again, ends with their output. What becomes READY at the hub
    by it is routed at once.
    """

    name = "fleet-graphs"
    gives_away = False
    verbs: Mapping[str, str] = {
        "status": "the last run: who waits for how many tasks elsewhere, and what was told",
        "tell": "run now",
    }

    def __init__(self, settings: FleetSettings) -> None:
        entry = settings.sensors.get(self.name)
        self.every_s = entry.every_s if entry else EVERY_S

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        """One round over the whole fleet."""
        return await self._round(hub, frozenset())

    async def run_woken(self, hub: Hub, now: datetime, woken: frozenset[str]) -> SensorReport:
        """One round for these nodes' news; the others stand as they were seen last."""
        return await self._round(hub, woken)

    async def _round(self, hub: Hub, woken: frozenset[str]) -> SensorReport:
        seen = await look(hub, woken=woken)
        waits = waiting_for_others(seen)
        hub.awaiting = bool(waits) or hub.clock.boottime() - hub.tied_at < TIED_S
        if not (waits or hub.journal.outbox.open()):
            hub.circles, hub.unfound = unheard_circles(seen), unheard(seen)  # of the others: nobody
            note_lost_files(hub, {}, (), seen.whole.unheard)
            if woken:
                return skipped(self.name, "nobody waits")
            return self._report(seen, None, None, 0)
        heard = await hear_events(hub, seen, [one for one in seen.whole.seen
                                              if one.name in seen.links])  # fmt: skip
        told = await tell_heard(hub, seen.whole, seen.links, tuple(heard.ends))
        await _cancel_what_is_owed(hub, seen)
        done = await deliver(hub, seen, behind=heard.behind)
        brought = await bring(hub, seen, told=done.stores)
        if INBOX in done.stores | heard.released | brought.stores and hub.schedule is not None:
            hub.schedule.soon(ROUTER, "a graph went on", woken=frozenset({INBOX}))
        if brought.left and hub.schedule is not None:
            hub.schedule.soon(self.name, "artifacts are on their way", woken=frozenset({INBOX}))
        quiet = not (done.stores or done.failed or brought.stores or brought.failed)
        if woken and quiet:
            return skipped(self.name, "nothing to tell")  # such a run is counted, not written down
        return with_artifacts(self._report(seen, heard, done, told), brought)

    def _report(
        self, seen: Look, heard: Heard | None, done: Delivered | None, told: int
    ) -> SensorReport:
        blind = not seen.view.seen and bool(seen.view.silent)
        details: JsonObject = {**seen.tally.told()}
        summary = "no store waits for a task elsewhere"
        if heard is not None and done is not None:
            summary = _summary(done)
            details |= {
                "waiting": {**done.waiting}, "joined": done.joined, "alive": done.alive,
                "ended": done.ended, "ends_told": told, "unheard": {**heard.unheard},
                "untold": {**done.failed}, "behind": [*sorted(heard.behind)],
            }  # fmt: skip
        acted = 0 if done is None else done.joined + done.alive + done.ended
        return SensorReport(
            self.name, "could_not_look" if blind else "done",
            "; ".join([summary, *(costs(seen) if acted else ())]),
            looked=len(seen.view.seen), unseen=len(seen.view.silent),
            decided=0 if done is None else sum(done.waiting.values()), acted=acted,
            requests=seen.tally.requests, details=details,
        )  # fmt: skip


async def _cancel_what_is_owed(hub: Hub, seen: Look) -> None:
    """Members of cancelled graphs whose nodes could not be told at the time."""
    if not hub.journal.outbox.owed_cancels():
        return
    async with hub.moving:
        carried = await carry_out_cancels(hub, seen.links, all_there=not seen.whole.unseen)
    for node, error in carried.failed.items():
        fields: JsonObject = {"because": str(error)[:WHY_MAX]}
        hub.journal.runs.log("cancels_still_owed", node=node, fields=fields)


def _summary(done: Delivered) -> str:
    waits = [f"{store} waits for {counted(count, 'task')}"
             for store, count in sorted(done.waiting.items())]  # fmt: skip
    said = [counted(done.ended, "end") + " told"] if done.ended else []
    said += [counted(done.joined, "birth") + " told"] if done.joined else []
    said += [f"{counted(done.alive, 'task')} told to live again"] if done.alive else []
    failed = [f"{store} could not be told" for store in sorted(done.failed)]
    return "; ".join([*waits, *said, *failed]) or "nobody waits any more"
