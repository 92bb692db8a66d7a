"""Writes into the hub's log what ended badly somewhere: dead letters and graphs that failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject

if TYPE_CHECKING:
    from arc.hub import Hub

DEAD, GRAPH = "task_dead_lettered", "dag_failed"
LOGGED_MAX = 50  # dead letters of one page that get a line each


def log_bad_ends(
    hub: Hub, node: str, events: Sequence[tuple[JsonObject, datetime]]
) -> None:  # fmt: skip
    """A line for each, with when it was; of very many dead letters at once only how many. A line
    has no word of a task: of what it died is told by `arc dead show`.
    """
    dead = [(event, at) for event, at in events if event.get("event") == DEAD]
    if len(dead) > LOGGED_MAX:
        hub.journal.runs.log("tasks_dead_lettered", node=node, fields={
            "count": len(dead), "ended_at": iso(dead[0][1])})  # fmt: skip
        dead = []
    for event, at in dead:
        data = event.get("data")
        kind = data.get("error_kind") if isinstance(data, dict) else None
        hub.journal.runs.log("task_dead_lettered", node=node, task=str(event.get("uid") or ""),
                             fields={"kind": kind, "ended_at": iso(at)})  # fmt: skip
    for event, at in events:
        if event.get("event") == GRAPH:
            hub.journal.runs.log("dag_failed", node=node, fields={
                "dag": event.get("uid"), "ended_at": iso(at)})  # fmt: skip
