"""Reads the parts of a graph's document: its head, its tasks by their names, and what follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from .errors import BadInput
from .fields import SUBJECT_MAX, Check, boolean, integer, money, nullable, text, ulid
from .graph_names import NAME_MAX, Draft
from .graphs import TASKS_MAX, THEN_MAX
from .newborn import new_task
from .strict import JsonObject, JsonValue, kind_of
from .task import Task
from .ulid import is_ulid

Mint = Callable[[], str]
_is_name = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}").fullmatch
_HEAD: dict[str, Check] = {
    "title": text(SUBJECT_MAX),
    "key": nullable(text(200)),
    "id": nullable(ulid),
    "budget_usd": nullable(money),
    "urgent_overdraft": boolean,
    "priority": nullable(integer(1, 10)),
}
OF_A_GRAPH = ("name", "after", "context")  # what a task says besides its fields, in a graph
_KNOWN = (*_HEAD, "tasks", "then")
_EDGES = {"depends_on": "after", "context_refs": "context"}  # as a task says it, and as we do


def graph_object(document: JsonValue, where: str) -> JsonObject:
    """What a graph is said in, or `BadInput`."""
    if not isinstance(document, dict):
        raise BadInput(f"a {kind_of(document)} where a graph belongs", where)
    return document


def head_of(document: JsonObject, where: str) -> JsonObject:
    """What is said of the graph itself, each field checked."""
    for name in document:
        if name not in _KNOWN:
            known = ", ".join(sorted(_KNOWN))
            raise BadInput(f"no such field; there are {known}", f"{where}.{str(name)[:80]}")
    head = {name: check(document[name], f"{where}.{name}")
            for name, check in _HEAD.items() if name in document}  # fmt: skip
    if not head.get("title"):
        raise BadInput("missing or empty; every graph has one", f"{where}.title")
    if head.get("urgent_overdraft") and head.get("budget_usd") is None:
        raise BadInput("there is no budget_usd that anything could pass",
                       f"{where}.urgent_overdraft")  # fmt: skip
    return head


def following_of(document: JsonValue, depth: int) -> JsonObject:
    """The document of a graph that follows the one at this depth."""
    where = "graph" + ".then" * depth
    if depth >= THEN_MAX:
        raise BadInput(f"{depth + 1} graphs follow one another; at most {THEN_MAX} may", where)
    said = graph_object(document, where)
    for name in ("id", "key"):
        if said.get(name) is not None:
            raise BadInput("a graph that follows gets it from the one before", f"{where}.{name}")
    return said


def drafts_of(tasks: JsonValue, where: str) -> Iterator[Draft]:
    """The tasks by name, from an object or from a list of tasks with names."""
    seen: set[str] = set()
    for said, task, place in named(tasks, where):
        name = name_of(said, seen, place)
        seen.add(name)
        yield draft_of(name, task, place)


def named(tasks: JsonValue, where: str) -> Iterator[tuple[JsonValue, JsonValue, str]]:
    """What stands where a name belongs, with the task and its place."""
    place = f"{where}.tasks"
    if not isinstance(tasks, dict | list):
        raise BadInput(f"a {kind_of(tasks)} where tasks by their names belong", place)
    if not 0 < len(tasks) <= TASKS_MAX:
        raise BadInput(f"{len(tasks)} tasks; 1 to {TASKS_MAX} are taken", place)
    if isinstance(tasks, dict):
        for key, task in tasks.items():
            yield key, task, f"{place}.{str(key)[:80]}"
    else:
        for number, task in enumerate(tasks):
            said = task.get("name") if isinstance(task, dict) else None
            yield said, task, f"{place}[{number}]"


def name_of(said: JsonValue, taken: Collection[str], place: str) -> str:
    """A name that no task before it has."""
    if not isinstance(said, str) or not _is_name(said) or is_ulid(said):
        raise BadInput(f"a name is 1 to {NAME_MAX} of A-Z a-z 0-9 _ -, and no uid", place)
    if said in taken:
        raise BadInput(f"the name {said} stands twice", place)
    return said


def draft_of(name: str, task: JsonValue, where: str) -> Draft:
    """One task, with what it says of others set apart from its own fields."""
    if not isinstance(task, dict):
        raise BadInput(f"a {kind_of(task)} where a task belongs", where)
    fields = {key: value for key, value in task.items() if key not in OF_A_GRAPH}
    for key, ours in _EDGES.items():
        if fields.pop(key, None) not in (None, []):
            raise BadInput(f"in a graph this is said as `{ours}`", f"{where}.{key}")
    if fields.pop("dag", None) is not None:
        raise BadInput("it belongs to this graph and no other", f"{where}.dag")
    return Draft(name, fields, _listed(task, "after", where), _listed(task, "context", where),
                  where)  # fmt: skip


def _listed(task: JsonObject, name: str, where: str) -> list[JsonValue]:
    value = task.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"a {kind_of(value)} where a list belongs", f"{where}.{name}")
    return value


def born_of(
    draft: Draft, taken: Collection[str], *, priority: JsonValue, mint: Mint, source: str
) -> Task:
    """The checked task of a draft, still without its edges, under a uid that none before it has."""
    fields = draft.fields
    if source:
        fields = {"source": source, "origin": fields.get("source", source), **fields}
    if priority is not None and "priority_100" not in fields:
        fields = {"priority": priority, **fields}
    try:
        task = new_task(fields, mint=None if fields.get("uid") else mint())
    except BadInput as error:
        problem = str(error).removeprefix(f"{error.field}: ")
        raise BadInput(problem, f"{draft.where}.{error.field}") from error
    if task.uid in taken:
        raise BadInput(f"the uid {task.uid} stands twice", f"{draft.where}.uid")
    return task
