"""Measures the simulator: what a large fleet costs, and what policies come to in it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from arc.simulate.comparing import Compared, compare
from arc.simulate.policies import parse_policy
from arc.simulate.wanted import Wanted, all_scenes, source_of

from .machine import load
from .measuring import Place, Row

FOUR = ("none", "arc0", "swift", "central")
NODES, DAYS, SECONDS_MAX = 50, 7, 120.0
IDLE_MAX, WAIT_MAX, SPAN_MAX = 6.0, 1.25, 1.10


def simulate_rows(place: Place) -> Iterator[Row]:
    """Four policies on a week of fifty nodes; in a hurry, seven times a day of it."""
    nodes, days = place.size(NODES, 3), 1 if place.quick else DAYS
    wanted = Wanted(nodes=nodes, days=".01" if place.tiny else str(days), seeds=1)
    began = time.process_time()
    compared(wanted, FOUR)
    took_s = (time.process_time() - began) * DAYS / days
    measured = "one day measured, times seven" if days < DAYS else "measured whole"
    yield Row(
        "simulate-50x7", f"{nodes} nodes x {DAYS} days, four policies, one core ({measured})",
        took_s, None, "s", took_s, SECONDS_MAX, load=load(),
    )  # fmt: skip


def policy_rows(place: Place) -> Iterator[Row]:
    """What `swift` comes to on agents' lengths: five nodes, load 0.65, 60 % portable."""
    seeds = place.size(12, 2)
    some = compared(Wanted(seeds=seeds, days=".02" if place.tiny else "1"), FOUR)
    none, arc0, swift, _ = some
    idle = [one.idle_beside_work.mean * 100 for one in some if one.idle_beside_work]
    waits = [one.wait_s["all"].mean for one in some]
    over = [one.wait_to_bound.mean for one in some if one.wait_to_bound]
    yield Row(
        "policy-idle", f"swift: nodes' time idle beside work they might run, {seeds} seeds",
        idle[2], idle[1], "%", idle[2], IDLE_MAX, against="arc0", load=load(),
        more={"none, %": idle[0], "tasks": swift.tasks.mean},
    )  # fmt: skip
    yield Row(
        "policy-wait", f"swift: mean wait over that of one queue for all, {seeds} seeds",
        waits[2], waits[3], "s", over[2] if over else 1.0, WAIT_MAX, against="central",
        load=load(), more={"none, s": none.wait_s["all"].mean, "arc0, s": arc0.wait_s["all"].mean},
    )  # fmt: skip
    seeds = place.size(40, 2)
    spans = compared(Wanted(seeds=seeds, backlog=120), FOUR)
    ratios = [one.makespan.mean for one in spans if one.makespan]
    yield Row(
        "policy-backlog", f"swift: makespan of 120 tasks, 60 % on one of five nodes, {seeds} seeds",
        ratios[2], 1.0, "x", ratios[2], SPAN_MAX, against="what no schedule can beat", load=load(),
        more={"none": ratios[0], "arc0": ratios[1], "central": ratios[3]},
    )  # fmt: skip


def compared(wanted: Wanted, words: tuple[str, ...]) -> tuple[Compared, ...]:
    """These policies side by side."""
    return compare([parse_policy(word) for word in words], all_scenes(source_of(wanted, None), 1))
