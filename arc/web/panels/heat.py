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
    states = "".join(map(_letter, one.unknown, one.paused, one.busy, one.idle))
    return {
        "node": one.node, "stranded_s": round(sum(one.stranded) * step_s, 1), "states": states,
        "loud": "".join(_tenths(share) for share in one.stranded),
        "depth": "".join("." if depth is None else DIGITS[min(round(depth), 35)]
                         for depth in one.depth),
    }  # fmt: skip


def _letter(unknown: float, paused: float, busy: float, idle: float) -> str:
    most = max(unknown, paused, busy, idle)
    if most == unknown:
        return "u"
    return "p" if most == paused else "b" if most == busy else "i"


def _tenths(share: float) -> str:
    """A little of it is still seen."""
    return DIGITS[min(max(round(share * 9), 1), 9)] if share > 0 else "0"
