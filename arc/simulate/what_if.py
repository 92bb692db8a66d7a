"""Plays a stretch of real history again with other limits, and lays both side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.strict import JsonObject, JsonValue
from arc.errors import NoHistory, WrongUse

from .engine import Run
from .history_source import Remembered, scene_of_history
from .ledger import Ended
from .policies import Policy, parse_policy
from .scene import MS

if TYPE_CHECKING:
    from arc.history import History
    from arc.settings import FleetSettings

TASKS_MAX = 10_000  # of one replay, which then takes a few seconds; of more the newest are taken
WORK_MAX = 300_000  # nodes that the cycles of one replay look at: some seconds
BUCKETS, BUCKETS_MAX = 200, 2000
STRETCHES_MAX, MOVES_MAX = 5000, 2000
TRANSFER_S = 1.0
KEYS = ("idle_min", "busy_over", "per_node", "per_cycle", "every", "steal_from", "anyone_from",
        "on_idle", "gain_min", "transfer", "task_takes", "hops")  # fmt: skip


def what_if(asked: JsonObject) -> JsonObject:
    """The same as `replayed`, from plain words to plain words, for a process of its own.

    `asked` names `fleet` (the path of fleet.yaml), `since` and `until` (zoned times), and may name
    `policy`, `limits` (keys of `rebalance` and their values) and `buckets`.
    """
    from arc.config import read_fleet
    from arc.history import History

    fleet = read_fleet(Path(_text(asked, "fleet")))
    limits, buckets = asked.get("limits") or {}, asked.get("buckets", BUCKETS)
    if not isinstance(limits, dict) or not isinstance(buckets, int):
        raise WrongUse("what if: limits should be a mapping, buckets a number")
    policy = policy_of(fleet, {key: str(value) for key, value in limits.items()},
                       str(asked.get("policy") or fleet.policy))  # fmt: skip
    return replayed(History(fleet.state), fleet, policy, since=_moment(asked, "since"),
                    until=_moment(asked, "until"), buckets=buckets)  # fmt: skip


def policy_of(fleet: FleetSettings, limits: Mapping[str, str], policy: str) -> Policy:
    """The fleet's own policy with these limits; `WrongUse` where one makes no sense."""
    odd = next((key for key in limits if key not in KEYS), None)
    if odd is not None or any("," in value or "=" in value for value in limits.values()):
        raise WrongUse(f"what if: one may change {', '.join(KEYS)}")
    pairs = ",".join(f"{key}={value}" for key, value in limits.items())
    made = parse_policy(f"{policy}:{pairs}" if pairs else policy, fleet)
    if made.central:
        raise WrongUse("what if: the central bound is no policy; choose none, arc0 or swift")
    return replace(made, transfer_s=TRANSFER_S)


def replayed(
    history: History, fleet: FleetSettings, policy: Policy, *, since: datetime, until: datetime,
    buckets: int = BUCKETS,
) -> JsonObject:  # fmt: skip
    """What really was, what the fleet's own limits come to here, and what these would have.

    Each of the three has: `stranded` (the mean number of stranded nodes in each of the buckets),
    `stranded_s`, `moves`, `mean_wait_s`, `p95_wait_s`, `stretches` by node, and `moved`. Where the
    first two are far apart, this replay says little of the third. `cut` has a sentence for all
    that is missing. Bounded: `TASKS_MAX` tasks, `WORK_MAX` looks at nodes, `STRETCHES_MAX`
    stretches, `MOVES_MAX` moves.
    """
    if not 1 <= buckets <= BUCKETS_MAX or until <= since:
        raise WrongUse(f"what if: 1 to {BUCKETS_MAX} buckets of a stretch that ends after it began")
    past = scene_of_history(history, fleet, since, until, tasks_max=TASKS_MAX)
    if not past.scene.jobs:
        raise NoHistory(f"nothing is known to have come from {iso(since)} to {iso(until)}")
    own = policy_of(fleet, {}, fleet.policy)
    step_s = (past.until - past.since).total_seconds() / buckets
    cut = [*past.doubts]
    shown = [_real(history, past, buckets, cut)]
    for one in (own, policy):
        run = Run(past.scene, one, watched=True, work_max=WORK_MAX)
        shown.append(_simulated(run.to_the_end(), past, buckets, cut))
        if run.worn_out:
            at = iso(past.since + timedelta(milliseconds=run.now_ms))
            cut.append(f"{one.name}: replayed up to {at} alone: so large a fleet takes too long")
    reality, as_it_is, other = shown
    return {
        "since": round(past.since.timestamp() * 1000), "step_s": step_s, "tasks":
        len(past.scene.jobs), "policy": policy.name, "reality": reality, "as_it_is": as_it_is,
        "what_if": other, "cut": list[JsonValue](dict.fromkeys(cut)),
    }  # fmt: skip


