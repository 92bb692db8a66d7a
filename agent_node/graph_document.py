"""Reads the document of a graph: names become uids, and everything wrong is said by its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256

from .errors import BadInput
from .fields import SUBJECT_MAX, Check, integer, money, nullable, text, ulid
from .graph_names import NAME_MAX, Draft, tied
from .graphs import TASKS_MAX, THEN_MAX, Derived, Graph, Member, shape_of
from .newborn import new_task
from .readiness import edges_of
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
    "priority": nullable(integer(1, 10)),
}
_KNOWN = (*_HEAD, "tasks", "then")
_EDGES = {"depends_on": "after", "context_refs": "context"}  # as a task says it, and as we do
_OF_ONE_REQUEST = ("uid", "created_at", "origin", "source")  # two requests may differ in these


def minted(document: JsonValue, mint: Mint) -> JsonObject:
    """The same document where the graph and every task have their ids, so that a repeat is the
    same graph. What is wrong with it is left to be said by `read_graph`.
    """
    if not isinstance(document, dict):
        raise BadInput(f"a {kind_of(document)} where a graph belongs", "graph")
    tasks = document.get("tasks")
    given: JsonValue = tasks
    if isinstance(tasks, dict):
        given = {name: _with_uid(task, mint) for name, task in tasks.items()}
    elif isinstance(tasks, list):
        given = [_with_uid(task, mint) for task in tasks]
    return {**document, "id": document.get("id") or mint(), "tasks": given}


def _with_uid(task: JsonValue, mint: Mint) -> JsonValue:
    return {**task, "uid": task.get("uid") or mint()} if isinstance(task, dict) else task


def read_graph(document: JsonValue, *, mint: Mint, source: str = "human:unknown") -> Graph:
    """The graph, whole and checked, or `BadInput`. `mint` makes the ids that are not given;
    `source` is who made the tasks that do not say it.
    """
    graph, number = _read(document, mint, source, depth=1)
    if number > TASKS_MAX:
        text_ = f"{number} tasks with those that follow; at most {TASKS_MAX} are taken"
        raise BadInput(text_, "graph.then")
    return graph


def _read(document: JsonValue, mint: Mint, source: str, depth: int) -> tuple[Graph, int]:
    where = "graph" + ".then" * (depth - 1)
    if not isinstance(document, dict):
        raise BadInput(f"a {kind_of(document)} where a graph belongs", where)
    head = _head(document, where)
    dag = str(head.get("id") or mint())
    drafts = list(_drafts(document.get("tasks"), where))
    tasks = _tasks(drafts, dag=dag, priority=head.get("priority"), mint=mint, source=source)
    names = {task.uid: draft.name for task, draft in zip(tasks, drafts, strict=True)}
    shape = shape_of(tasks, names)
    critical = set(shape.critical_path)
    then, further = _then(document.get("then"), dag, depth)
    graph = Graph(
        id=dag, title=str(head["title"]), key=_text(head, "key"),
        budget_usd=_text(head, "budget_usd"), then=then,
        members=tuple(
            Member(names[task.uid], task, shape.weights[task.uid], task.uid in critical)
            for task in tasks),
        roots=shape.roots, leaves=shape.leaves, critical_path=shape.critical_path,
        content=_content(head, drafts, tasks, then=then),
    )  # fmt: skip
    return graph, len(tasks) + further


def _text(head: JsonObject, name: str) -> str | None:
    value = head.get(name)
    return None if value is None else str(value)


def _head(document: JsonObject, where: str) -> JsonObject:
    for name in document:
        if name not in _KNOWN:
            known = ", ".join(sorted(_KNOWN))
            raise BadInput(f"no such field; there are {known}", f"{where}.{str(name)[:80]}")
    head = {name: check(document[name], f"{where}.{name}")
            for name, check in _HEAD.items() if name in document}  # fmt: skip
    if not head.get("title"):
        raise BadInput("missing or empty; every graph has one", f"{where}.title")
    return head


def _then(document: JsonValue, dag: str, depth: int) -> tuple[JsonObject | None, int]:
    """What follows is read now, so that nothing is wrong with it when its time comes."""
    if document is None:
        return None, 0
    where = "graph" + ".then" * depth
    if depth >= THEN_MAX:
        raise BadInput(f"{depth + 1} graphs follow one another; at most {THEN_MAX} may", where)
    if not isinstance(document, dict):
        raise BadInput(f"a {kind_of(document)} where a graph belongs", where)
    for name in ("id", "key"):
        if document.get(name) is not None:
            raise BadInput("a graph that follows gets it from the one before", f"{where}.{name}")
    _, number = _read(document, Derived(dag), "", depth + 1)
    return document, number


def following(graph_id: str, document: JsonObject) -> Graph:
    """The graph that follows this one; each time the same, with the same uids."""
    return read_graph(document, mint=Derived(graph_id), source=f"graph:{graph_id}")


def _drafts(tasks: JsonValue, where: str) -> Iterator[Draft]:
    """The tasks by name, from an object or from a list of tasks with names."""
    if not isinstance(tasks, dict | list):
        text_ = f"a {kind_of(tasks)} where tasks by their names belong"
        raise BadInput(text_, f"{where}.tasks")
    if not 0 < len(tasks) <= TASKS_MAX:
        raise BadInput(f"{len(tasks)} tasks; 1 to {TASKS_MAX} are taken", f"{where}.tasks")
    seen: set[str] = set()
    for name, task, place in _named(tasks, f"{where}.tasks"):
        if not isinstance(name, str) or not _is_name(name) or is_ulid(name):
            text_ = f"a name is 1 to {NAME_MAX} of A-Z a-z 0-9 _ -, and no uid"
            raise BadInput(text_, place)
        if name in seen:
            raise BadInput(f"the name {name} stands twice", place)
        seen.add(name)
        yield _draft(name, task, place)


def _named(
    tasks: JsonObject | list[JsonValue], where: str
) -> Iterator[tuple[JsonValue, JsonValue, str]]:
    if isinstance(tasks, dict):
        for key, task in tasks.items():
            yield key, task, f"{where}.{str(key)[:80]}"
    else:
        for number, task in enumerate(tasks):
            said = task.get("name") if isinstance(task, dict) else None
            yield said, task, f"{where}[{number}]"


def _draft(name: str, task: JsonValue, where: str) -> Draft:
    if not isinstance(task, dict):
        raise BadInput(f"a {kind_of(task)} where a task belongs", where)
    fields = {key: value for key, value in task.items() if key not in ("name", "after", "context")}
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


def _tasks(
    drafts: list[Draft], *, dag: str, priority: JsonValue, mint: Mint, source: str
) -> list[Task]:
    uids: dict[str, str] = {}
    seen: set[str] = set()
    born: list[Task] = []
    for draft in drafts:
        task = _born(draft, priority=priority, mint=mint, source=source)
        if task.uid in seen:
            raise BadInput(f"the uid {task.uid} stands twice", f"{draft.where}.uid")
        seen.add(task.uid)
        uids[draft.name] = task.uid
        born.append(task)
    return [tied(task, draft, dag, uids) for task, draft in zip(born, drafts, strict=True)]


def _born(draft: Draft, *, priority: JsonValue, mint: Mint, source: str) -> Task:
    fields = draft.fields
    if source:
        fields = {"source": source, "origin": fields.get("source", source), **fields}
    if priority is not None and "priority_100" not in fields:
        fields = {"priority": priority, **fields}
    try:
        return new_task(fields, mint=None if fields.get("uid") else mint())
    except BadInput as error:
        problem = str(error).removeprefix(f"{error.field}: ")
        raise BadInput(problem, f"{draft.where}.{error.field}") from error


def _content(
    head: JsonObject, drafts: list[Draft], tasks: list[Task], *, then: JsonObject | None
) -> str:
    """The hash of what two requests under one key must share; ids are given at each request."""
    names = {task.uid: draft.name for task, draft in zip(tasks, drafts, strict=True)}
    said: JsonObject = {
        "head": {name: value for name, value in head.items() if name != "id"},
        "tasks": {draft.name: _content_of(draft, task, names)
                  for draft, task in zip(drafts, tasks, strict=True)},
        "then": _plain(then),
    }  # fmt: skip
    whole = json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return sha256(whole.encode()).hexdigest()


def _content_of(draft: Draft, task: Task, names: dict[str, str]) -> JsonValue:
    fields = {name: value for name, value in draft.fields.items() if name not in _OF_ONE_REQUEST}
    edges = sorted((names.get(edge.needs, edge.needs), edge.on_failure)
                   for edge in edges_of(task.depends_on, of=task.uid))  # fmt: skip
    after: list[JsonValue] = [[name, on_failure] for name, on_failure in edges]
    return {"fields": fields, "after": after, "context": draft.context}


def _plain(then: JsonValue) -> JsonValue:
    """What follows without what differs between two requests."""
    if isinstance(then, dict):
        return {name: _plain(value) for name, value in then.items()
                if name not in _OF_ONE_REQUEST}  # fmt: skip
    return [_plain(value) for value in then] if isinstance(then, list) else then
