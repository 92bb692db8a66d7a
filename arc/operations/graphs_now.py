"""Counts the graphs of the whole fleet for its status, and names those that failed of late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted, safe_text
from arc.graph_answers import GraphLine
from arc.looking import INBOX

from .graph_finding import all_graphs

if TYPE_CHECKING:
    from arc.hub import Hub

LIMIT = 200  # graphs of one store that are counted
NEEDS_MAX = 5
FAILED_FOR = timedelta(days=7)  # for how long a graph that failed is named
TITLE_SHOWN = 60


@dataclass(frozen=True)
class GraphsNow:
    """What `status` says of graphs, and what a person has to look at."""

    counts: JsonObject
    needs_you: tuple[JsonValue, ...]


async def graphs_now(hub: Hub, names: Sequence[str]) -> GraphsNow:
    """Of these stores and no others: who did not answer the survey is not asked again."""
    lines, failed = await all_graphs(hub, {"states": ["running", "failed"], "limit": LIMIT},
                                     names=names)  # fmt: skip
    states = Counter(one.state for one in lines)
    oldest = iso(hub.clock.now() - FAILED_FOR)
    recent = [one for one in lines if one.state == "failed" and (one.ended_at or "") >= oldest]
    recent.sort(key=lambda one: one.ended_at or "", reverse=True)
    counts: JsonObject = {
        "running": states["running"], "failed": states["failed"], "failed_lately": len(recent),
        "unread": [*sorted(failed)],
    }  # fmt: skip
    return GraphsNow(counts, tuple(map(_need, recent[:NEEDS_MAX])))


def _need(one: GraphLine) -> JsonObject:
    title = safe_text(one.title, TITLE_SHOWN)
    bad = counted(one.bad, "task")
    where = one.home if one.home != INBOX else "hub"
    return {"node": where, "text": f'graph {one.id} "{title}" failed: {bad} ended badly',
            "try": f"arc dag show {one.id}"}  # fmt: skip
