"""Draws up the heat map: a fleet too large for lanes, stranded nodes first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.decisions.stranded import NOBODY_LOOKED
from arc.history_seen import NodeShares, Shares, StrandedStretch

from .asked import Window, nodes_of, whole_of, window_of
from .causes import by_cause_of, cause_of

if TYPE_CHECKING:
    from arc.history import History

BUCKETS = 240
INBOX = "inbox"  # the hub's own queue, which is no node
NODES_MAX = 1000
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
DEEPEST = len(DIGITS) - 1


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """One letter a node and stretch: `u`nknown, `p`aused, `b`usy, `i`dle; beside it the tenths of
    it that were stranded, and how many tasks waited (a digit of base 36, `.` where nobody knows).
    A stranded node has its seconds by cause, and the tenths in which nobody looked, if any; one
    that neither worked nor had anything waiting nor was stranded is `quiet`.
    """
    window = window_of(query, now)
    buckets = whole_of(query, "buckets", BUCKETS, low=10, high=500)
    shares = history.shares(window.since, window.until, buckets)
    wanted = nodes_of(query)
    nodes = [one for one in shares.nodes
             if (one.node != INBOX if wanted is None else one.node in wanted)]  # fmt: skip
    nodes.sort(key=lambda one: (-sum(one.stranded), one.node))
    kept: defaultdict[str, list[StrandedStretch]] = defaultdict(list)
    for stretch in history.stranded(window.since, window.until):
        kept[stretch.node].append(stretch)
    rows: list[JsonValue] = [
        {**_row(one, shares.step_s), **_causes(kept[one.node], shares, window)}
        for one in nodes[:NODES_MAX]
    ]  # fmt: skip
    return {
        "since": int(window.since.timestamp() * 1000),
        "until": int(window.until.timestamp() * 1000), "live": window.live,
        "step_s": shares.step_s, "nodes": rows, "fleet": len(nodes),
        "stranded_s": round(sum(sum(one.stranded) for one in nodes) * shares.step_s, 1),
        "by_cause": by_cause_of((stretch for one in nodes for stretch in kept[one.node]),
                                window.since, window.until),
        "cost_usd": round(sum(sum(one.cost_usd) for one in nodes), 4),
    }  # fmt: skip


def _row(one: NodeShares, step_s: float) -> JsonObject:
    """A day of five hundred nodes has 120,000 letters of each kind: no call for any of them."""
    states = [
        "u" if unknown >= paused and unknown >= busy and unknown >= idle
        else "p" if paused >= busy and paused >= idle else "b" if busy >= idle else "i"
        for unknown, paused, busy, idle in zip(one.unknown, one.paused, one.busy, one.idle,
                                               strict=True)
    ]  # fmt: skip
    depth = ["." if mean is None else DIGITS[int(mean + 0.5)] if mean < DEEPEST else "z"
             for mean in one.depth]  # fmt: skip
    loud = map(_tenths, one.stranded) if any(one.stranded) else "0" * len(states)
    return {
        "node": one.node, "stranded_s": round(sum(one.stranded) * step_s, 1),
        "states": "".join(states), "loud": "".join(loud), "depth": "".join(depth),
        **({} if any(one.busy) or any(one.depth) or any(one.stranded) else {"quiet": True}),
    }  # fmt: skip


def _causes(kept: Sequence[StrandedStretch], shares: Shares, window: Window) -> JsonObject:
    """What kept it stranded; nothing of a node that was not."""
    if not kept:
        return {}
    unlooked = [one for one in kept if cause_of(one) == NOBODY_LOOKED]
    told: JsonObject = {"by_cause": by_cause_of(kept, window.since, window.until)}
    if unlooked:
        told["unlooked"] = "".join(map(_tenths, _in_buckets(unlooked, shares, window)))
    return told


def _in_buckets(
    stretches: Sequence[StrandedStretch], shares: Shares, window: Window
) -> list[float]:
    """The share of each bucket that they take."""
    step = shares.step_s
    found = [0.0] * round(window.seconds / step)
    for one in stretches:
        begun = max(window.after(one.since), 0.0)
        end = min(window.after(one.until), window.seconds)
        for bucket in range(int(begun / step), min(int(end / step) + 1, len(found))):
            part = min(end, (bucket + 1) * step) - max(begun, bucket * step)
            found[bucket] = min(found[bucket] + max(part, 0.0) / step, 1.0)
    return found


def _tenths(share: float) -> str:
    """A little of it is still seen."""
    return DIGITS[min(max(round(share * 9), 1), 9)] if share > 0 else "0"
