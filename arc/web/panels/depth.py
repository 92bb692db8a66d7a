"""Draws up how deep the queues were: a small plot a node, the deepest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import UNKNOWN, NodeDepths

from .asked import nodes_of, whole_of, window_of
from .moment import LOOKED_BACK

if TYPE_CHECKING:
    from arc.history import History

BUCKETS = 120
SMALL_MAX = 24  # plots on the page; the others are counted


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """READY tasks, the most in each stretch of time, and at its end as the last look found them;
    null where nobody knows.
    """
    window = window_of(query, now)
    buckets = whole_of(query, "buckets", BUCKETS, low=10, high=500)
    depths = history.depths(window.since, window.until, buckets, nodes=nodes_of(query),
                            deepest=SMALL_MAX)  # fmt: skip
    nodes = list(depths.nodes)
    if depths.more:
        nodes.sort(key=lambda one: (-_deepest(one), one.node))
    ends = _at_the_end(history, window.until, [one.node for one in nodes])
    shown: list[JsonValue] = [
        {"node": one.node, "now": ends.get(one.node), "most": list[JsonValue](one.most),
         "deepest": _deepest(one),
         "mean": [None if mean is None else round(mean, 1) for mean in one.mean],
         "slots": next((slots for slots in reversed(one.slots) if slots is not None), None)}
        for one in nodes
    ]  # fmt: skip
    return {"since": int(window.since.timestamp() * 1000), "step_s": depths.step_s,
            "nodes": shown, "more": depths.more}  # fmt: skip


def _deepest(one: NodeDepths) -> int:
    return max((most for most in one.most if most is not None), default=0)


def _at_the_end(history: History, until: datetime, names: Sequence[str]) -> dict[str, int | None]:
    """What waited on each by its last look. The last stretch of a plot is no moment: it says the
    most of minutes, and of a day of them.
    """
    found: dict[str, int | None] = {}
    for one in history.samples(until - LOOKED_BACK, until + timedelta(milliseconds=1), nodes=names):
        found[one.node] = None if one.state == UNKNOWN else one.pending
    return found
