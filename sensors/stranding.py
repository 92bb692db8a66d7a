"""Counts for how long free slots and work that fits them are kept apart, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from arc.decisions.stranded import add_up, stranded_asking, stranded_now
from arc.looking import Look
from arc.queues import look_into

if TYPE_CHECKING:
    from arc.hub import Hub

STRETCH = 2.0  # intervals that one look may stand for: a hub that slept saw nothing of the rest


async def count_stranded(hub: Hub, seen: Look, *, sensor: str, every_s: float) -> JsonObject:
    """Who is stranded now; the time since the last look is added to each, by what kept them so.

    What holds at the moment of a look is taken to have held since the one before it.
    """
    limits, view = hub.settings.steal, seen.whole
    names, asked = stranded_asking(view, limits, seen.memory)
    known = [name for name in names if name in seen.links]
    queues = await look_into(seen.links, known, asked) if known else {}
    found = stranded_now(view, queues, domains=hub.settings.domains, limits=limits,
                         memory=seen.memory)  # fmt: skip
    last = hub.journal.runs.last_that_ran(sensor)
    since_s = (hub.clock.now() - last.at).total_seconds() if last else 0.0
    seconds = min(max(since_s, 0.0), STRETCH * every_s)
    with hub.journal.together():
        hub.journal.nodes.strand(add_up(found, seconds))
        hub.journal.history.strand(found, seconds)
    return {
        "stranded": [
            {"node": one.node, "cause": one.cause, "rule": one.rule, "because": one.because,
             "uid": one.uid, "beside": one.beside}
            for one in found
        ],
    }  # fmt: skip
