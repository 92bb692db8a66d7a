"""Warns of fields that no node knows: they are carried along, and mean nothing to anybody here."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from agent_node.graph_drafts import OF_A_GRAPH
from agent_node.graphs import THEN_MAX
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import FIELDS
from agent_node.text import counted

SHOWN_MAX = 20


def unknown_fields(
    tasks: Iterable[JsonObject], known: Collection[str] = FIELDS
) -> Iterator[str]:
    """Each such name once, with how many tasks have it and which field may be meant."""
    count = Counter(name for task in tasks for name in task if name not in known)
    for name, many in sorted(count.items())[:SHOWN_MAX]:
        close = difflib.get_close_matches(name.lower()[:80], known, n=1, cutoff=0.5)
        meant = f"; did you mean {close[0]}?" if close else ""
        yield f"{counted(many, 'task')} with an unknown field {name!r}, kept in extra{meant}"


def unknown_in_graph(document: JsonObject) -> Iterator[str]:
    """The same of a graph's document: an edge under a wrong name holds nothing back."""
    return unknown_fields(_tasks_of(document), {*OF_A_GRAPH, *FIELDS})


def _tasks_of(document: JsonObject) -> Iterator[JsonObject]:
    """As they stand there, and those of the graphs that follow."""
    graph: JsonValue = document
    for _ in range(THEN_MAX):
        if not isinstance(graph, dict):
            return
        tasks = graph.get("tasks")
        listed = [*tasks.values()] if isinstance(tasks, dict) else tasks
        if isinstance(listed, list):
            yield from (one for one in listed if isinstance(one, dict))
        graph = graph.get("then")
