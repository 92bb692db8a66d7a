"""Draws up what was spent: today, node by node, as far as attempts told what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue

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
    found = history.spent(midnight, until, BUCKETS)
    nodes = [(name, costs) for name, costs in found.nodes.items()
             if any(costs) and (wanted is None or name in wanted)]  # fmt: skip
    spent = sum(sum(costs) for _, costs in nodes)
    nodes.sort(key=lambda one: (-sum(one[1]), one[0]))
    shown: list[JsonValue] = [_node(name, costs) for name, costs in nodes[:NODES_MAX]]
    return {
        "since": int(midnight.timestamp() * 1000), "step_s": found.step_s, "day_s": 86_400,
        "elapsed_s": round((until - midnight).total_seconds(), 1), "nodes": shown,
        "more": max(len(nodes) - NODES_MAX, 0), "spent_usd": format(spent, ".4f"),
    }  # fmt: skip


def _node(name: str, costs: Sequence[float]) -> JsonObject:
    return {"node": name, "spent_usd": format(sum(costs), ".4f"),
            "line": [round(total, 5) for total in accumulate(costs)]}  # fmt: skip
