"""Warns of fields that no node knows: they are carried along, and mean nothing to anybody here."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from agent_node.errors import BadInput
from agent_node.graph_drafts import OF_A_GRAPH
from agent_node.graphs import THEN_MAX
from agent_node.references import read_reference
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import FIELDS
from agent_node.text import counted
from agent_node.ulid import is_ulid

SHOWN_MAX = 20
EDGES = ("after", "context")  # by which a task of a graph waits
NEAR = 0.8  # `aftr`, `afetr`, `contxt`


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


def mistyped_edges(document: JsonObject) -> tuple[BadInput, ...]:
    """Edges under a name that is nearly theirs. Kept in extra they would hold nothing back, and the
    task would run before what it is to wait for. What names no task there is somebody's own field.
    """
    return tuple(
        BadInput(f"no task has such a field, and what it says would not be waited for; "
                 f"did you mean {close[0]}?", f"{where}.{field}")
        for where, task, names in _placed(document)
        for field, value in task.items()
        if field not in FIELDS and field not in OF_A_GRAPH
        and (close := difflib.get_close_matches(field.lower()[:80], EDGES, n=1, cutoff=NEAR))
        and any(_is_edge(one, names) for one in (value if isinstance(value, list) else [value]))
    )  # fmt: skip


def _is_edge(entry: JsonValue, names: Collection[str]) -> bool:
    """Whether this names a task, as an entry of `after` or `context` does."""
    said = entry.get("task", entry.get("ref")) if isinstance(entry, dict) else entry
    if not isinstance(said, str):
        return False
    name, dot, what = said.partition(".")
    of_one = name in names and (not dot or what.startswith(("output", "outcome", "artifact:")))
    return of_one or is_ulid(said) is not None or read_reference(said) is not None


def _tasks_of(document: JsonObject) -> Iterator[JsonObject]:
    """As they stand there, and those of the graphs that follow."""
    return (task for _, task, _ in _placed(document))


def _placed(document: JsonObject) -> Iterator[tuple[str, JsonObject, frozenset[str]]]:
    """Each with its place in the document, and the names of all tasks of its graph."""
    graph: JsonValue = document
    where = "graph"
    for _ in range(THEN_MAX):
        if not isinstance(graph, dict):
            return
        tasks = graph.get("tasks")
        named = tasks.items() if isinstance(tasks, dict) else (
            enumerate(tasks) if isinstance(tasks, list) else ())  # fmt: skip
        names = _names_of(tasks)
        for name, task in named:
            if isinstance(task, dict):
                place = f"[{name}]" if isinstance(name, int) else f".{name}"
                yield f"{where}.tasks{place}", task, names
        graph, where = graph.get("then"), f"{where}.then"


def _names_of(tasks: JsonValue) -> frozenset[str]:
    if isinstance(tasks, dict):
        return frozenset(tasks)
    listed = tasks if isinstance(tasks, list) else []
    said = [one.get("name") for one in listed if isinstance(one, dict)]
    return frozenset(name for name in said if isinstance(name, str))
