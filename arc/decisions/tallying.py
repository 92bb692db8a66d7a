"""Counts what a node's events say: ends, waits, claims, money and time; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, MutableMapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from agent_node.clock import parse_iso
from agent_node.strict import JsonObject, JsonValue

UNIT = 10**6  # every count is kept in millionths, as whole numbers: sums of money never drift
WAITING_MAX = 20_000  # tasks of one node whose READY was heard and whose claim was not yet
COST_MAX = Decimal(10**6)
COST_TEXT_MAX = 40
SECONDS_MAX = 10**8
# Upper bounds of the buckets that waits are counted in, in seconds; the last one is endless.
WAITS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400,
           43200, 86400)  # fmt: skip
ENDLESS = "+Inf"
# A kind that is not in here is counted as `other`: a node may not make rows without end.
KINDS = frozenset({
    "timeout", "crash", "rate_limit", "invalid_output", "auth_failure", "budget_exceeded",
    "cancelled", "stalled",
})  # fmt: skip
OTHER = "other"

Labels = tuple[tuple[str, str], ...]
Tally = Counter[tuple[str, Labels]]

WORDS_MAX = 40  # types, and models, of one node that are told apart; the rest is `other`
Words = dict[str, set[str]]

_is_model = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,63}").fullmatch
_is_word = re.compile(r"[a-z][a-z0-9_-]{0,63}").fullmatch
_COUNTED = {
    "task_added": "tasks_added_total",
    "task_arrived": "tasks_arrived_total",
    "task_moved": "tasks_left_total",
    "task_cancelled": "tasks_cancelled_total",
    "task_parked": "tasks_parked_total",
    "task_retrying": "tasks_retried_total",
    "task_interrupted": "tasks_interrupted_total",
}
_OF_AN_AGENT = {
    "task_claimed": "agent_claims_total",
    "task_started": "agent_starts_total",
    "task_stalled": "agent_heartbeat_misses_total",
}
_DIED = "task_dead_lettered"
_CLAIMED_OR_ENDED = ("CLAIMED", "COMPLETED", "FAILED", "CANCELLED")
_ENDS = {"task_completed": "tasks_completed_total", "task_failed": "tasks_failed_total"}
# An attempt that ended so cost what it cost, although its task did not end well or badly by it.
CUT_SHORT = frozenset({"task_parked", "task_interrupted", "task_waiting", "task_cancelled"})


class Waited(NamedTuple):
    """How long a task has waited before the node that it was given to last."""

    ready_at: str  # as its giver had it; the same again: it was given in vain the last time
    before_s: float  # that giver
    whole_s: float


Gone = MutableMapping[str, Waited]  # by uid


def tally_events(
    node: str, events: Iterable[JsonObject], waiting: MutableMapping[str, datetime],
    words: Words | None = None, gone: Gone | None = None,
) -> Tally:  # fmt: skip
    """What these events of one node add to its counts.

    `waiting` is what is remembered between two pages: since when a task is READY. A wait whose
    beginning was not heard is not counted. So is `words`: which types and models of this node have
    a label of their own, as many as may have one. `gone` is what `note_given` remembers.
    """
    found: Tally = Counter()
    known = {} if words is None else words
    for event in events:
        _count(found, node, event, known)
        _note_wait(found, node, event, waiting, {} if gone is None else gone)
    return found


def note_given(gone: Gone, tasks: Iterable[JsonObject], now: datetime) -> None:
    """These tasks are about to be given to another node: so long they have waited by then.

    Who gives one in vain, or again, counts each second of it once.
    """
    for task in tasks:
        uid, ready_at = str(task.get("uid")), str(task.get("ready_at"))
        try:
            here_s = max((now - parse_iso(ready_at)).total_seconds(), 0.0)
        except (ValueError, OverflowError):
            continue  # it has not been READY anywhere
        last = gone.pop(uid, None)
        before_s = 0.0
        if last is not None:
            before_s = last.before_s if last.ready_at == ready_at else last.whole_s
        while len(gone) >= WAITING_MAX:
            gone.pop(next(iter(gone)))
        gone[uid] = Waited(ready_at, before_s, before_s + here_s)


def _count(found: Tally, node: str, event: JsonObject, words: Words) -> None:
    name = str(event.get("event"))
    if name in _COUNTED:
        found[_COUNTED[name], (("node", node),)] += UNIT
    said = event.get("data")
    data = said if isinstance(said, dict) else {}
    if name == _DIED:
        reason = ("reason", _kind(data.get("error_kind")))
        found["tasks_dead_lettered_total", (("node", node), reason)] += UNIT
    agent = (("agent", _word(event.get("by"))), ("node", node))
    if name in _OF_AN_AGENT:
        found[_OF_AN_AGENT[name], agent] += UNIT
    if not (name in _ENDS or name in CUT_SHORT) or event.get("n") is None:
        return  # a person's word on a task that no attempt ended
    if name == "task_failed":
        kind = "crash" if not data.get("error_kind") else _kind(data["error_kind"])
        found[_ENDS[name], (*agent, ("reason", kind))] += UNIT
    elif name in _ENDS:
        found[_ENDS[name], (*agent, *_labels(words, type=event.get("type")))] += UNIT
    labels = _labels(words, type=event.get("type"), model=data.get("model"))
    cost = millionths(data.get("cost_usd")) or 0
    found["task_cost_usd_total", tuple(sorted((*agent, *labels)))] += cost
    found["agent_busy_seconds_total", agent] += _seconds(data.get("duration_s"))


def _labels(words: Words, **said: JsonValue) -> Labels:
    """A label for what is known; nothing for what is not, and `other` for one too many."""
    return tuple((name, _of_few(words.setdefault(name, set()), value))
                 for name, value in said.items() if isinstance(value, str) and value)  # fmt: skip


def _of_few(known: set[str], value: str) -> str:
    if value not in known and (len(known) >= WORDS_MAX or not _is_model(value)):
        return OTHER
    known.add(value)
    return value


def _kind(said: JsonValue) -> str:
    return said if isinstance(said, str) and said in KINDS else OTHER


def _note_wait(
    found: Tally, node: str, event: JsonObject, waiting: MutableMapping[str, datetime], gone: Gone
) -> None:
    uid, state = str(event.get("uid")), event.get("state")
    if state is None:
        return
    since = waiting.pop(uid, None)
    try:
        at = parse_iso(str(event.get("at")))
    except (ValueError, OverflowError):
        return
    if state == "READY":
        while len(waiting) >= WAITING_MAX:
            waiting.pop(next(iter(waiting)))
        waiting[uid] = at
        return
    if state not in _CLAIMED_OR_ENDED:
        return
    before = gone.pop(uid, None)
    if state == "CLAIMED" and since is not None:
        seconds = max((at - since).total_seconds(), 0.0) + (before.whole_s if before else 0.0)
        labels = (("le", bucket_of(seconds)), ("node", node))
        found["task_queue_wait_seconds", labels] += UNIT
        found["task_queue_wait_seconds_sum", (("node", node),)] += int(seconds * UNIT)


def bucket_of(seconds: float) -> str:
    """The upper bound of the bucket that such a wait is counted in."""
    return next((f"{bound:g}" for bound in WAITS_S if seconds <= bound), ENDLESS)


def quantile(buckets: dict[str, int], share: float) -> float | None:
    """The wait that this share of all waits does not exceed, by straight lines within a bucket.

    None: there were none. What lies beyond the last bound is told as that bound.
    """
    total = sum(buckets.values())
    if not total:
        return None
    wanted, below, low = share * total, 0, 0.0
    for bound in WAITS_S:
        here = buckets.get(f"{bound:g}", 0)
        if here and below + here >= wanted:
            return low + (bound - low) * max(wanted - below, 0) / here
        below, low = below + here, float(bound)
    return float(WAITS_S[-1])


def _word(value: JsonValue) -> str:
    return value if isinstance(value, str) and _is_word(value) else OTHER


def millionths(value: JsonValue) -> int | None:
    """Money as a decimal string; None: it is none, or absurd."""
    if not isinstance(value, str) or len(value) > COST_TEXT_MAX:
        return None
    try:
        money = Decimal(value)
    except InvalidOperation:
        return None
    return int(money * UNIT) if money.is_finite() and 0 <= money <= COST_MAX else None


def _seconds(value: JsonValue) -> int:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0
    return int(value * UNIT) if 0 <= value <= SECONDS_MAX else 0


def tally_run(sensor: str, outcome: str, took_s: float, kept: Iterable[tuple[str, int]],
              moves: Iterable[tuple[str, str]]) -> Tally:  # fmt: skip
    """What one run of a sensor adds: (rule, count) of tasks kept, (why, outcome) of moves."""
    found: Tally = Counter()
    found["sensor_runs_total", (("outcome", outcome), ("sensor", sensor))] += UNIT
    found["sensor_seconds_total", (("sensor", sensor),)] += int(took_s * UNIT)
    for rule, count in kept:
        found["fleet_refusals_total", (("rule", rule), ("sensor", sensor))] += count * UNIT
    for why, how in moves:
        found["fleet_moves_total", (("outcome", how), ("why", why))] += UNIT
    return found


def tally_stranded(seconds: Iterable[tuple[str, float]]) -> Tally:
    """Stranded time by its cause, in minutes of a node."""
    found: Tally = Counter()
    for cause, more in seconds:
        found["fleet_stranded_node_minutes_total", (("cause", cause),)] += int(more / 60 * UNIT)
    return found