Part = tuple[str, float, float]  # a node, and from when to when it was stranded, in seconds


def _real(history: History, past: Remembered, buckets: int, cut: list[str]) -> JsonObject:
    """From what the hub wrote down. Its stranded time was counted at looks, and not in between."""
    parts = [
        (one.node, (max(one.since, past.since) - past.since).total_seconds(),
         (min(one.until, past.until) - past.since).total_seconds())
        for one in history.stranded(past.since, past.until)
    ]  # fmt: skip
    moved = [one for one in history.moves(past.since, past.until)
             if one.outcome in ("moved", "settled")]  # fmt: skip
    began: dict[str, datetime] = {}
    for stint in history.stints(past.since, past.until):
        began.setdefault(stint.uid, stint.started_at or stint.claimed_at)
    waits = [(began[one.uid] - one.at).total_seconds()
             for one in past.came.values() if one.uid in began]  # fmt: skip
    moves: list[JsonObject] = [
        {"at": round(one.at.timestamp() * 1000), "uid": one.uid, "from": one.busy, "to": one.idle,
         "why": one.why} for one in moved
    ]  # fmt: skip
    return _told(parts, moves, waits, past, buckets, cut)


def _simulated(ended: Ended, past: Remembered, buckets: int, cut: list[str]) -> JsonObject:
    length_s = (past.until - past.since).total_seconds()
    parts = [(one.node, one.since_ms / MS, min(one.until_ms / MS, length_s))
             for one in ended.stretches if one.since_ms / MS < length_s]  # fmt: skip
    names = {job.uid: job.name for job in past.scene.jobs}
    moves: list[JsonObject] = [
        {"at": round((past.since + timedelta(milliseconds=one.at_ms)).timestamp() * 1000),
         "uid": names[one.uid], "from": one.busy, "to": one.idle, "why": one.why}
        for one in ended.moves if one.at_ms / MS < length_s
    ]  # fmt: skip
    came = {job.uid: job.at_ms for job in past.scene.jobs if job.uid in past.came}
    waits = [(ended.starts[uid][1] - at_ms) / MS for uid, at_ms in came.items()
             if uid in ended.starts and ended.starts[uid][1] >= 0]  # fmt: skip
    return _told(parts, moves, waits, past, buckets, cut)


def _told(
    parts: Sequence[Part], moves: Sequence[JsonObject], waits: Sequence[float], past: Remembered,
    buckets: int, cut: list[str],
) -> JsonObject:  # fmt: skip
    if len(parts) > STRETCHES_MAX:
        cut.append(f"only the first {STRETCHES_MAX:,} stranded stretches are listed")
    if len(moves) > MOVES_MAX:
        cut.append(f"only the first {MOVES_MAX:,} moves are listed")
    length_s = (past.until - past.since).total_seconds()
    stretches: dict[str, list[JsonValue]] = {}
    for node, begin, end in parts[:STRETCHES_MAX]:
        stretches.setdefault(node, []).append([round(begin, 3), round(end, 3)])
    ordered = sorted(max(one, 0.0) for one in waits)
    late = ordered[max(math.ceil(0.95 * len(ordered)) - 1, 0)] if ordered else 0.0
    return {
        "stranded": list[JsonValue](_per_bucket(parts, length_s, buckets)),
        "stranded_s": round(sum(end - begin for _, begin, end in parts), 3),
        "moves": len(moves), "mean_wait_s": round(fmean(ordered), 3) if ordered else 0.0,
        "p95_wait_s": round(late, 3), "waited": len(ordered),
        "stretches": dict(sorted(stretches.items())),
        "moved": list[JsonValue](moves[:MOVES_MAX]),
    }  # fmt: skip


def _per_bucket(parts: Iterable[Part], length_s: float, buckets: int) -> list[float]:
    """How many nodes were stranded on the average of each bucket."""
    step_s = length_s / buckets
    found = [0.0] * buckets
    for _, begin, end in parts:
        for bucket in range(int(begin / step_s), min(int(end / step_s), buckets - 1) + 1):
            low, high = max(begin, bucket * step_s), min(end, (bucket + 1) * step_s)
            found[bucket] += max(high - low, 0.0) / step_s
    return [round(one, 4) for one in found]


def _text(asked: JsonObject, key: str) -> str:
    value = asked.get(key)
    if isinstance(value, str) and value:
        return value
    raise WrongUse(f"what if: {key} is missing")


def _moment(asked: JsonObject, key: str) -> datetime:
    try:
        return parse_iso(_text(asked, key))
    except ValueError as error:
        raise WrongUse(f"what if: {key} should be a zoned time") from error
