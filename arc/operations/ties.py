"""Ties new tasks to what they wait for: parts of uids become uids, and each has to be somewhere."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.references import references_of
from agent_node.strict import JsonObject, JsonValue
from agent_node.ulid import is_ulid
from arc.errors import NotFound

from .dags_submit import know_outside
from .finding import Found
from .graph_finding import find_graph

if TYPE_CHECKING:
    from arc.hub import Hub

_TIES = ("depends_on", "dag", "context_refs")


class NoSuchGraph(NotFound):
    """No graph takes new tasks under that name; nothing was added. `rule` is as of a queue."""

    def __init__(self, text: str, rule: str, *, hint: str = "") -> None:
        super().__init__(text, hint=hint)
        self.rule = rule


@dataclass(frozen=True)
class Tied:
    """The tasks as they are to be sent, and what was found of those that they wait for, by uid."""

    tasks: list[JsonValue]
    found: Mapping[str, Found] = field(default_factory=dict)


async def tied(hub: Hub, tasks: list[JsonValue]) -> Tied:
    """The same tasks with whole uids in `depends_on` and `dag`. `NotFound` where a task would wait
    for one that no node has, or be given something of it. Tasks that wait for nothing cost nothing.
    """
    some = [task for task in tasks if isinstance(task, dict) and any(map(task.get, _TIES))]
    if not some:
        return Tied(tasks)
    born = {str(task.get("uid")) for task in tasks if isinstance(task, dict) and task.get("uid")}
    needs = [uid for uid in dict.fromkeys([*_needs(some), *_given(some)]) if uid not in born]
    found = await know_outside(hub, needs)
    uids = dict(zip(needs, (one.uid for one in found), strict=True))
    dags = {dag: await _dag(hub, dag) for dag in dict.fromkeys(_dags(some))}
    whole = [_with(task, uids, dags) if isinstance(task, dict) else task for task in tasks]
    return Tied(whole, {one.uid: one for one in found})


def _needs(tasks: list[JsonObject]) -> list[str]:
    found: list[str] = []
    for task in tasks:
        edges = task.get("depends_on")
        if not isinstance(edges, list):
            continue  # what is wrong with it is said where the task is checked
        for edge in edges:
            uid = edge.get("uid") if isinstance(edge, dict) else edge
            if not isinstance(uid, str):
                raise BadInput("each of depends_on names a uid", "depends_on")
            found.append(uid)
    return found


def _given(tasks: list[JsonObject]) -> list[str]:
    """Of which tasks they are to be given something: such a reference has the whole uid."""
    found: list[str] = []
    for task in tasks:
        entries = task.get("context_refs")
        with suppress(BadInput):  # what is wrong with it is said where the task is checked
            references = references_of(entries) if isinstance(entries, list) else []
            found += [one.of for one in references if one.of is not None]
    return found


def _dags(tasks: list[JsonObject]) -> list[str]:
    return [dag for task in tasks if isinstance(dag := task.get("dag"), str)]


async def _dag(hub: Hub, part: str) -> str:
    try:
        found = await find_graph(hub, part)
    except NotFound as error:
        raise NoSuchGraph(str(error), "unknown_graph", hint=error.hint) from error
    if found.alone:
        text = f"{part}: that is a task, and no graph; nothing was added"
        raise NoSuchGraph(text, "unknown_graph")
    if found.seen.line.state == "cancelled":
        text = f"{part}: that graph was cancelled; nothing was added"
        raise NoSuchGraph(text, "graph_ended")
    hub.homes[found.seen.line.id] = found.home
    return found.seen.line.id


def _with(task: JsonObject, uids: dict[str, str], dags: dict[str, str]) -> JsonObject:
    edges = task.get("depends_on")
    whole: JsonValue = [_edge(edge, uids) for edge in edges] if isinstance(edges, list) else edges
    said = {**task, **({"depends_on": whole} if edges else {})}
    dag = task.get("dag")
    return {**said, "dag": dags[dag]} if isinstance(dag, str) and not is_ulid(dag) else said


def _edge(edge: JsonValue, uids: dict[str, str]) -> JsonValue:
    if isinstance(edge, dict) and isinstance(uid := edge.get("uid"), str):
        return {**edge, "uid": uids.get(uid, uid)}
    return {"uid": uids.get(edge, edge)} if isinstance(edge, str) else edge
