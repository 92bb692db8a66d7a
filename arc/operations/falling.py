"""Says of new tasks that they never run, where what they wait for had ended badly before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.graphs import Graph
from agent_node.readiness import (
    DEPENDENCY_FAILED,
    SKIPPED,
    Came,
    Edge,
    Verdict,
    all_edges,
    came_of,
    judge,
)
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted
from arc.looking import INBOX

if TYPE_CHECKING:
    from .finding import Found

CAUSES_SHOWN = 3
_BY_KIND = {"fails": (DEPENDENCY_FAILED, "cancels"), "skips": (SKIPPED, "leaves out")}


def with_what_falls(
    results: Sequence[JsonObject], tasks: Sequence[JsonObject], found: Mapping[str, Found]
) -> list[JsonObject]:
    """The same results; of a task that what it waits for has ended it is said which one that was,
    and what to type. `state`: whether its queue knows of that end, or is yet to be told of it.
    """
    falls = _falls(tasks, found) if found else {}
    return [_with(one, falls) for one in results]


def members_that_fall(
    graph: Graph, found: Mapping[str, Found], *, dry_run: bool
) -> Iterator[str]:
    """One warning of the members of a new graph that never run, whose doing that is, and what to
    type; none where nothing outside of it has ended badly.
    """
    edges = {one.task.uid: all_edges(one.task.depends_on, one.task.context_refs, of=one.task.uid)
             for one in graph.members}  # fmt: skip
    order = TopologicalSorter({uid: [edge.needs for edge in some] for uid, some in edges.items()})
    fallen = _fallen({uid: edges[uid] for uid in order.static_order() if uid in edges}, found)
    if not fallen:
        return
    names = {one.task.uid: one.name for one in graph.members}
    first = {uid: verdict.uid for uid, verdict in fallen.items() if verdict.uid in found}
    said = [f"{names[uid]} waits for {needed}, {_where(found[needed])}"
            for uid, needed in [*first.items()][:CAUSES_SHOWN] if needed is not None]  # fmt: skip
    more = f" and {len(first) - len(said)} more" if len(first) > len(said) else ""
    culprits = [*dict.fromkeys(first.values())][:CAUSES_SHOWN]
    what = "would never run" if dry_run else "never run" if len(fallen) > 1 else "never runs"
    yield (f"{len(fallen)} of {counted(len(edges), 'task')} {what}: {'; '.join(said)}{more}."
           f" To run them: {'; '.join(f'arc tasks retry {uid}' for uid in culprits)}; to run them"
           " without it: hand the graph in anew with on_failure: run there")  # fmt: skip


def _with(one: JsonObject, falls: Mapping[str, tuple[str, str]]) -> JsonObject:
    if one["outcome"] != "added" or (one["uid"] not in falls and not one["rule"]):
        return one
    known = bool(one["rule"])
    rule, because = falls.get(str(one["uid"]), (str(one["rule"]), str(one["because"])))
    soon = "" if known else "; its queue is told by the next run of fleet-graphs"
    return {**one, "state": "CANCELLED" if known else "PENDING", "rule": rule,
            "because": f"{because}{soon}"}  # fmt: skip


def _falls(
    tasks: Sequence[JsonObject], found: Mapping[str, Found]
) -> dict[str, tuple[str, str]]:
    """Rule and sentence, by uid; a task that waits for one of them falls with it."""
    said: dict[str, tuple[str, str]] = {}
    edges = {str(task["uid"]): _edges(task, str(task["uid"])) for task in tasks}
    for uid, verdict in _fallen(edges, found).items():
        rule, what = _BY_KIND[verdict.kind]
        needed = str(verdict.uid)
        said[uid] = rule, _sentence(needed, what, found.get(needed))
    return said


def _fallen(
    edges: Mapping[str, Sequence[Edge]], found: Mapping[str, Found]
) -> dict[str, Verdict]:
    """Why each of them never runs, of those that do not; who is waited for stands before."""
    came: dict[str, Came | None] = {
        uid: came_of(str(one.task.state), one.task.failure_reason) for uid, one in found.items()
    }
    said: dict[str, Verdict] = {}
    for uid, some in edges.items():
        verdict = judge(Edge(one.needs, one.on_failure, came.get(one.needs)) for one in some)
        if verdict.uid is not None:
            came[uid] = verdict.came
            said[uid] = verdict
    return said


def _edges(task: JsonObject, uid: str) -> list[Edge]:
    edges, given = task.get("depends_on") or [], task.get("context_refs") or []
    try:
        return all_edges(_listed(edges), _listed(given), of=uid)
    except BadInput:
        return []  # which its queue refuses, and says why


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _sentence(needed: str, what: str, found: Found | None) -> str:
    if found is None:
        return f"{needed}, which it waits for, is cancelled itself"
    return (f"{needed} is {_where(found)}, and that {what} what waits for it. To run "
            f"both: arc tasks retry {needed}; to run this one alone: add it anew with "
            f"--after {needed}:run")  # fmt: skip


def _where(found: Found) -> str:
    place = "in the hub's queue" if found.node == INBOX else f"on {found.node}"
    return f"{found.task.state} {place}"
