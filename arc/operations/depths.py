"""Asks the nodes how urgent what waits there is: READY tasks by tier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agent_node.priority import TIER_NAMES
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from arc.asking import reading
from arc.errors import ArcError, NodeRefused

from .everybody import ask_all

if TYPE_CHECKING:
    from arc.hub import Hub

COUNT_MAX = 2**53
TOO_OLD = "unknown_request"  # a node that does not tell tiers yet: it is counted without them


async def tiers_of(
    hub: Hub, names: Iterable[str]
) -> tuple[dict[str, dict[str, int]], dict[str, ArcError]]:
    """By node how many READY tasks are in each tier, and who failed to say so."""
    answers = await ask_all(hub, "tiers", {}, _tiers, names=names)
    failed = {name: one for name, one in answers.failed.items() if not _is_too_old(one)}
    return dict(answers.said), failed


def _is_too_old(error: ArcError) -> bool:
    return isinstance(error, NodeRefused) and error.rule == TOO_OLD


def _tiers(node: str, said: JsonObject) -> dict[str, int]:
    with reading(node, "tiers"):
        tiers = Fields(said).inside("ready_by_tier")
        return {name.lower(): tiers.whole(name.lower(), 0, COUNT_MAX) for name in TIER_NAMES}
