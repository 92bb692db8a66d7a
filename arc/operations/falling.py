"""Says of new tasks that they never run, where what they wait for had ended badly before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.readiness import DEPENDENCY_FAILED, SKIPPED, Came, Edge, all_edges, came_of, judge
from agent_node.strict import JsonObject, JsonValue
from arc.looking import INBOX

if TYPE_CHECKING:
    from .finding import Found

_BY_KIND = {"fails": (DEPENDENCY_FAILED, "cancels"), "skips": (SKIPPED, "leaves out")}


def with_what_falls(
    results: Sequence[JsonObject], tasks: Sequence[JsonObject], found: Mapping[str, Found]
) -> list[JsonObject]:
    """The same results; of a task that what it waits for has ended it is said which one that was,
    and what to type. `state`: whether its queue knows of that end, or is yet to be told of it.
    """
    falls = _falls(tasks, found) if found else {}
    return [_with(one, falls) for one in results]


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
    came: dict[str, Came | None] = {
        uid: came_of(str(one.task.state), one.task.failure_reason) for uid, one in found.items()
    }
    said: dict[str, tuple[str, str]] = {}
    for task in tasks:
        uid = str(task["uid"])
        verdict = judge(Edge(one.needs, one.on_failure, came.get(one.needs))
                        for one in _edges(task, uid))  # fmt: skip
        if verdict.uid is not None:
            came[uid] = verdict.came
            rule, what = _BY_KIND[verdict.kind]
            said[uid] = rule, _sentence(verdict.uid, what, found.get(verdict.uid))
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
    where = "in the hub's queue" if found.node == INBOX else f"on {found.node}"
    return (f"{needed} is {found.task.state} {where}, and that {what} what waits for it. To run "
            f"both: arc tasks retry {needed}; to run this one alone: add it anew with "
            f"--after {needed}:run")  # fmt: skip
