"""Draws up the funnel: what the last cycles did with everything that waited, rule by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.rules import STEAL_RULES, SWIFT_RULES
from arc.history_seen import RunSeen

from .asked import whole_of, window_of

if TYPE_CHECKING:
    from arc.history import History

SENSOR = "fleet-rebalance"
CYCLES, CYCLES_MAX = 10, 500
TASKS_MAX = 200
BLIND = "could_not_look"
# The order in which a plan asks: the nodes' own rules came first, and come first here.
ORDER = [*dict.fromkeys(rule.__name__ for rule in (*STEAL_RULES, *SWIFT_RULES))]


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """The newest cycles of a window added up; with `step`, the tasks that one rule kept."""
    window = window_of(query, now)
    count = whole_of(query, "cycles", CYCLES, low=1, high=CYCLES_MAX)
    runs = history.runs(window.since, window.until, sensor=SENSOR, limit=count)
    found: JsonObject = {**_summed(runs), "since": iso(window.since), "until": iso(window.until)}
    step = query.get("step")
    if step:
        found["step"] = _step(history, runs, step[:64])
    return found


def _summed(runs: Sequence[RunSeen]) -> JsonObject:
    kept: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for run in runs:
        kept.update(run.kept)
        if run.outcome == "skipped":
            skipped[run.skipped or "no reason kept"] += 1
    planned, moved = sum(run.decided for run in runs), sum(run.acted for run in runs)
    left = sum(kept.values()) + planned
    blind = [run for run in runs if run.outcome == BLIND]
    steps: list[JsonValue] = []
    for rule in sorted(kept, key=lambda name: (_place(name), -kept[name], name)):
        left -= kept[rule]
        steps.append({"rule": rule, "out": kept[rule], "left": left})
    return {
        "cycles": len(runs), "first": iso(runs[0].at) if runs else None,
        "last": iso(runs[-1].at) if runs else None,
        "run": runs[-1].id if runs else None, "summary": runs[-1].summary if runs else "",
        "blind": len(blind), "blind_because": blind[-1].summary if blind else "",
        "unseen": sum(run.unseen for run in runs), "looked": sum(run.looked for run in runs),
        "skipped": dict(skipped.most_common(10)),
        "failed": sum(run.outcome == "failed" for run in runs),
        "waiting": sum(kept.values()) + planned, "steps": steps,
        "planned": planned, "moved": moved,
    }  # fmt: skip


def _place(rule: str) -> int:
    return ORDER.index(rule) if rule in ORDER else len(ORDER)


def _step(history: History, runs: Sequence[RunSeen], rule: str) -> JsonObject:
    """Which tasks a rule kept, the newest cycle first; each once, with how many cycles said so."""
    tasks: dict[str, JsonObject] = {}
    times: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for run in reversed(runs):
        for one in history.decisions(run.id):
            if one.rule != rule:
                continue
            if not one.uid:
                nodes[one.node] += one.count
                reasons.setdefault(one.node, one.because)
                continue
            times[one.uid] += 1
            if len(tasks) < TASKS_MAX:
                tasks.setdefault(one.uid, {"uid": one.uid, "node": one.node,
                                           "because": one.because, "run": run.id})  # fmt: skip
    return {
        "rule": rule, "tasks": [{**one, "cycles": times[uid]} for uid, one in tasks.items()],
        "more": len(times) - len(tasks),
        "nodes": [{"node": node, "count": count, "because": reasons.get(node, "")}
                  for node, count in nodes.most_common(50)],
    }  # fmt: skip
