"""Turns figures into what `arc simulate` answers with: plain JSON, one object a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_node.strict import JsonObject, JsonValue

from .advice import Advice, Change
from .comparing import SURE, Compared, Figure
from .policies import Policy
from .scene import Scene
from .wanted import Source


def told(
    source: Source, scenes: Sequence[Scene], figures: Sequence[Compared], advice: Advice | None,
    *, seed: int,
) -> JsonObject:  # fmt: skip
    """The whole answer."""
    return {
        "source": {**source.facts, "says": source.sentence},
        "seeds": len(scenes), "seed": seed, "interval": SURE,
        "nodes": len(scenes[0].places), "slots": scenes[0].slots,
        "tasks": sum(len(scene.jobs) for scene in scenes),
        "policies": [_policy(one) for one in figures],
        "advice": None if advice is None else _advice(advice),
    }


def _policy(one: Compared) -> JsonObject:
    return {
        "policy": one.policy.name,
        "limits": limits_of(one.policy),
        "tasks": _figure(one.tasks),
        "makespan_to_bound": _figure(one.makespan),
        "wait_s": _figures(one.wait_s),
        "wait_p95_s": _figures(one.wait_p95_s),
        "wait_to_central": _figure(one.wait_to_bound),
        "idle_beside_work": _figure(one.idle_beside_work),
        "utilisation": _figure(one.utilisation),
        "stranded_min": _figures(one.stranded_min),
        "thefts_per_task": _figure(one.thefts_per_task),
        "routes_per_task": _figure(one.routes_per_task),
        "regret": _figure(one.regret),
        "cycles": _figure(one.cycles),
        "never_started": one.never_started,
    }


def limits_of(policy: Policy) -> JsonObject:
    """What it decides by, in seconds and counts."""
    steal = policy.steal
    return {
        "policy": steal.policy if policy.steals else policy.name,
        "every_s": policy.every_s, "router_every_s": policy.router_s, "on_idle": policy.on_idle,
        "idle_min_s": steal.idle_min_s, "busy_over": steal.busy_over,
        "steal_from": steal.steal_from, "anyone_from": steal.anyone_from,
        "per_node": steal.per_node, "per_cycle": steal.per_cycle, "gain_min_s": steal.gain_min_s,
        "move_takes_s": policy.transfer_s,
    }  # fmt: skip


def _figures(some: Mapping[str, Figure]) -> JsonObject:
    return {name: _figure(one) for name, one in some.items()}


def _figure(one: Figure | None) -> JsonValue:
    """None where nothing was measured; without several seeds there is no interval."""
    if one is None:
        return None
    if one.half is None:
        return {"mean": _short(one.mean), "low": None, "high": None}
    return {"mean": _short(one.mean), "low": _short(one.low), "high": _short(one.high)}


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _advice(advice: Advice) -> JsonObject:
    lines: list[JsonValue] = [f"  {change.key}: {change.value}" for change in advice.changes]
    return {
        "policy": advice.policy, "runs": advice.runs, "cut": advice.cut,
        "first_tasks": advice.first or None, "seeds": advice.scenes,
        "better_policy": advice.better_policy, "because": advice.because,
        "changes": [_change(change) for change in advice.changes],
        "fleet_yaml": ["rebalance:", *lines] if lines else [],
    }  # fmt: skip


def _change(change: Change) -> JsonObject:
    return {
        "key": f"rebalance.{change.key}", "value": change.value,
        "wait_before_s": _figure(change.wait_before), "wait_after_s": _figure(change.wait_after),
        "idle_before": _short(change.idle_before), "idle_after": _short(change.idle_after),
        "thefts_per_task": _short(change.thefts_after),
    }  # fmt: skip
