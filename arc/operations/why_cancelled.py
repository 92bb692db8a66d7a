"""Tells who cancelled a task, and for which reason, as its node noted it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_node.readiness import BY_GRAPH
from agent_node.strict import JsonObject
from agent_node.task import UNDERWAY, State
from agent_node.text import safe_text
from arc.asking import read_shown
from arc.errors import ArcError

from .everybody import link_of
from .finding import Found

if TYPE_CHECKING:
    from arc.hub import Hub

CANCELLED, STOPPING = "task_cancelled", "task_stopping"
WHO_MAX, REASON_MAX = 100, 500


async def cancelled_by(hub: Hub, found: Found) -> JsonObject:
    """What replaces the answer of a cancelled task; empty for every other one."""
    if found.task.state != State.CANCELLED:
        return {}
    try:
        said = await link_of(hub, found.node).ask("show", {"uid": found.uid})
        events = read_shown(found.node, found.uid, said).events
    except ArcError as error:
        text = f"it was cancelled; by whom could not be read: {error}"
        return {"result": text, "cancelled": None}
    by, because = _who_and_why(events)
    if not by and not because:
        return {"result": "it was cancelled; by whom is not kept any more", "cancelled": None}
    if by == BY_GRAPH:  # the reason of its failure says which edge that was
        text = "it was cancelled by what it waited for, or by its graph"
    else:
        text = "it was cancelled" + (f" by {by}" if by else "")
    if because and because not in (found.task.failure_reason, f"cancelled by {by}"):
        silent = because == f"{by} gave no reason"
        text += ", who gave no reason" if silent else f": {because}"
    return {"result": text, "cancelled": {"by": by or None, "because": because}}


def _who_and_why(events: Sequence[JsonObject]) -> tuple[str, str]:
    """Of its last end; both may be empty. Where it ran until then its node ended it, at the word of
    whoever had told it to stop, with the same reason.
    """
    ends = [one for one in events if one.get("event") == CANCELLED]
    if not ends:
        return "", ""
    why = ends[-1].get("because")
    words = [one for one in events if one.get("event") == STOPPING and one.get("because") == why]
    told = words[-1] if words and ends[-1].get("was") in UNDERWAY else ends[-1]
    return (safe_text(str(told.get("by") or ""), WHO_MAX),
            safe_text(str(why or ""), REASON_MAX))  # fmt: skip
