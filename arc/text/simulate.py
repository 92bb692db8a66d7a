"""Renders policies side by side, how sure each figure is, and which limits would be better."""

from __future__ import annotations

from collections.abc import Callable

from agent_node.strict import JsonObject, JsonValue

from .columns import inside, number, objects, rows, said
from .look import Look

HEAD = ("policy", "wait", "p95", "x central", "idle beside work", "stranded", "thefts/task",
        "in vain", "makespan/bound")  # fmt: skip
BANDS = ("P1-P3", "P4-P6", "P7-P10")
BAND_HEAD = ("policy", *(f"{band} {which}" for band in BANDS for which in ("wait", "p95")))


def render_simulation(data: JsonObject, look: Look) -> str:
    """What was simulated, a line a policy, what kept work away, and the advice."""
    policies = objects(data, "policies")
    source = inside(data, "source")
    seeds = int(number(data.get("seeds")))
    head = (f"{said(source.get('says'))}: {int(number(data.get('tasks'))):,} tasks, "
            f"{seeds} seed{'s' * (seeds != 1)} from {said(data.get('seed'))} on")  # fmt: skip
    lines = [head, rows(HEAD, map(_line, policies), look), _key(seeds), "", "by priority:",
             rows(BAND_HEAD, map(_bands, policies), look)]  # fmt: skip
    lines += _forbidden(policies)
    advice = data.get("advice")
    if isinstance(advice, dict):
        lines += ["", *_advice(advice)]
    return "\n".join(lines)


def _line(one: JsonObject) -> tuple[str, ...]:
    waits, late = inside(one, "wait_s"), inside(one, "wait_p95_s")
    return (
        said(one.get("policy")), _figure(waits.get("all"), _seconds),
        _figure(late.get("all"), _seconds), _figure(one.get("wait_to_central"), _ratio),
        _figure(one.get("idle_beside_work"), _percent),
        _figure(inside(one, "stranded_min").get("all"), _minutes),
        _figure(one.get("thefts_per_task"), _ratio), _figure(one.get("regret"), _percent),
        _figure(one.get("makespan_to_bound"), _ratio),
    )


def _bands(one: JsonObject) -> tuple[str, ...]:
    """How long tasks of each band of priority waited, on the average and 95 of 100 at most."""
    means, late = inside(one, "wait_s"), inside(one, "wait_p95_s")
    return (said(one.get("policy")), *(_figure(some.get(band), _seconds)
                                       for band in BANDS for some in (means, late)))  # fmt: skip


def _figure(value: JsonValue, shown: Callable[[float], str]) -> str:
    """The mean, and how far the true one may be off; a dash where nothing was measured."""
    if not isinstance(value, dict):
        return "-"
    mean, high = number(value.get("mean")), value.get("high")
    if high is None:
        return shown(mean)
    half = shown(number(high) - mean)
    return f"{shown(mean)} ±{half.removesuffix('s').removesuffix('%').removesuffix('m')}"


def _seconds(value: float) -> str:
    return f"{value:.1f}s" if value < 10 else f"{value:.0f}s"  # noqa: PLR2004 - where tenths end


def _minutes(value: float) -> str:
    return f"{value:.0f}m"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _ratio(value: float) -> str:
    return f"{value:.2f}"


def _key(seeds: int) -> str:
    sure = "one seed: no intervals"
    if seeds > 1:
        sure = "± is the 95% interval of the mean over the seeds (Student's t)"
    return (
        f"{sure}. wait: mean, from coming to starting.\n"
        "idle beside work: of the nodes' time, a slot free while work that it may run waits or\n"
        "travels. stranded: node-minutes, a whole interval for each look of fleet-health that\n"
        "finds a node so. in vain: of the thefts, those after which the task started no earlier.\n"
        "makespan/bound: over what no schedule can beat."
    )


def _forbidden(policies: list[JsonObject]) -> list[str]:
    """By which rule free slots and work were kept apart, for each policy."""
    lines: list[str] = []
    for one in policies:
        found = inside(one, "stranded_min")
        by_rule = {rule: number(inside(found, rule).get("mean")) for rule in found if rule != "all"}
        most = sorted(by_rule.items(), key=lambda pair: (-pair[1], pair[0]))
        told = ", ".join(f"{said(rule)} {minutes:.0f}m" for rule, minutes in most if minutes >= 1)
        if told:
            lines.append(f"{said(one.get('policy'))} kept them apart by: {told}")
    return ["", *lines] if lines else []


def _advice(advice: JsonObject) -> list[str]:
    changes = objects(advice, "changes")
    about = said(advice.get("policy"))
    first, seeds = int(number(advice.get("first_tasks"))), int(number(advice.get("seeds")))
    tried = f"{int(number(advice.get('runs')))} runs tried" + (
        f" of the first {first:,} tasks" if first else "") + (
        ", of one stretch: no interval" if seeds == 1 else "") + (
        ", cut short: the scenes are large" if advice.get("cut") else "")  # fmt: skip
    if advice.get("cut") and not number(advice.get("runs")):
        return [(f"No other limits of {about} were tried: the scenes are too large (fewer --nodes, "
                "--days or --seeds).")]  # fmt: skip
    lines = [f"Better limits for {about} ({tried}):" if changes
             else f"No limit of {about} would be changed ({tried})."]  # fmt: skip
    if changes:
        lines += ["  rebalance:", *map(_change, changes)]
    if advice.get("better_policy"):
        lines.append(f"  policy: {said(advice.get('better_policy'))}   # "
                     f"{said(advice.get('because'))}")  # fmt: skip
    return lines


def _change(change: JsonObject) -> str:
    key = said(change.get("key")).removeprefix("rebalance.")
    before = number(inside(change, "wait_before_s").get("mean"))
    after = number(inside(change, "wait_after_s").get("mean"))
    idle = (_percent(number(change.get(name))) for name in ("idle_before", "idle_after"))
    return (f"    {key}: {said(change.get('value'))}   # mean wait {before:.0f} s to {after:.0f} s,"
            f" idle beside work {' to '.join(idle)}")  # fmt: skip
