"""Draws up the lanes: for each node what ran, what waited, what moved, what was stranded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import UNKNOWN, NodeKnown, Sample, Stint, StrandedStretch

from .asked import Window, nodes_of, whole_of, window_of
from .blocks import STINTS_MAX, blocks_of, kinds_of
from .reaching import moves_of

if TYPE_CHECKING:
    from arc.history import History

HEAT_FROM = 50  # nodes; from so many on the page shows a heat map instead
STRETCHES_MAX = 2000
POINTS_MAX = 240  # of one queue's ribbon
INBOX = "inbox"

One = TypeVar("One", Stint, Sample, StrandedStretch)


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """The lanes of a window; all times in seconds from `since`.

    Of a fleet that is too large for lanes only its size, unless some nodes are named.
    """
    window = window_of(query, now)
    width = whole_of(query, "width", 1000, low=100, high=4000)
    known = {node.name: node for node in history.nodes()
             if node.until >= window.since and node.since <= window.until}  # fmt: skip
    names = sorted(known)
    fleet = len(known.keys() - {INBOX})
    wanted = nodes_of(query)
    if wanted is None and fleet >= HEAT_FROM:
        return {"fleet": fleet, "nodes": []}
    chosen = [name for name in names if wanted is None or name in wanted][:HEAT_FROM]
    chosen.sort(key=lambda name: (name == INBOX, name))
    stints = history.stints(window.since, window.until, nodes=chosen, limit=STINTS_MAX)
    samples = history.samples(window.since, window.until, nodes=chosen)
    stranded = history.stranded(window.since, window.until, limit=STRETCHES_MAX)
    ran, seen = _by_node(stints), _by_node(samples)
    kept = _by_node(stranded)
    kinds = kinds_of(history, window, stints)
    domains = sorted({kind for kind in kinds.values() if kind})
    blocks = blocks_of({name: ran.get(name, []) for name in chosen}, window,
                       width=width, domains=domains, kinds=kinds)  # fmt: skip
    lanes: list[JsonValue] = [
        {"node": name, **blocks[name], **_looked(known[name], seen.get(name, []), window),
         "stranded": [_stretch(one, window) for one in kept.get(name, [])],
         "stranded_s": round(sum(_seconds(one, window) for one in kept.get(name, [])), 1)}
        for name in chosen
    ]  # fmt: skip
    return {
        "since": _ms(window.since), "until": _ms(window.until), "live": window.live,
        "domains": list[JsonValue](domains), "nodes": lanes, "fleet": fleet,
        "cut": len(stints) == STINTS_MAX,
        "moves": moves_of(history, window, seen=seen, ran=ran, nodes=chosen),
    }  # fmt: skip


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _by_node(rows: Sequence[One]) -> dict[str, list[One]]:
    found: dict[str, list[One]] = defaultdict(list)
    for row in rows:
        found[row.node].append(row)
    return found


def _stretch(one: StrandedStretch, window: Window) -> JsonObject:
    since, until = max(one.since, window.since), min(one.until, window.until)
    return {"t0": window.after(since), "t1": window.after(until), "cause": one.cause,
            "rule": one.rule, "beside": one.beside, "uid": one.uid,
            "seconds": round(_seconds(one, window), 1)}  # fmt: skip


def _seconds(one: StrandedStretch, window: Window) -> float:
    return one.seconds_in(window.since, window.until)


def _looked(node: NodeKnown, samples: Sequence[Sample], window: Window) -> JsonObject:
    """Its queue, what kept it from working, and when nobody looked.

    From `met` to `looked` it is known; each gap in between is named.
    """
    depth: list[JsonValue] = []
    states: list[JsonValue] = []
    gaps: list[JsonValue] = []
    pixel = window.seconds / 1000
    met = max(window.after(node.since), 0.0)
    end = met
    for one in samples:
        since = window.after(max(one.at, window.since))
        until = window.after(min(one.until, window.until))
        if since - end > 2 * pixel:
            gaps.append([end, since, "nobody looked"])
            depth.append([round(end, 3), None])
        if one.state == UNKNOWN:
            gaps.append([since, until, f"no answer: {one.because}"])
            depth.append([since, None])
        else:
            depth.append([since, one.pending])
            if one.state != "running" and one.node != INBOX:
                states.append([since, until, one.state])
        end = max(end, until)
    last = samples[-1] if samples else None
    return {
        "depth": _thinned(depth, window), "states": _joined(states), "gaps": _joined(gaps),
        "met": met, "looked": end, "now": None if last is None else
        {"state": last.state, "because": last.because, "pending": last.pending,
         "running": last.running, "slots": last.slots, "idle": last.idle},
    }  # fmt: skip


def _joined(parts: list[JsonValue]) -> list[JsonValue]:
    """Stretches with the same words that touch become one."""
    found: list[list[JsonValue]] = []
    for part in parts:
        assert isinstance(part, list), "made above"
        if found and found[-1][2] == part[2] and found[-1][1] == part[0]:
            found[-1][1] = part[1]
        else:
            found.append([*part])
    return [*found]


def _thinned(points: list[JsonValue], window: Window) -> list[JsonValue]:
    """At most so many points; of those that fall together the deepest stays, and each gap."""
    if len(points) <= POINTS_MAX:
        return points
    step = window.seconds / POINTS_MAX
    deepest: dict[int, list[JsonValue]] = {}
    for point in points:
        assert isinstance(point, list), "made above"
        at, depth = point
        assert isinstance(at, int | float), "made above"
        before = deepest.get(int(at / step))
        if before is None or _more(depth, before[1]):
            deepest[int(at / step)] = [round(int(at / step) * step, 3), depth]
    return [*deepest.values()]


def _more(one: JsonValue, other: JsonValue) -> bool:
    if not isinstance(one, int):
        return False
    return not isinstance(other, int) or one > other
