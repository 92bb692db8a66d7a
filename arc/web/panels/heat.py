"""Draws up the heat map: a fleet too large for lanes, stranded nodes first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import NodeShares

from .asked import nodes_of, whole_of, window_of

if TYPE_CHECKING:
    from arc.history import History

BUCKETS = 240
NODES_MAX = 1000
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
DEEPEST = len(DIGITS) - 1


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """One letter a node and stretch: `u`nknown, `p`aused, `b`usy, `i`dle; beside it the tenths of
    it that were stranded, and how many tasks waited (a digit of base 36, `.` where nobody knows).
    """
    window = window_of(query, now)
    buckets = whole_of(query, "buckets", BUCKETS, low=10, high=500)
    shares = history.shares(window.since, window.until, buckets)
    wanted = nodes_of(query)
    nodes = [one for one in shares.nodes if wanted is None or one.node in wanted]
    nodes.sort(key=lambda one: (-sum(one.stranded), one.node))
    rows: list[JsonValue] = [_row(one, shares.step_s) for one in nodes[:NODES_MAX]]
    return {
        "since": int(window.since.timestamp() * 1000),
        "until": int(window.until.timestamp() * 1000), "live": window.live,
        "step_s": shares.step_s, "nodes": rows, "fleet": len(nodes),
        "stranded_s": round(sum(sum(one.stranded) for one in nodes) * shares.step_s, 1),
        "cost_usd": round(sum(sum(one.cost_usd) for one in nodes), 4),
    }  # fmt: skip


def _row(one: NodeShares, step_s: float) -> JsonObject:
    """A day of five hundred nodes has 120,000 letters of each kind: no call for any of them."""
    states = [
        "u" if unknown >= paused and unknown >= busy and unknown >= idle
        else "p" if paused >= busy and paused >= idle else "b" if busy >= idle else "i"
        for unknown, paused, busy, idle in zip(one.unknown, one.paused, one.busy, one.idle,
                                               strict=True)
    ]  # fmt: skip
    depth = ["." if mean is None else DIGITS[int(mean + 0.5)] if mean < DEEPEST else "z"
             for mean in one.depth]  # fmt: skip
    loud = map(_tenths, one.stranded) if any(one.stranded) else "0" * len(states)
    return {
        "node": one.node, "stranded_s": round(sum(one.stranded) * step_s, 1),
        "states": "".join(states), "loud": "".join(loud), "depth": "".join(depth),
    }


def _tenths(share: float) -> str:
    """A little of it is still seen."""
    return DIGITS[min(max(round(share * 9), 1), 9)] if share > 0 else "0"
