"""Stops giving a node anything, and asks it once more after that: for who takes it out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from arc.decisions.view import NodeSeen, NodeUnseen
from arc.survey import survey

from . import Told
from .everybody import check_node, link_of
from .nodes import last_open
from .status import state_of

if TYPE_CHECKING:
    from arc.hub import Hub

# A removal that was cut off leaves the node suspended no longer than this.
LEAVES_S = 600.0
LEAVES = "it leaves the fleet"


async def nodes_leave(hub: Hub, args: JsonObject) -> Told:
    """The node is suspended, no move to it is under way any more, and this is how it is then.

    A node that was suspended before is asked, too, and stays so as it was said then.
    """
    asked = Fields(args)
    name, by = asked.node("node"), asked.text_or("by", "human:unknown")
    check_node(hub, name)
    words = hub.journal.words
    before = words.suspended().get(name)
    if before is not None:
        words.unsuspend(name)
        await hub.follow_words()
    until = before.until if before else hub.clock.now() + timedelta(seconds=LEAVES_S)
    async with hub.moving:  # who gives holds it, from looking to the last step
        link = link_of(hub, name)
        words.suspend(name, reason=before.reason if before else LEAVES,
                      by=before.by if before else by, until=until)  # fmt: skip
        del hub.links[name]
        view = await survey({name: link}, roles=hub.roles(), clock=hub.clock)
    await link.close()
    hub.journal.runs.log("node_suspended", node=name, fields={"by": by, "reason": LEAVES})
    return Told({"node": name, "was_suspended": before is not None,
                 "until": iso(until) if until else None,
                 **_how_it_is(hub, name, view.node(name))})  # fmt: skip


def _how_it_is(hub: Hub, name: str, node: NodeSeen | NodeUnseen | None) -> JsonObject:
    if isinstance(node, NodeSeen):
        return {"seen": True, "state": state_of(node), "counts": dict(node.report.counts)}
    reason = node.because if node is not None else "it was not asked"
    return {"seen": False, "state": "unseen", "reason": reason, "last_open": last_open(hub, name)}
