"""Tells people what needs them, by program, webhook or mail: grouped, and each thing once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject
from agent_node.text import counted
from arc.decisions.notices import Happened, document_of, is_due, of_alert
from arc.journal_notices import Receiver
from arc.sensor import SensorReport, skipped
from arc.settings import FleetSettings, NotifyEntry

if TYPE_CHECKING:
    from arc.delivering import NotDelivered
    from arc.hub import Hub

EVERY_S = 30.0


class FleetNotices:
    """Every thirty seconds: what the nodes' events and the troubles of health say is news.

    All receivers are told at once, each within forty seconds; the other sensors go on meanwhile.
    One that does not take its notice is tried again, ever less often. What was told stands in the
    journal once the receiver has it: a hub that dies in between tells it again, under the same id.
    """

    name = "fleet-notices"
    gives_away = False
    verbs: Mapping[str, str] = {"status": "what was told last", "run": "look now"}
    quiet = True  # a round without news is not written down

    def __init__(self, settings: FleetSettings) -> None:
        entry = settings.sensors.get(self.name)
        self.every_s = entry.every_s if entry else EVERY_S

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        """One round over every receiver."""
        entries, book = hub.settings.notify, hub.journal.notices
        receivers = book.receivers(one.name for one in entries)
        book.note_troubles(filter(None, (
            of_alert(line.alert.node, line.alert.rule, line.alert.because, line.at)
            for line in hub.journal.nodes.troubles()
        )), stays_s=hub.settings.health.stale_after_s)  # fmt: skip
        waiting = [(entry, receivers[entry.name], book.waiting(receivers[entry.name], entry.on))
                   for entry in entries]  # fmt: skip
        due = [
            (entry, receiver, things) for entry, receiver, things in waiting
            if is_due(waiting=len(things), told_at=receiver.told_at, again_at=receiver.again_at,
                      at_most_s=entry.at_most_s, now=now)
        ]  # fmt: skip
        said = await asyncio.gather(*(_tell(hub, *one, now) for one in due))
        return _report(self.name, list(said))


async def _tell(
    hub: Hub, entry: NotifyEntry, receiver: Receiver, things: list[Happened], now: datetime
) -> JsonObject:
    """One notice to one receiver, and what came of it."""
    from arc.delivering import NotDelivered, deliver  # HTTP and mail, for who has a receiver

    notice = document_of(things, fleet=hub.settings.fleet, hub=hub.settings.hub, sink=entry.name,
                         at=iso(now))  # fmt: skip
    said: JsonObject = {"receiver": entry.name, "things": len(things), "told": True, "because": ""}
    try:
        await deliver(entry, notice, at_s=now.timestamp())
    except NotDelivered as error:
        return {**said, "told": False, "because": _in_vain(hub, entry, receiver, things, error)}
    hub.journal.notices.told(entry.name, things[-1].id)
    hub.journal.runs.log("notice_told", sensor=FleetNotices.name,
                         fields={"receiver": entry.name, "things": len(things)})  # fmt: skip
    return said


def _in_vain(
    hub: Hub, entry: NotifyEntry, receiver: Receiver, things: list[Happened], error: NotDelivered
) -> str:
    because = str(error)
    tries = hub.journal.notices.failed(receiver, because)
    if tries < entry.attempts:
        return because
    hub.journal.notices.give_up(entry.name, things[-1].id, f"given up: {because}")
    hub.journal.runs.log("notice_given_up", sensor=FleetNotices.name, fields={
        "receiver": entry.name, "things": len(things), "because": because})  # fmt: skip
    return f"given up after {counted(tries, 'attempt')}: {because}"


def _report(name: str, said: list[JsonObject]) -> SensorReport:
    if not said:
        return skipped(name, "nobody has to be told anything")
    told = [one for one in said if one["told"]]
    parts = [f"{counted(len(told), 'receiver')} told"]
    parts += [f"{one['receiver']} not: {one['because']}" for one in said if not one["told"]]
    return SensorReport(name, "done" if told else "failed", "; ".join(parts), decided=len(said),
                        acted=len(told), details={"receivers": [*said]})  # fmt: skip
