"""Tells of each move when its old node might have come to the task, and when the new one did."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import UNKNOWN, MoveSeen, Sample, Stint

from .asked import Window

if TYPE_CHECKING:
    from arc.history import History

MOVES_MAX = 300
DURATIONS = 200  # of which the typical one is taken


def moves_of(
    history: History, window: Window, *, seen: Mapping[str, Sequence[Sample]],
    ran: Mapping[str, Sequence[Stint]], nodes: Sequence[str],
) -> JsonObject:  # fmt: skip
    """The newest moves that were carried out between these nodes; the others are counted."""
    every = history.moves(window.since, window.until)
    known = set(nodes)
    meant = {one.xfer: one.why for one in reversed(every) if one.why != "doubt"}
    came = {one.xfer: replace(one, why=meant.get(one.xfer, one.why))
            for one in reversed(every) if one.arrived}  # fmt: skip
    done = [one for one in reversed(came.values()) if {one.busy, one.idle} & known]
    doubted = {one.xfer for one in every if one.outcome == "in_doubt"}
    over = {one.xfer for one in every if one.outcome == "settled"} | came.keys()
    typical = {node: _typical(stints) for node, stints in ran.items()}
    begun = {(one.uid, one.node): one for stints in ran.values() for one in reversed(stints)}
    shown: list[JsonValue] = [
        _move(one, window, begun=begun, there=seen.get(one.busy, ()),
              typical=typical.get(one.busy))
        for one in done[-MOVES_MAX:]
    ]  # fmt: skip
    return {"shown": shown, "moved": len(done),
            "refused": sum(one.outcome == "kept" for one in every),
            "in_doubt": len(doubted - over)}  # fmt: skip


def _move(
    one: MoveSeen, window: Window, *, begun: Mapping[tuple[str, str], Stint],
    there: Sequence[Sample], typical: float | None,
) -> JsonObject:  # fmt: skip
    stint = begun.get((one.uid, one.idle))
    started = (stint.started_at or stint.claimed_at) if stint else None
    sample = _at(there, one.at)
    reached = None
    if sample is not None and typical is not None and sample.state != UNKNOWN:
        reached = sample.pending * typical / max(sample.slots, 1)
    return {
        "t": window.after(one.at), "uid": one.uid, "from": one.busy, "to": one.idle,
        "why": one.why, "rule": one.rule, "because": one.because, "priority": one.priority,
        "run": one.run, "started_s": None if started is None else
        round((started - one.at).total_seconds(), 1),
        "ahead": None if sample is None else sample.pending,
        "else_s": None if reached is None else round(reached, 1),
    }  # fmt: skip


def _typical(stints: Sequence[Stint]) -> float | None:
    """What an attempt there takes; None: none has ended in this window."""
    took = [(one.ended_at - (one.started_at or one.claimed_at)).total_seconds()
            for one in stints[-DURATIONS:] if one.ended_at is not None]  # fmt: skip
    return median(took) if took else None


def _at(samples: Sequence[Sample], moment: datetime) -> Sample | None:
    place = bisect_right(samples, moment, key=lambda one: one.at)
    return samples[place - 1] if place else None
