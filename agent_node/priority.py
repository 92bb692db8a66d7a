"""Decides which waiting task goes first: by its priority, its age, its deadline and its weight."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

# effective = base - age in minutes x boost - urgency - weight - heat; the lower one goes first.
# Of two tasks of one boost the order never changes with time, because both grow equally urgent.
# So each task has one number for ever, its *turn*, which is what it would be worth at the epoch:
#     turn = base - urgency - weight - heat + boost x the minute in which it arrived
#     effective at some minute = turn - boost x that minute
# and a queue keeps its tasks by (boost, turn). Boosts are rounded to a few classes, the *paces*, so
# that who looks for the first task of all compares no more than one task for each of them.
# Turns are whole thousandths of a point, paces whole hundredths of a point a minute, times whole
# milliseconds: 1 pace is a thousandth of a point in 6,000 ms.
POINT = 1000
GROWS_MS = 6000  # in which a turn of pace 1 grows by 1
PACES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
USUAL_PACE = 10  # 0.1 a minute: the least urgent task overtakes a fresh, most urgent one in 15 h
# Whoever grows more urgent than this is overdue: those go first, in the order in which they became
# so. A newcomer never is, so that no stream of newcomers keeps anybody waiting for ever.
OVERDUE = -200 * POINT
AGE_MAX_MS = 30 * 86_400_000  # of the age that a task brings along from where it was before
WEIGHT_MAX = 20  # points, for a task on the longest path of its graph
_HOUR_MS = 3_600_000
# Before a deadline the urgency doubles each time that half of what was left is gone.
URGENCIES = tuple((24 * _HOUR_MS >> step, 1 << step) for step in range(7))
URGENCY_MAX = URGENCIES[-1][1]
TIERS = ((10, "Critical"), (30, "High"), (60, "Normal"), (80, "Low"))
TIER_NAMES = (*(name for _, name in TIERS), "Background")


class Turn(NamedTuple):
    """A task's place among all others: comparable at any time, and never written anew by time."""

    pace: int
    turn: int


def class_of(boost: float | None) -> int:
    """The pace nearest to this boost, in points a minute; between two, the slower. None: usual."""
    if boost is None:
        return USUAL_PACE
    wanted = boost * 100
    above = bisect_left(PACES, wanted)
    if above == len(PACES):
        return PACES[-1]
    if above == 0:
        return PACES[0]
    low, high = PACES[above - 1], PACES[above]
    return low if wanted - low <= high - wanted else high


def base_of(priority: int, priority_100: int | None) -> int:
    """Where a task starts on the scale of 0 to 100: the middle of its P, or its finer word."""
    return priority * 10 - 5 if priority_100 is None else priority_100


def urgency_of(deadline_ms: int, now_ms: int) -> tuple[int, int | None]:
    """The points that a deadline gives by now, and when there will be more; None: never more."""
    left = deadline_ms - now_ms
    points = 0
    for before, worth in URGENCIES:
        if left > before:
            return points, deadline_ms - before
        points = worth
    return points, None


def standing(base: int, *, urgency: int = 0, weight: float = 0.0, heat: float | None = None) -> int:
    """What a task is worth before its age counts, in thousandths of a point."""
    drawn = max(0.0, min(weight, float(WEIGHT_MAX)))
    return (base - urgency) * POINT - round(drawn * POINT) - round((heat or 0.0) * POINT)


def arriving(
    stands: int, pace: int, *, arrived_ms: int, now_ms: int, to_come: int = 0
) -> int:
    """The turn of a task that comes here now and arrived then, perhaps elsewhere.

    The age that it brings counts for 30 days at most, and never makes it overdue by itself; nor
    does it leave room for the points of its deadline that are still `to_come` to make it overdue
    since before it came, ahead of those who were overdue by then.
    """
    arrived = max(arrived_ms, now_ms - AGE_MAX_MS)
    return max(turn_of(stands, pace, arrived), OVERDUE + 1 + to_come * POINT + grown(pace, now_ms))


def turn_of(stands: int, pace: int, arrived_ms: int) -> int:
    """The turn of a task that arrived at this moment."""
    return stands + grown(pace, max(arrived_ms, 0))


def grown(pace: int, now_ms: int) -> int:
    """What is to be taken from a turn of this pace to have its effective priority at `now_ms`."""
    return pace * now_ms // GROWS_MS


def arrived_of(turn: int, pace: int, stands: int) -> int:
    """When a task of this turn arrived, as nearly as its pace tells."""
    return (turn - stands) * GROWS_MS // pace


def effective(turn: Turn, now_ms: int) -> int:
    """The effective priority at this moment, in thousandths of a point; lower goes first."""
    return turn.turn - grown(turn.pace, now_ms)


def overdue_at(turn: Turn) -> int:
    """The millisecond from which on the task is overdue."""
    return (turn.turn - OVERDUE) * GROWS_MS // turn.pace


def key(turn: Turn, seq: int, now_ms: int) -> tuple[int, int, int, int]:
    """Sorts tasks at one moment: overdue ones as they became so, then by what they are worth."""
    late = overdue_at(turn)
    if late <= now_ms:
        return 0, late, turn.turn, seq
    return 1, effective(turn, now_ms), 0, seq


def tier(worth: int) -> str:
    """The name of the region of the scale where an effective priority lies."""
    points = worth / POINT
    return next((name for below, name in TIERS if points < below), TIER_NAMES[-1])


def shown(worth: int) -> float:
    """An effective priority in points, as people read it."""
    return round(worth / POINT, 1)
