"""Takes every amount of money in fleet.yaml as it is written there: a text, never a number."""

from __future__ import annotations

from collections.abc import Iterator

from .config_faults import inside
from .marked_yaml import Loc, Marked, Plain

_BUDGET = ("per_day", "assume_usd")
_WORK = ("schedules", "watch_files", "watch", "webhooks")  # sections whose entries ask for work
_TASK, _GRAPH = ("max_cost_usd",), ("budget_usd",)
_Place = tuple[dict[str, Plain], tuple[str, ...], Loc]


def take_amounts_as_written(marked: Marked) -> None:
    """An amount that stands there as a number is its text: `0.45`, and no number beside it."""
    for said, names, loc in _places(marked.data):
        for name in names:
            value = said.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                said[name] = _as_written(marked, (*loc, name), value)


def _places(data: Plain) -> Iterator[_Place]:
    """Each mapping that may hold amounts, under which names, and where it stands."""
    yield inside(data, "budget"), _BUDGET, ("budget",)
    for section in _WORK:
        for entry, said in inside(data, section).items():
            yield inside(said, "task"), _TASK, (section, entry, "task")
            yield from _of_graph(inside(said, "graph"), (section, entry, "graph"))


def _of_graph(graph: dict[str, Plain], loc: Loc) -> Iterator[_Place]:
    """Its own, those of its tasks, which are a list or stand by their names, and what follows."""
    yield graph, _GRAPH, loc
    tasks = graph.get("tasks")
    listed = tasks.items() if isinstance(tasks, dict) else enumerate(
        tasks if isinstance(tasks, list) else [])  # fmt: skip
    for name, task in listed:
        yield inside(task), _TASK, (*loc, "tasks", name)
    if then := inside(graph, "then"):
        yield from _of_graph(then, (*loc, "then"))


def _as_written(marked: Marked, loc: Loc, value: Plain) -> Plain:
    span = marked.span(loc)
    *_, written = marked.text[span.start : span.end].split()  # behind an anchor or a tag
    return value if written.startswith(("'", '"')) else written
