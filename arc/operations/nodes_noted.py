"""Writes down that a node joined, was trusted anew, or left: what its own command did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from agent_node.text import safe_text

from . import Told

if TYPE_CHECKING:
    from arc.hub import Hub

EVENTS = ("node_joined", "node_trusted", "node_removed")
FACTS = ("where", "host_key", "reason")  # addresses, fingerprints and a person's word; no secrets
FACT_MAX = 300


async def nodes_noted(hub: Hub, args: JsonObject) -> Told:
    """One line in the log. The node need not be in fleet.yaml as the hub knows it: it may just
    have come or gone.
    """
    asked = Fields(args)
    event, name, by = asked.text("event"), asked.node("node"), asked.text_or("by", "human:unknown")
    if event not in EVENTS:
        raise BadInput(f"should be one of {', '.join(EVENTS)}", "event")
    facts = {fact: safe_text(asked.text_or(fact, "", FACT_MAX), FACT_MAX) for fact in FACTS}
    hub.journal.runs.log(event, node=name, fields={
        "by": by, **{fact: said for fact, said in facts.items() if said}})  # fmt: skip
    return Told({"node": name, "event": event})
