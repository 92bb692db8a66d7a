"""Plays a stretch of real history again with other limits, and lays both side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.limits import LIMITS
from arc.errors import NoHistory, WrongUse

from .engine import Run
from .history_source import Remembered, scene_of_history
from .ledger import Ended
from .policies import Policy, parse_policy
from .scene import MS, Job

if TYPE_CHECKING:
    from arc.history import History
    from arc.settings import FleetSettings

TASKS_MAX = 10_000  # of one replay, which then takes a few seconds; of more the newest are taken
WORK_MAX = 300_000  # nodes that the cycles of one replay look at: some seconds
BUCKETS, BUCKETS_MAX = 200, 2000
STRETCHES_MAX, MOVES_MAX = 5000, 2000
TRANSFER_S = 1.0


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
    odd = next((key for key in limits if key not in LIMITS), None)
    if odd is not None or any("," in value or "=" in value for value in limits.values()):
        raise WrongUse(f"what if: one may change {', '.join(LIMITS)}")
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
    `stranded_s`, `moves`, `mean_wait_s`, `p95_wait_s`, `stretches` by node, and `moved`. All three
    count stranded time as fleet-health does, look by look, and all three go as far as the replay
    that ends first: `compared_s` from the beginning on; later buckets are None. `asked_s` is the
    whole that was asked for, of which the first `left_out_s` were not played. Where the first two
    are far apart, this replay says little of the third. `cut` has a sentence for all that is
    missing. Bounded: twice `TASKS_MAX` tasks, `WORK_MAX` looks at nodes, `STRETCHES_MAX` stretches,
    `MOVES_MAX` moves.
    """
    if not 1 <= buckets <= BUCKETS_MAX or until <= since:
        raise WrongUse(f"what if: 1 to {BUCKETS_MAX} buckets of a stretch that ends after it began")
    past = scene_of_history(history, fleet, since, until, tasks_max=TASKS_MAX)
    if not past.scene.jobs:
        raise NoHistory(f"nothing is known to have come from {iso(since)} to {iso(until)}")
    own = policy_of(fleet, {}, fleet.policy)
    policy = replace(policy, look_s=own.look_s)  # by which stranded time is counted
    frame = _Frame(past, buckets, past.scene.measured_to_ms, [*past.doubts])
    if policy.passed_over:
        frame.cut.append(f"{policy.steal.policy} does not look at {', '.join(policy.passed_over)}")
    ended = [_played(one, frame) for one in (own, policy)]
    reality, as_it_is, other = (_real(history, frame), *(_simulated(one, frame) for one in ended))
    return {
        "since": round(past.since.timestamp() * 1000), "step_s": frame.step_s,
        "compared_s": frame.ends_s, "asked_s": (until - since).total_seconds(),
        "left_out_s": (past.since - since).total_seconds(),
        "tasks": len(past.scene.jobs), "policy": policy.name,
        "reality": reality, "as_it_is": as_it_is, "what_if": other,
        "cut": list[JsonValue](dict.fromkeys(frame.cut)),
    }  # fmt: skip


Part = tuple[str, float, float]  # a node, and from when to when it was stranded, in seconds


@dataclass
class _Frame:
    """What is laid side by side: the stretch in buckets, compared up to `ends_ms`."""

    past: Remembered
    buckets: int
    ends_ms: int
    cut: list[str]

    @property
    def ends_s(self) -> float:
        return self.ends_ms / MS

    @property
    def step_s(self) -> float:
        return self.past.scene.measured_to_ms / MS / self.buckets

    def after(self, moment: datetime) -> float:
        """Seconds from the beginning on."""
        return (moment - self.past.since).total_seconds()


def _played(policy: Policy, frame: _Frame) -> Ended:
    """One replay, no further than what is compared; where it ends before, no more is compared."""
    scene = replace(frame.past.scene, measured_to_ms=frame.ends_ms)
    run = Run(scene, policy, watched=True, work_max=WORK_MAX)
    ended = run.to_the_end()
    if run.worn_out and run.now_ms < frame.ends_ms:
        frame.ends_ms = run.now_ms
        at = iso(frame.past.since + timedelta(milliseconds=run.now_ms))
        frame.cut.append(f"{policy.name}: replayed up to {at} alone, so nothing later is compared: "
                         "so large a fleet takes too long")  # fmt: skip
    return ended


