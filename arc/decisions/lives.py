"""Reads out of a node's events which tasks came there and how their attempts went; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent_node.strict import JsonObject, JsonValue
from agent_node.ulid import is_ulid

from .tallying import millionths

WORD_MAX = 64
WORDS_MAX = 64  # skills or needs of one task
N_MAX = 10**6  # attempts of one task
PRIORITY_MAX = 10
SECONDS_MAX = 10**8
AHEAD_S = 60.0  # so far a stamp may lie ahead of the hub's clock without being called a lie
_BRINGS = {"task_added": "added", "task_arrived": "arrived"}
_CLAIMED, _STARTED = "task_claimed", "task_started"
_OUTCOMES = {
    "task_completed": "completed", "task_failed": "failed", "task_interrupted": "interrupted",
    "task_cancelled": "cancelled", "task_parked": "parked", "task_waiting": "waiting",
}  # fmt: skip
_OVER = ("COMPLETED", "CANCELLED", "DEAD_LETTERED")
_ELSEWHERE = "task_ended_elsewhere"  # a giver's note: who has the task tells its end itself
READY, OVER, ANEW = "ready", "over", "anew"  # to what a task may turn


@dataclass(frozen=True, slots=True)
class Traits:
    """What a task is like, as its node told it. None: that was not told, or cannot be."""

    priority: int | None = None
    domain: str | None = None  # "": it has none
    skills: tuple[str, ...] | None = None
    needs: tuple[str, ...] | None = None
    pinned: bool | None = None
    expected_s: float | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Came:
    """A task came: it was made here, or a move brought it."""

    uid: str
    at: datetime
    how: str
    traits: Traits
    ready: bool = True  # False: it waits for other tasks, or for its time


@dataclass(frozen=True, slots=True)
class Claimed:
    """An agent took it."""

    uid: str
    n: int
    at: datetime
    agent: str
    traits: Traits


@dataclass(frozen=True, slots=True)
class Started:
    """Its program runs."""

    uid: str
    n: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt is over. `n` None: whichever is under way; the event does not say."""

    uid: str
    n: int | None
    at: datetime
    outcome: str
    error_kind: str = ""
    agent: str = ""
    domain: str | None = None
    cost: int | None = None  # in millionths of a dollar; None: it was not told
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Turned:
    """A task that was blocked is READY, one is over for good, or one that was over lives again."""

    uid: str
    at: datetime
    to: str


Step = Came | Claimed | Started | Ended | Turned


@dataclass(frozen=True)
class Lives:
    """What happened, in the node's own order; and what was not believed, by what was wrong."""

    steps: tuple[Step, ...] = ()
    unbelieved: Counter[str] = field(default_factory=Counter)


def lives_of(events: Iterable[tuple[JsonObject, datetime]], *, now: datetime) -> Lives:
    """The steps in these events, each of which stands with its moment by the hub's clock.

    A moment in the future becomes `now`; what cannot be read is left out, and both are counted.
    """
    wrong: Counter[str] = Counter()
    steps: list[Step] = []
    for event, at in events:
        name, turn = str(event.get("event")), _turn(event)
        tells = name in _BRINGS or name in _OUTCOMES or name in (_CLAIMED, _STARTED)
        if not tells and not turn:
            continue
        if at - now > timedelta(seconds=AHEAD_S):
            wrong["future"] += 1
        step = _step(name, event, min(at, now), wrong) if tells else None
        if step is not None:
            steps.append(step)
        uid = event.get("uid")
        if turn and isinstance(uid, str) and is_ulid(uid):
            steps.append(Turned(uid, min(at, now), turn))
    return Lives(tuple(steps), wrong)


def _turn(event: JsonObject) -> str:
    """What the event makes of the task itself, whatever becomes of an attempt; "": nothing."""
    was, state = event.get("was"), event.get("state")
    if event.get("event") == _ELSEWHERE:
        return ""
    if state in _OVER or (was, state) == ("PARKED", "FAILED"):
        return OVER
    if was in (*_OVER, "FAILED") and state is not None:
        return ANEW
    return READY if (was, state) == ("PENDING", "READY") else ""


def _step(name: str, event: JsonObject, at: datetime, wrong: Counter[str]) -> Step | None:
    uid, n = event.get("uid"), event.get("n")
    if not isinstance(uid, str) or not is_ulid(uid):
        wrong["uid"] += 1
        return None
    if name in _BRINGS:
        return Came(uid, at, _BRINGS[name], traits_of(event, wrong),
                    ready=event.get("state") != "PENDING")  # fmt: skip
    number = n if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= N_MAX else None
    if name in _OUTCOMES and n is None:
        return Ended(uid, None, at, _OUTCOMES[name])
    if number is None:
        wrong["attempt"] += 1
        return None
    if name == _CLAIMED:
        return Claimed(uid, number, at, _word(event.get("by")) or "", traits_of(event, wrong))
    if name == _STARTED:
        return Started(uid, number, at)
    return _ended(name, event, uid, number, at, wrong)


def _ended(
    name: str, event: JsonObject, uid: str, n: int, at: datetime, wrong: Counter[str]
) -> Ended:
    said = event.get("data")
    data = said if isinstance(said, dict) else {}
    cost = data.get("cost_usd")
    paid = None if cost is None else millionths(cost)
    if cost is not None and paid is None:
        wrong["cost"] += 1
    return Ended(
        uid, n, at, _OUTCOMES[name], _word(data.get("error_kind")) or "",
        agent=_word(event.get("by")) or "", domain=_word(event.get("domain")),
        cost=paid, duration_s=_seconds(data.get("duration_s"), wrong),
    )  # fmt: skip


def traits_of(event: JsonObject, wrong: Counter[str]) -> Traits:
    """What the event says of its task; nothing of a node that does not tell it."""
    said = event.get("traits")
    if not isinstance(said, dict):
        return Traits()
    priority, pinned = said.get("priority"), said.get("pinned")
    fits = type(priority) is int and 1 <= priority <= PRIORITY_MAX
    if not fits:
        wrong["priority"] += 1
    return Traits(
        priority=priority if isinstance(priority, int) and fits else None,
        domain=_word(said.get("domain") or ""), skills=_words(said.get("skills")),
        needs=_words(said.get("needs")), pinned=pinned if isinstance(pinned, bool) else None,
        expected_s=_seconds(said.get("expected_s"), wrong), source=_word(said.get("source")),
    )  # fmt: skip


def _word(value: JsonValue) -> str | None:
    return value[:WORD_MAX] if isinstance(value, str) else None


def _words(value: JsonValue) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(one[:WORD_MAX] for one in value[:WORDS_MAX] if isinstance(one, str))


def _seconds(value: JsonValue, wrong: Counter[str]) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) \
            or not 0 <= value <= SECONDS_MAX:  # fmt: skip
        wrong["seconds"] += 1
        return None
    return float(value)
