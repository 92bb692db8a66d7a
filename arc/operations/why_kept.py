"""Tells that a retried task is kept for its move, so that its own node does not start it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.standing import KEPT_FOR_MOVE
from agent_node.strict import JsonObject
from agent_node.task import State
from agent_node.text import safe_text
from arc.asking import reading
from arc.errors import ArcError

from .everybody import link_of
from .finding import Found

if TYPE_CHECKING:
    from arc.hub import Hub

TEXT_MAX = 300


async def kept_for_its_move(hub: Hub, found: Found) -> JsonObject:
    """What its node says of it; empty for every other one. Each retry has raised the epoch."""
    if found.task.state != State.READY or found.task.epoch == 1:
        return {}
    try:
        said = await link_of(hub, found.node).ask(
            "list", {"match": found.uid, "limit": 1, "why": True})  # fmt: skip
        with reading(found.node, "list"):
            reasons = Fields(said).inside("reasons") if "reasons" in said else Fields({})
            if not reasons.has(found.uid):
                return {}
            one = reasons.inside(found.uid)
            rule, text = one.text_or("rule", ""), one.text_or("text", "", TEXT_MAX)
    except ArcError:  # what it would have kept from starting is told without it
        return {}
    if rule != KEPT_FOR_MOVE:
        return {}
    return {"kept_here": {"rule": rule, "because": safe_text(text, TEXT_MAX)},
            "ahead": None, "reach_s": None}  # fmt: skip
