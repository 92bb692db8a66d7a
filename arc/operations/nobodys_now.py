"""Says what waits in the hub's own queue and is no node's work by fleet.yaml, for NEEDS YOU."""

from __future__ import annotations

from dataclasses import replace

from agent_node.strict import JsonObject, JsonValue
from arc.asking import queued, read_listed
from arc.beside import Beside
from arc.decisions.nobodys_work import NobodysWork, all_is_done, nobodys_work
from arc.decisions.view import NodeSeen
from arc.errors import ArcError
from arc.looking import INBOX, Look
from arc.planning import with_ends

LOOKED_AT = 1000  # READY tasks of the hub's own queue, those first that came first
SHOWN_MAX = 20


async def ask_inbox(seen: Look) -> tuple[NobodysWork, ...]:
    """Nothing is asked of an empty queue, nor where a fallback gets what is left; where the queue
    cannot say, what it said last stands.
    """
    hub, inbox = seen.hub, seen.inbox
    if all_is_done(hub.roles(), hub.settings.route):
        return ()
    if not isinstance(inbox, NodeSeen):
        return hub.beside.nobodys
    if not inbox.report.pending_count:
        return ()
    asked: JsonObject = {"states": ["READY"], "limit": LOOKED_AT}
    try:
        page = read_listed(INBOX, await seen.links[INBOX].ask("list", asked))
    except ArcError:
        return hub.beside.nobodys
    tasks, settings = with_ends(hub, [queued(task) for task in page.tasks]), hub.settings
    found = nobodys_work(tasks, settings.domains, hub.roles(), settings.route)
    return tuple(replace(one, more=page.next is not None) for one in found)


def nobodys_now(beside: Beside) -> list[JsonValue]:
    """A line for each reason, with how many wait; `arc why` of the first has what to change."""
    return [{"node": INBOX, "try": f"arc why {one.first}", "text": f"{one.count} "
             f"{'or more ' if one.more else ''}READY, but {one.because}"}
            for one in beside.nobodys[:SHOWN_MAX]]  # fmt: skip
