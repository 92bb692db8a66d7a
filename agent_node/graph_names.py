"""Turns the names by which the tasks of a graph speak of each other into uids. Pure."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from .errors import BadInput
from .readiness import OnFailure, on_failure_of
from .references import FORMS, read_reference, references_of
from .strict import JsonObject, JsonValue, kind_of
from .task import Task, built_task
from .ulid import is_ulid

NAME_MAX = 64


@dataclass(frozen=True)
class Draft:
    """One task of the document before its names are uids."""

    name: str
    fields: JsonObject
    after: list[JsonValue]
    context: list[JsonValue]
    where: str


def tied(task: Task, draft: Draft, dag: str, uids: dict[str, str]) -> Task:
    """The same task with its edges and references, as the hash will cover them."""
    edges = _edges(draft, uids)
    references: list[JsonValue] = []
    for place, entry in enumerate(draft.context):
        said, of = _reference(entry, f"{draft.where}.context[{place}]", uids)
        references.append(said)
        if of is not None and of not in edges:
            edges[of] = "fail"
    references_of(references, f"{draft.where}.context")
    if task.uid in edges:
        raise BadInput(f"a cycle: {draft.name} -> {draft.name}", f"{draft.where}.after")
    depends_on: list[JsonValue] = [
        {"uid": uid, "on_failure": on_failure} for uid, on_failure in edges.items()
    ]
    own = {"dag": dag, "depends_on": depends_on, "context_refs": references}
    return built_task(task.__dict__ | own)


def read_ties(
    draft: Draft, uids: dict[str, str]
) -> Generator[BadInput, None, dict[str, str]]:
    """By uid, where the task says that it waits for that, once all is told that cannot be read."""
    edges: dict[str, OnFailure] = {}
    places: dict[str, str] = {}
    said = [(f"{draft.where}.{what}[{place}]", entry)
            for what, entries in (("after", draft.after), ("context", draft.context))
            for place, entry in enumerate(entries)]  # fmt: skip
    for number, (where, entry) in enumerate(said):
        try:
            of = (_add_edge(edges, entry, where, uids) if number < len(draft.after)
                  else _reference(entry, where, uids)[1])  # fmt: skip
        except BadInput as error:
            yield error
            continue
        if of is not None:
            places.setdefault(of, where)
    return places


def _edges(draft: Draft, uids: dict[str, str]) -> dict[str, OnFailure]:
    edges: dict[str, OnFailure] = {}
    for place, entry in enumerate(draft.after):
        _add_edge(edges, entry, f"{draft.where}.after[{place}]", uids)
    return edges


def _add_edge(
    edges: dict[str, OnFailure], entry: JsonValue, where: str, uids: dict[str, str]
) -> str:
    uid, on_failure = _edge(entry, where, uids)
    if edges.setdefault(uid, on_failure) != on_failure:
        raise BadInput("the same task stands here twice, and not alike", where)
    return uid


def _edge(entry: JsonValue, where: str, uids: dict[str, str]) -> tuple[str, OnFailure]:
    said: JsonObject = entry if isinstance(entry, dict) else {"task": entry}
    unknown = sorted(said.keys() - {"task", "on_failure"})
    if unknown:
        known = "no such field; there are task, on_failure"
        raise BadInput(known, f"{where}.{str(unknown[0])[:80]}")
    on_failure = on_failure_of(said.get("on_failure", "fail"), f"{where}.on_failure")
    return _uid_of(said.get("task"), where, uids), on_failure


def _uid_of(name: JsonValue, where: str, uids: dict[str, str]) -> str:
    if isinstance(name, str):
        if name in uids:
            return uids[name]
        if is_ulid(name):
            return name
        raise BadInput(f"no task of this graph is named {name[:NAME_MAX]}, and it is no uid", where)
    raise BadInput(f"a {kind_of(name)} where a name or a uid belongs", where)


def _reference(
    entry: JsonValue, where: str, uids: dict[str, str]
) -> tuple[str, str | None]:
    """The reference with uids in it, and the task that has to end before it can be had."""
    said = entry.get("ref") if isinstance(entry, dict) and entry.keys() == {"ref"} else entry
    if not isinstance(said, str):
        raise BadInput(f"a {kind_of(entry)} where a name or a reference belongs", where)
    known = read_reference(said)
    if known is not None:
        return said, known.of
    name, dot, what = said.partition(".")
    if name not in uids or (dot and not what):
        raise BadInput(f"should be a task of this graph, NAME.output, or {FORMS}", where)
    reference = f"task:{uids[name]}:{what or 'output'}"
    if read_reference(reference) is None:
        raise BadInput("after the name comes output, outcome or artifact:NAME", where)
    return reference, uids[name]
