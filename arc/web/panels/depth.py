"""Draws up how deep the queues were: a small plot a node, the deepest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import NodeDepths

from .asked import nodes_of, whole_of, window_of

if TYPE_CHECKING:
    from arc.history import History

BUCKETS = 120
SMALL_MAX = 24  # plots on the page; the others are counted


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """READY tasks, the most in each stretch of time; null where nobody knows."""
    window = window_of(query, now)
    buckets = whole_of(query, "buckets", BUCKETS, low=10, high=500)
    depths = history.depths(window.since, window.until, buckets, nodes=nodes_of(query),
                            deepest=SMALL_MAX)  # fmt: skip
    nodes = list(depths.nodes)
    if depths.more:
        nodes.sort(key=lambda one: (-_deepest(one), one.node))
    shown: list[JsonValue] = [
        {"node": one.node, "most": list[JsonValue](one.most), "deepest": _deepest(one),
         "mean": [None if mean is None else round(mean, 1) for mean in one.mean],
         "slots": next((slots for slots in reversed(one.slots) if slots is not None), None)}
        for one in nodes
    ]  # fmt: skip
    return {"since": int(window.since.timestamp() * 1000), "step_s": depths.step_s,
            "nodes": shown, "more": depths.more}  # fmt: skip


def _deepest(one: NodeDepths) -> int:
    return max((most for most in one.most if most is not None), default=0)