def _real(history: History, frame: _Frame) -> JsonObject:
    """From what the hub wrote down."""
    past = frame.past
    parts = [(one.node, max(frame.after(one.since), 0.0), frame.after(one.until))
             for one in history.stranded(past.since, past.until)]  # fmt: skip
    moves: list[JsonObject] = [
        {"at": round(one.at.timestamp() * 1000), "uid": one.uid, "from": one.busy, "to": one.idle,
         "why": one.why} for one in history.moves(past.since, past.until)
        if one.arrived and frame.after(one.at) < frame.ends_s
    ]  # fmt: skip
    began: dict[str, float] = {}
    for stint in history.stints(past.since, past.until):
        began.setdefault(stint.uid, frame.after(stint.started_at or stint.claimed_at))
    starts = [(job, began[job.name]) for job in past.scene.jobs if job.name in began]
    return _told(parts, moves, starts, frame)


def _simulated(ended: Ended, frame: _Frame) -> JsonObject:
    past = frame.past
    parts = [(one.node, one.since_ms / MS, one.until_ms / MS) for one in ended.stretches]
    names = {job.uid: job.name for job in past.scene.jobs}
    moves: list[JsonObject] = [
        {"at": round((past.since + timedelta(milliseconds=one.at_ms)).timestamp() * 1000),
         "uid": names[one.uid], "from": one.busy, "to": one.idle, "why": one.why}
        for one in ended.moves if one.at_ms / MS < frame.ends_s
    ]  # fmt: skip
    starts = [(job, ended.starts[job.uid][1] / MS) for job in past.scene.jobs
              if job.uid in ended.starts and ended.starts[job.uid][1] >= 0]  # fmt: skip
    return _told(parts, moves, starts, frame)


def _told(
    found: Sequence[Part], moves: Sequence[JsonObject], starts: Sequence[tuple[Job, float]],
    frame: _Frame,
) -> JsonObject:  # fmt: skip
    """`starts`: when jobs began. Counted is the wait of what came in the stretch and began in it:
    of what began later nobody knows how long it really waited.
    """
    parts = [(node, begin, min(end, frame.ends_s)) for node, begin, end in found
             if begin < frame.ends_s]  # fmt: skip
    if len(parts) > STRETCHES_MAX:
        frame.cut.append(f"only the first {STRETCHES_MAX:,} stranded stretches are listed")
    if len(moves) > MOVES_MAX:
        frame.cut.append(f"only the first {MOVES_MAX:,} moves are listed")
    stretches: dict[str, list[JsonValue]] = {}
    for node, begin, end in parts[:STRETCHES_MAX]:
        stretches.setdefault(node, []).append([round(begin, 3), round(end, 3)])
    waits = sorted(max(at_s - job.at_ms / MS, 0.0) for job, at_s in starts
                   if job.uid in frame.past.came and at_s < frame.ends_s)  # fmt: skip
    late = waits[max(math.ceil(0.95 * len(waits)) - 1, 0)] if waits else 0.0
    return {
        "stranded": list[JsonValue](_per_bucket(parts, frame)),
        "stranded_s": round(sum(end - begin for _, begin, end in parts), 3),
        "moves": len(moves), "mean_wait_s": round(fmean(waits), 3) if waits else 0.0,
        "p95_wait_s": round(late, 3), "waited": len(waits),
        "stretches": dict(sorted(stretches.items())),
        "moved": list[JsonValue](moves[:MOVES_MAX]),
    }  # fmt: skip


def _per_bucket(parts: Iterable[Part], frame: _Frame) -> list[float | None]:
    """How many nodes were stranded on the average of each bucket, or of that part of it that is
    compared; None: none of it is.
    """
    step_s, last = frame.step_s, frame.buckets - 1
    found = [0.0] * frame.buckets
    for _, begin, end in parts:
        for bucket in range(int(begin / step_s), min(int(end / step_s), last) + 1):
            low, high = max(begin, bucket * step_s), min(end, (bucket + 1) * step_s)
            found[bucket] += max(high - low, 0.0)
    lengths = [min(frame.ends_s - bucket * step_s, step_s) for bucket in range(frame.buckets)]
    return [round(some / length, 4) if length > 0 else None
            for some, length in zip(found, lengths, strict=True)]  # fmt: skip


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
