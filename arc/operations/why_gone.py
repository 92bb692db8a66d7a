"""Tells of a task that was moved to a node which is no longer in the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from arc.decisions.answers import CHANGE
from arc.looking import INBOX

from .finding import Found

if TYPE_CHECKING:
    from arc.hub import Hub


def gone_with(hub: Hub, found: Found) -> JsonObject:
    """What replaces the answer of such a task; empty where its node is still one of the fleet."""
    if found.task.state != "MOVED":
        return {}
    moves = hub.journal.runs.moves(uid=found.uid, limit=100)
    last = next((line.move for line in moves if line.move.outcome == "moved"), None)
    if last is None or last.idle == INBOX or hub.settings.node(last.idle) is not None:
        return {}
    node = last.idle
    return {
        "verdict": CHANGE,
        "result": f"it was moved to {node}, which is no longer in the fleet: nobody here sees it",
        "by_hand": [
            f"arc nodes add USER@HOST --name {node}",
            f"arc nodes fence {node} --yes-it-is-off  # with its line in fleet.yaml again",
        ],
    }  # fmt: skip
