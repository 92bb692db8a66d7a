"""Warns of fields that no node knows: they are carried along, and mean nothing to anybody here."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from .errors import BadInput
from .graph_document import read_graph
from .graph_drafts import OF_A_GRAPH, Mint
from .graph_faults import as_one
from .graphs import THEN_MAX, Graph
from .references import read_reference
from .strict import JsonObject, JsonValue
from .task import FIELDS
from .text import counted
from .ulid import is_ulid

SHOWN_MAX = 20
EDGES = ("after", "context")  # by which a task of a graph waits
IN_A_GRAPH = ("depends_on", "context_refs")  # as a task alone says them; a graph refuses both
NAMED_BY = ("task", "ref", "uid")  # of an entry that is an object
NEAR = 0.8  # `aftr`, `afetr`, `contxt`
# How other tools call an edge, in lower case without _ and -.
OTHER_WORDS = {**dict.fromkeys((
    "dependson", "dependon", "depends", "depend", "dependency", "dependencies", "deps", "dep",
    "requires", "require", "required", "prerequisites", "prerequisite", "prereqs", "prereq",
    "waitsfor", "waitfor", "waitson", "waiton", "waitingfor", "awaits", "needstasks", "needstask",
    "parents", "parenttasks", "upstream", "upstreams", "upstreamtasks", "follows", "runafter",
    "runsafter", "startafter", "startsafter", "predecessors", "predecessor", "blockedby",
), "after"), "contextrefs": "context", "contextref": "context"}  # fmt: skip


def unknown_fields(
    tasks: Iterable[JsonObject], known: Collection[str] = FIELDS,
    near: Callable[[str], str] = lambda name: _nearest(name, FIELDS),
) -> Iterator[str]:
    """Each such name once, with how many tasks have it and which field may be meant."""
    count = Counter(name for task in tasks for name in task if name not in known)
    for name, many in sorted(count.items())[:SHOWN_MAX]:
        close = near(name)
        meant = f"; did you mean {close}?" if close else ""
        yield f"{counted(many, 'task')} with an unknown field {name!r}, kept in extra{meant}"


def unknown_in_graph(document: JsonObject) -> Iterator[str]:
    """The same of a graph's document: an edge under a wrong name holds nothing back."""
    said = {*OF_A_GRAPH, *FIELDS}.difference(IN_A_GRAPH)  # never what the graph would refuse
    return unknown_fields(_tasks_of(document), {*said, *IN_A_GRAPH}, lambda name: (
        OTHER_WORDS.get(_plain(name)) or _nearest(name, said)))  # fmt: skip


def checked_graph(document: JsonValue, *, mint: Mint, source: str) -> Graph:
    """The graph, whole and checked, or `BadInput` with all that is wrong, and with each of its
    edges that stands under a name which is none.
    """
    mistyped = mistyped_edges(document)
    try:
        graph = read_graph(document, mint=mint, source=source)
    except BadInput as error:
        if not mistyped:
            raise
        found = (*(error.faults or (error,)), *mistyped)
        raise as_one(error, iter(found), more=error.more) from error
    if mistyped:
        raise as_one(mistyped[0], iter(mistyped))
    return graph


def mistyped_edges(document: JsonValue) -> tuple[BadInput, ...]:
    """Edges under a name that is nearly theirs, or under a usual other word for them. Kept in extra
    they would hold nothing back, and the task would run before what it is to wait for. What names
    no task there is somebody's own field.
    """
    return tuple(
        BadInput(why, f"{where}.{field}")
        for where, task, names in _placed(document)
        for field, value in task.items()
        if field not in FIELDS and field not in OF_A_GRAPH
        and any(_is_edge(one, names) for one in _entries(field, value))
        and (why := _mistyped(field))  # last: to compare names takes longest
    )


def _mistyped(field: str) -> str:
    """What is wrong with an edge under this name; empty: it is no other name of one."""
    other = OTHER_WORDS.get(_plain(field))
    if other is not None:
        return f"in a graph this is said as `{other}`; under this name nothing would be waited for"
    close = difflib.get_close_matches(field.lower()[:80], EDGES, n=1, cutoff=NEAR)
    return ("no task has such a field, and what it says would not be waited for; "
            f"did you mean {close[0]}?") if close else ""  # fmt: skip


def _entries(field: str, value: JsonValue) -> Iterable[JsonValue]:
    """What this names, one by one; under another word also as `a, b` or `{a: …, b: …}`."""
    if isinstance(value, list):
        return value
    if _plain(field) in OTHER_WORDS and isinstance(value, str):
        return [one.strip() for one in value.split(",")]
    if _plain(field) in OTHER_WORDS and isinstance(value, dict):
        return [value, *value]
    return [value]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _nearest(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name.lower()[:80], known, n=1, cutoff=0.5)
    return close[0] if close else ""


def _is_edge(entry: JsonValue, names: Collection[str]) -> bool:
    """Whether this names a task, as an entry of `after` or `context` does."""
    said = entry
    if isinstance(entry, dict):
        said = next((entry[key] for key in NAMED_BY if key in entry), None)
    if not isinstance(said, str):
        return False
    name, dot, what = said.partition(".")
    of_one = name in names and (not dot or what.startswith(("output", "outcome", "artifact:")))
    return of_one or is_ulid(said) is not None or read_reference(said) is not None


def _tasks_of(document: JsonObject) -> Iterator[JsonObject]:
    """As they stand there, and those of the graphs that follow."""
    return (task for _, task, _ in _placed(document))


def _placed(document: JsonValue) -> Iterator[tuple[str, JsonObject, frozenset[str]]]:
    """Each with its place in the document, and the names of all tasks of its graph."""
    graph, where = document, "graph"
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
