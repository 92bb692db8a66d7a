"""Draws up the sensors: a tick for each run, with what went wrong in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import RunSeen

from .asked import Window, window_of

if TYPE_CHECKING:
    from arc.history import History

RUNS_MAX = 20_000
TICKS_MAX = 300  # of one sensor; of those that fall together the worst is shown
LATE = 2.5  # usual intervals
SUMMARY_MAX = 160
WORST = ("failed", "could_not_look", "late", "acted", "done", "skipped")


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """Each sensor's runs in the window, with the usual time between two of them."""
    window = window_of(query, now)
    by_sensor: dict[str, list[RunSeen]] = defaultdict(list)
    for run in history.runs(window.since, window.until, limit=RUNS_MAX):
        by_sensor[run.sensor].append(run)
    listed: list[JsonValue] = [_sensor(name, runs, window) for name, runs in
                               sorted(by_sensor.items())]  # fmt: skip
    return {"since": int(window.since.timestamp() * 1000), "span_s": window.seconds,
            "sensors": listed}  # fmt: skip


def _sensor(name: str, runs: Sequence[RunSeen], window: Window) -> JsonObject:
    times = [window.after(run.at) for run in runs]
    between = [after - before for before, after in pairwise(times)]
    usual = median(between) if between else None
    marks = [_mark(run, place, between, usual) for place, run in enumerate(runs)]
    return {
        "sensor": name, "runs": len(runs), "usual_s": usual,
        "bad": {word: marks.count(word) for word in WORST[:3] if word in marks},
        "acted": sum(run.acted for run in runs), "summary": runs[-1].summary[:SUMMARY_MAX],
        "took_s": round(median(run.took_s for run in runs), 3), "last": runs[-1].id,
        "ticks": _ticks([*zip(times, marks, runs, strict=True)], window),
    }  # fmt: skip


def _mark(run: RunSeen, place: int, between: Sequence[float], usual: float | None) -> str:
    """One word; a sensor that news wakes as well is late by its longest pauses alone."""
    if run.outcome in {"failed", "could_not_look"}:
        return run.outcome
    late = usual is not None and place > 0 and between[place - 1] > LATE * max(usual, 1.0)
    if late and run.because == "interval":
        return "late"
    return "acted" if run.acted else run.outcome


def _ticks(marked: Sequence[tuple[float, str, RunSeen]], window: Window) -> list[JsonValue]:
    step = window.seconds / TICKS_MAX
    worst: dict[int, tuple[float, str, RunSeen]] = {}
    for at, mark, run in marked:
        before = worst.get(int(at / step))
        if before is None or _rank(mark) < _rank(before[1]):
            worst[int(at / step)] = (at, mark, run)
    return [[at, mark, run.id, "" if mark in {"done", "skipped"} else run.summary[:SUMMARY_MAX]]
            for at, mark, run in worst.values()]  # fmt: skip


def _rank(mark: str) -> int:
    return WORST.index(mark) if mark in WORST else len(WORST)
