"""Draws up what was spent: today, node by node, as far as attempts told what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import NodeShares

from .asked import nodes_of, window_of

if TYPE_CHECKING:
    from arc.history import History

BUCKETS = 96
NODES_MAX = 40


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """From midnight UTC of the day that is looked at, when budgets begin anew, to that moment."""
    until = window_of(query, now).until
    midnight = until.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    wanted = nodes_of(query)
    if until <= midnight:
        return {"since": int(midnight.timestamp() * 1000), "step_s": 0.0, "day_s": 86_400,
                "elapsed_s": 0.0, "nodes": [], "more": 0, "spent_usd": "0.0000"}  # fmt: skip
    shares = history.shares(midnight, until, BUCKETS)
    nodes = [one for one in shares.nodes if wanted is None or one.node in wanted]
    spent = sum(sum(one.cost_usd) for one in nodes)
    nodes = [one for one in nodes if any(one.cost_usd)]
    nodes.sort(key=lambda one: (-sum(one.cost_usd), one.node))
    shown: list[JsonValue] = [_node(one) for one in nodes[:NODES_MAX]]
    return {
        "since": int(midnight.timestamp() * 1000), "step_s": shares.step_s, "day_s": 86_400,
        "elapsed_s": round((until - midnight).total_seconds(), 1), "nodes": shown,
        "more": max(len(nodes) - NODES_MAX, 0), "spent_usd": format(spent, ".4f"),
    }  # fmt: skip


def _node(one: NodeShares) -> JsonObject:
    return {"node": one.node, "spent_usd": format(sum(one.cost_usd), ".4f"),
            "line": [round(total, 5) for total in accumulate(one.cost_usd)]}  # fmt: skip
