"""Draws up the funnel: what the last cycles did with everything that waited, rule by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.rules import STEAL_RULES, SWIFT_RULES
from arc.history_seen import RunSeen

from .asked import whole_of, window_of

if TYPE_CHECKING:
    from arc.history import History
    from arc.history_seen import MoveSeen

SENSOR = "fleet-rebalance"
CYCLES, CYCLES_MAX = 10, 500
TASKS_MAX = 200
LEEWAY_S = 60.0  # after a cycle has ended: what it saw and moved is written down when it is over
NODES_MAX = 50
SUMMARY_MAX = 160
BLIND, WAITING, MOVED = "could_not_look", "waiting", "moved"  # steps that are no rules
# The order in which a plan asks: the nodes' own rules came first, and come first here.
ORDER = [*dict.fromkeys(rule.__name__ for rule in (*STEAL_RULES, *SWIFT_RULES))]


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """The newest cycles of a window added up; with `step`, what one step of them is made of: the
    tasks that a rule kept, the moves, the cycles and nodes that could not be looked at, or how
    much waited where.
    """
    window = window_of(query, now)
    count = whole_of(query, "cycles", CYCLES, low=1, high=CYCLES_MAX)
    runs = history.runs(window.since, window.until, sensor=SENSOR, limit=count)
    found: JsonObject = {**_summed(runs), "since": iso(window.since), "until": iso(window.until)}
    step = query.get("step")
    if step:
        found["step"] = _END.get(step, _of_rule)(history, runs, step[:64])
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


def _of_rule(history: History, runs: Sequence[RunSeen], rule: str) -> JsonObject:
    """Which tasks a rule kept, the newest cycle first; each once, with how many cycles said so.

    A rule about the task itself is looked at by the node that has it, which tells how many it
    kept, and not which: then there are `nodes` and no `tasks`.
    """
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
        "more": len(times) - len(tasks), **_counted(nodes, reasons),
    }  # fmt: skip


def _waiting(history: History, runs: Sequence[RunSeen], step: str) -> JsonObject:
    """How much waited on which node, once for each cycle: what was kept there and what left."""
    nodes: Counter[str] = Counter()
    for run in runs:
        for one in history.decisions(run.id):
            if not one.uid:
                nodes[one.node] += one.count
    for move in _moves(history, runs):
        nodes[move.busy] += 1
    return {"rule": step, **_counted(nodes, {})}


def _moved(history: History, runs: Sequence[RunSeen], step: str) -> JsonObject:
    """The moves of these cycles, the newest first."""
    moves = _moves(history, runs)
    shown: list[JsonValue] = [
        {"at": iso(one.at), "uid": one.uid, "from": one.busy, "to": one.idle, "why": one.why,
         "outcome": one.outcome, "because": one.because} for one in moves[:-TASKS_MAX - 1:-1]
    ]  # fmt: skip
    return {"rule": step, "moves": shown, "more": len(moves) - len(shown)}


def _blind(history: History, runs: Sequence[RunSeen], step: str) -> JsonObject:
    """Which of these cycles missed an answer and what they said, the newest first; and which nodes
    were not seen meanwhile, why, and since when.
    """
    missed = [run for run in reversed(runs) if run.outcome == BLIND or run.unseen]
    shown: list[JsonValue] = [
        {"run": one.id, "at": iso(one.at), "unseen": one.unseen, "looked": one.looked,
         "outcome": one.outcome, "summary": one.summary[:SUMMARY_MAX]}
        for one in missed[:TASKS_MAX]
    ]  # fmt: skip
    since: dict[tuple[str, str], JsonObject] = {}
    if missed:
        for one in history.samples(missed[-1].at, _over(missed[0])):
            if one.state == "unknown":
                since.setdefault((one.node, one.because), {
                    "node": one.node, "because": one.because, "since": iso(one.at)})  # fmt: skip
    return {"rule": step, "runs": shown, "more": len(missed) - len(shown),
            "unseen": list[JsonValue](since.values())[:NODES_MAX]}  # fmt: skip


_END: Mapping[str, Callable[[History, Sequence[RunSeen], str], JsonObject]] = {
    BLIND: _blind, WAITING: _waiting, MOVED: _moved,
}  # fmt: skip


def _moves(history: History, runs: Sequence[RunSeen]) -> list[MoveSeen]:
    """Those that these cycles made, by time; a doubt that they ended is a move of an older one."""
    if not runs:
        return []
    numbers = {run.id for run in runs}
    moves = history.moves(runs[0].at, _over(runs[-1]))
    return [one for one in moves if one.run in numbers and one.outcome != "settled"]


def _over(run: RunSeen) -> datetime:
    """By when all that a run saw and did is written down."""
    return run.at + timedelta(seconds=run.took_s + LEEWAY_S)


def _counted(nodes: Counter[str], reasons: Mapping[str, str]) -> JsonObject:
    """Those that had the most, and how many nodes are not named."""
    told: list[JsonValue] = [{"node": node, "count": count, "because": reasons.get(node, "")}
                             for node, count in nodes.most_common(NODES_MAX)]  # fmt: skip
    return {"nodes": told, "nodes_more": len(nodes) - len(told)}
