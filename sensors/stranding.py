"""Counts for how long free slots and work that fits them are kept apart, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from arc.decisions.stranded import (
    LastLook,
    add_up,
    charge,
    free_nodes,
    stranded_asking,
    stranded_now,
)
from arc.looking import Look
from arc.queues import look_into

if TYPE_CHECKING:
    from arc.hub import Hub

STRETCH = 2.0  # intervals that one look may stand for: a hub that slept saw nothing of the rest


async def count_stranded(hub: Hub, seen: Look, *, sensor: str, every_s: float) -> JsonObject:
    """Who is stranded now; the time since the last look is added to each, by what kept them so,
    as far as the two can have stood side by side in it.
    """
    limits, view = hub.settings.steal, seen.whole
    names, asked = stranded_asking(view, limits, seen.memory)
    known = [name for name in names if name in seen.links]
    queues = await look_into(seen.links, known, asked) if known else {}
    found = stranded_now(view, queues, domains=hub.settings.domains, limits=limits,
                         memory=seen.memory)  # fmt: skip
    last = _last_look(hub, sensor, STRETCH * every_s)
    charged = [(one, charge(one, last)) for one in found]
    with hub.journal.together():
        hub.journal.nodes.strand(add_up(charged))
        hub.journal.history.strand(charged)
    return {
        "stranded": [
            {"node": one.node, "cause": one.cause, "rule": one.rule, "because": one.because,
             "uid": one.uid, "beside": one.beside}
            for one in found
        ],
        "free": [node.name for node in free_nodes(view, limits, seen.memory)],
    }  # fmt: skip


def _last_look(hub: Hub, sensor: str, most_s: float) -> LastLook:
    """As the last run wrote down whom it judged and who was free; before the first: no time."""
    last = hub.journal.runs.last_that_ran(sensor)
    if last is None:
        return LastLook(0.0, frozenset(), frozenset())
    since_s = (hub.clock.now() - last.at).total_seconds()
    judged, free = last.report.details.get("nodes"), last.report.details.get("free")
    known = (one.get("node") for one in judged if isinstance(one, dict)) \
        if isinstance(judged, list) else ()
    return LastLook(min(max(since_s, 0.0), most_s), frozenset(map(str, known)),
                    frozenset(map(str, free if isinstance(free, list) else ())))  # fmt: skip
