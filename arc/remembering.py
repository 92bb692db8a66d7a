"""Keeps what a look found: for the next one, which may ask but a few, and in the journal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .decisions.view import FleetView, NodeSeen
from .replaced import remember_met

if TYPE_CHECKING:
    from .hub import Hub

LOOKERS = frozenset({"fleet-rebalance", "fleet-health"})  # they look at everybody, on time
MISSED, GAP_LEAST_S = 2.5, 30.0
OVER = frozenset("COMPLETED FAILED DEAD_LETTERED CANCELLED MOVED".split())


def remember(hub: Hub, found: FleetView) -> None:
    """Who was met, for health; and everything that was seen, for a look at a part of the fleet."""
    met = [hub.links[node.name].met for node in found.seen if node.name in hub.links]
    journal = hub.journal
    with journal.together():
        journal.history.samples.look(found.seen, found.unseen, gap_s=_gap_s(hub))
        remember_met(journal, (one for one in met if one is not None))
        journal.nodes.count_open({node.name: open_tasks(node) for node in found.seen})
    fresh = {node.name for node in found.seen} | {node.name for node in found.unseen}
    now = hub.clock.boottime()
    older = aged(hub.last_view, now - hub.last_look_s) if hub.last_view else FleetView(found.at)
    # Another look may have begun later, and ended before a silent node let this one end.
    later = {node.name: node for node in older.seen}
    seen = [known if (known := later.get(one.name)) and known.age_s < one.age_s else one
            for one in found.seen]  # fmt: skip
    hub.last_view = FleetView(
        found.at,
        (*(one for one in older.seen if one.name not in fresh), *seen),
        (*(one for one in older.unseen if one.name not in fresh), *found.unseen),
    )
    hub.last_look_s = now


def _gap_s(hub: Hub) -> float:
    """How long nobody may have looked, for what was seen to count for the time between: somewhat
    more than the shortest interval at which everybody is looked at.
    """
    entries = hub.settings.sensors
    every_s = [sensor.every_s for sensor in hub.sensors if sensor.name in LOOKERS
               and (sensor.name not in entries or entries[sensor.name].enabled)]  # fmt: skip
    return max(MISSED * min(every_s, default=0.0), GAP_LEAST_S)


def open_tasks(node: NodeSeen) -> int:
    """How many tasks of a node are not over: those that wait for something or rest count too."""
    return sum(count for state, count in node.report.counts.items() if state not in OVER)


def aged(view: FleetView, seconds: float) -> FleetView:
    """The same view, by so many seconds later."""
    seen = tuple(replace(node, age_s=node.age_s + seconds) for node in view.seen)
    return replace(view, seen=seen)
