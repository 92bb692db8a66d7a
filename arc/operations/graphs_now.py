"""Counts the graphs of the whole fleet for its status, and names those that failed of late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted, safe_text
from arc.beside import Beside
from arc.decisions.notices import NOT_FOLLOWED
from arc.graph_answers import GraphLine
from arc.links import Link
from arc.looking import INBOX

from .graph_finding import all_graphs

if TYPE_CHECKING:
    from arc.hub import Hub

LIMIT = 200  # graphs of one store that are counted
NEEDS_MAX = 5
FAILED_FOR = timedelta(days=7)  # for how long a graph that failed is named
TITLE_SHOWN = 60


async def graphs_of(
    links: Mapping[str, Link], names: Iterable[str]
) -> tuple[dict[str, tuple[GraphLine, ...]], frozenset[str]]:
    """The graphs of these stores that run or failed; and of which stores nobody knows."""
    wanted = {name: links[name] for name in names}
    lines, failed = await all_graphs(wanted, {"states": ["running", "failed"], "limit": LIMIT})
    return {name: tuple(one for one in lines if one.home == name)
            for name in wanted.keys() - failed.keys()}, frozenset(failed)  # fmt: skip


def graph_counts(hub: Hub, beside: Beside) -> JsonObject:
    """How many run and failed, and which stores could not be asked."""
    states = Counter(one.state for some in beside.graphs.values() for one in some)
    return {
        "running": states["running"], "failed": states["failed"],
        "failed_lately": len(_lately(hub, beside)), "unread": [*sorted(beside.unread)],
    }  # fmt: skip


def failed_lately(hub: Hub, beside: Beside) -> list[JsonValue]:
    """A line for each that a person has to look at, the newest first."""
    return [*map(_need, _lately(hub, beside)[:NEEDS_MAX])]


def not_followed(hub: Hub) -> list[JsonValue]:
    """A line for each graph that completed of late and whose `then` was not taken in: no graph
    failed, so nothing else tells that the chain ended there.
    """
    found = hub.journal.notices.lately(NOT_FOLLOWED, since=hub.clock.now() - FAILED_FOR)
    return [{"node": one.node if one.node != INBOX else "hub", "text": f"graph {one.text}",
             "try": f"arc dag show {one.text.partition(':')[0]}"}
            for one in found[:NEEDS_MAX]]  # fmt: skip


def _lately(hub: Hub, beside: Beside) -> list[GraphLine]:
    oldest = iso(hub.clock.now() - FAILED_FOR)
    recent = [one for name in sorted(beside.graphs) for one in beside.graphs[name]
              if one.state == "failed" and (one.ended_at or "") >= oldest]  # fmt: skip
    return sorted(recent, key=lambda one: one.ended_at or "", reverse=True)


def _need(one: GraphLine) -> JsonObject:
    title = safe_text(one.title, TITLE_SHOWN)
    bad = counted(one.bad, "task")
    where = one.home if one.home != INBOX else "hub"
    return {"node": where, "text": f'graph {one.id} "{title}" failed: {bad} ended badly',
            "try": f"arc dag show {one.id}"}  # fmt: skip
