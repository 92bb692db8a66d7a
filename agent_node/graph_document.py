"""Reads the document of a graph: names become uids, and everything wrong is said by its place."""

from __future__ import annotations

from .errors import BadInput
from .graph_drafts import Mint, born_of, drafts_of, following_of, graph_object, head_of
from .graph_names import Draft, tied
from .graphs import TASKS_MAX, Derived, Graph, Member, shape_of
from .output_hash import canonical, digest
from .readiness import edges_of
from .strict import JsonObject, JsonValue
from .task import Task

_OF_ONE_REQUEST = ("uid", "created_at", "origin", "source")  # two requests may differ in these


def minted(document: JsonValue, mint: Mint) -> JsonObject:
    """The same document where the graph and every task have their ids, so that a repeat is the
    same graph. What is wrong with it is left to be said by `read_graph`.
    """
    said = graph_object(document, "graph")
    tasks = said.get("tasks")
    given: JsonValue = tasks
    if isinstance(tasks, dict):
        given = {name: _with_uid(task, mint) for name, task in tasks.items()}
    elif isinstance(tasks, list):
        given = [_with_uid(task, mint) for task in tasks]
    return {**said, "id": said.get("id") or mint(), "tasks": given}


def _with_uid(task: JsonValue, mint: Mint) -> JsonValue:
    return {**task, "uid": task.get("uid") or mint()} if isinstance(task, dict) else task


def read_graph(document: JsonValue, *, mint: Mint, source: str = "human:unknown") -> Graph:
    """The graph, whole and checked, or `BadInput` with all that is wrong. `mint` makes the ids that
    are not given; `source` is who made the tasks that do not say it.
    """
    try:
        graph, number = _read(document, mint, source, depth=1)
    except BadInput as first:
        from .graph_faults import with_all_others  # a good graph needs nothing of it

        raise with_all_others(first, document) from first
    if number > TASKS_MAX:
        text_ = f"{number} tasks with those that follow; at most {TASKS_MAX} are taken"
        raise BadInput(text_, "graph.then")
    return graph


def _read(document: JsonValue, mint: Mint, source: str, depth: int) -> tuple[Graph, int]:
    where = "graph" + ".then" * (depth - 1)
    said = graph_object(document, where)
    head = head_of(said, where)
    dag = str(head.get("id") or mint())
    drafts = list(drafts_of(said.get("tasks"), where))
    tasks = _tasks(drafts, dag=dag, priority=head.get("priority"), mint=mint, source=source)
    names = {task.uid: draft.name for task, draft in zip(tasks, drafts, strict=True)}
    shape = shape_of(tasks, names)
    critical = set(shape.critical_path)
    then, further = _then(said.get("then"), dag, depth)
    graph = Graph(
        id=dag, title=str(head["title"]), key=_text(head, "key"),
        budget_usd=_text(head, "budget_usd"), then=then,
        urgent_overdraft=head.get("urgent_overdraft") is True,
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


def _then(document: JsonValue, dag: str, depth: int) -> tuple[JsonObject | None, int]:
    """What follows is read now, so that nothing is wrong with it when its time comes."""
    if document is None:
        return None, 0
    said = following_of(document, depth)
    _, number = _read(said, Derived(dag), "", depth + 1)
    return said, number


def following(graph_id: str, document: JsonObject) -> Graph:
    """The graph that follows this one; each time the same, with the same uids."""
    return read_graph(document, mint=Derived(graph_id), source=f"graph:{graph_id}")


def _tasks(
    drafts: list[Draft], *, dag: str, priority: JsonValue, mint: Mint, source: str
) -> list[Task]:
    uids: dict[str, str] = {}
    seen: set[str] = set()
    born: list[Task] = []
    for draft in drafts:
        task = born_of(draft, seen, priority=priority, mint=mint, source=source)
        seen.add(task.uid)
        uids[draft.name] = task.uid
        born.append(task)
    return [tied(task, draft, dag, uids) for task, draft in zip(born, drafts, strict=True)]


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
    return digest(canonical(said))


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
