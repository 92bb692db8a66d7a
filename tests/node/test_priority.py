"""The order of tasks against the formula it stands for, and the bound on how long anyone waits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.priority import (
    OVERDUE,
    PACES,
    POINT,
    URGENCIES,
    Turn,
    arrived_of,
    arriving,
    base_of,
    class_of,
    effective,
    key,
    overdue_at,
    standing,
    tier,
    turn_of,
    urgency_of,
)

MINUTE, HOUR = 60_000, 3_600_000
NOW = 1_773_114_300_000
paces = st.sampled_from(PACES)
bases = st.integers(0, 100)
moments = st.integers(0, 4_000_000_000_000)
urgencies = st.sampled_from([0, *(worth for _, worth in URGENCIES)])
weights = st.floats(0, 20)
heats = st.floats(-100, 100)


def plainly(
    base: int, pace: int, *, arrived: int, now: int, urgency: int, weight: float, heat: float
) -> Fraction:
    """The formula as people read it, in exact points."""
    age_min = Fraction(now - arrived, MINUTE)
    return base - age_min * Fraction(pace, 100) - urgency - Fraction(weight) - Fraction(heat)


@given(bases, paces, moments, moments, urgencies, weights, heats)
def test_a_turn_says_at_any_time_what_the_formula_says(
    base: int, pace: int, arrived: int, now: int, urgency: int, weight: float, heat: float
) -> None:
    """To 4 thousandths of a point. Fails when age, urgency, weight or heat is left out."""
    stands = standing(base, urgency=urgency, weight=weight, heat=heat)
    turn = Turn(pace, turn_of(stands, pace, arrived))
    plain = plainly(
        base, pace, arrived=arrived, now=now, urgency=urgency, weight=weight, heat=heat
    )
    assert abs(Fraction(effective(turn, now), POINT) - plain) <= Fraction(4, POINT)


@given(paces, st.tuples(bases, moments), st.tuples(bases, moments), moments)
def test_of_two_tasks_of_one_pace_the_same_one_goes_first_for_ever(
    pace: int, one: tuple[int, int], other: tuple[int, int], now: int
) -> None:
    """What the index sorts by is what `key` sorts by, at every moment."""
    turns = [turn_of(standing(base), pace, arrived) for base, arrived in (one, other)]
    by_index = sorted([(turns[0], 1), (turns[1], 2)])
    by_key = sorted([(turns[0], 1), (turns[1], 2)], key=lambda t: key(Turn(pace, t[0]), t[1], now))
    assert by_index == by_key


tasks = st.tuples(bases, urgencies, weights, heats, paces)


@given(tasks, moments, tasks, st.integers(0, 10**12), st.integers(0, 10**9), moments)
def test_no_newcomer_goes_before_a_task_that_is_overdue(
    old: tuple[int, int, float, float, int],
    arrived: int,
    new: tuple[int, int, float, float, int],
    brought: int,
    later: int,
    since: int,
) -> None:
    """Whatever its boost, its deadline and the age it brings. Fails without the clamp of
    `arriving`, and without the first place of `key`.
    """
    waiting = Turn(old[4], turn_of(_stands(old), old[4], arrived))
    comes = overdue_at(waiting) + later
    stands = _stands(new)
    newcomer = Turn(new[4], arriving(stands, new[4], arrived_ms=comes - brought, now_ms=comes))
    now = comes + since
    assert key(waiting, 1, now) < key(newcomer, 2, now)


@given(tasks, moments)
def test_everybody_is_overdue_after_a_known_time(
    one: tuple[int, int, float, float, int], arrived: int
) -> None:
    """400 points at the pace of the task: 67 hours at the usual one, 28 days at the slowest."""
    turn = Turn(one[4], turn_of(_stands(one), one[4], arrived))
    waits_min = Fraction(overdue_at(turn) - arrived, MINUTE)
    assert 0 < waits_min <= Fraction(401 * 100, one[4]) + 1


def _stands(one: tuple[int, int, float, float, int]) -> int:
    return standing(one[0], urgency=one[1], weight=one[2], heat=one[3])


def test_a_slow_task_that_is_overdue_is_served_before_a_stream_of_fast_ones() -> None:
    """The one stream that the property below has to come upon: who comes is soon worth more than
    who waits, and one is served for each that comes.
    """
    slow = Turn(1, turn_of(standing(100), 1, NOW - 30_000 * MINUTE))
    fast, now = PACES[-1], max(NOW, overdue_at(slow))
    there = [(slow, 0)]
    for seq in (1, 2):
        come = arriving(standing(0), fast, arrived_ms=now, now_ms=now)
        there.append((Turn(fast, come), seq))
        now += 60 * MINUTE
    assert min(there, key=lambda one: key(one[0], one[1], now)) == (slow, 0)
    assert effective(there[1][0], now) < effective(slow, now), "without being overdue it would wait"


hasty = st.tuples(bases, urgencies, weights, st.just(0.0), st.sampled_from(PACES[-4:]))


@given(st.lists(st.tuples(st.one_of(hasty, hasty, tasks), st.integers(0, 30 * MINUTE)),
                min_size=1, max_size=60),
       st.integers(10, 60), st.integers(29_900, 30_000))  # fmt: skip
def test_under_any_stream_a_task_waits_no_longer_than_its_bound(
    stream: list[tuple[tuple[int, int, float, float, int], int]], every: int, waited: int
) -> None:
    """One is served every so many minutes; the slowest of all is about to be overdue, and most that
    come are in a hurry.

    So it waits until it is overdue, and then for those alone that were there before that. Seen to
    fail where overdue tasks do not go first.
    """
    first = Turn(1, turn_of(standing(100), 1, NOW - waited * MINUTE))
    there, now, ahead = [(first, 0)], NOW, None
    for seq, (one, gap) in enumerate(stream, start=1):
        now += gap
        if ahead is None and now >= overdue_at(first):
            ahead = len(there) - 1
        turn = arriving(_stands(one), one[4], arrived_ms=now - gap, now_ms=now)
        there.append((Turn(one[4], turn), seq))
        now += every * MINUTE
        best = min(there, key=lambda t: key(t[0], t[1], now))
        there.remove(best)
        if best[1] == 0:
            return
        if ahead is not None:
            ahead -= 1
            assert ahead >= 0, "one that came after it was overdue passed it"


@given(tasks, moments, st.lists(st.tuples(tasks, st.integers(-(10**10), 10**10),
                                          st.integers(0, 10**10)), max_size=20),
       st.integers(0, 10**10))  # fmt: skip
def test_what_was_blocked_passes_an_overdue_task_only_if_it_came_before_that(
    old: tuple[int, int, float, float, int],
    arrived: int,
    blocked: list[tuple[tuple[int, int, float, float, int], int, int]],
    later: int,
) -> None:
    """Tasks age while they wait for others. So many may become READY with a great age at once, and
    yet nobody passes but those that had come to the queue before this one was overdue: it waits
    for a number of tasks that is known then, and no more. Fails where what is released is given
    the age of its graph, however late it came.
    """
    waiting = Turn(old[4], turn_of(_stands(old), old[4], arrived))
    due = overdue_at(waiting)
    now = due + later
    for seq, (one, came, held) in enumerate(blocked, start=2):
        at = min(max(due + came, 0), now)
        brought = Turn(one[4], arriving(_stands(one), one[4], arrived_ms=at - held, now_ms=at))
        if key(brought, seq, now) < key(waiting, 1, now):
            assert at < due


@pytest.mark.parametrize(
    ("boost", "pace"),
    [(None, 10), (0.0, 1), (0.001, 1), (0.01, 1), (0.015, 1), (0.016, 2), (0.1, 10), (0.15, 10),
     (0.16, 20), (1.0, 100), (60.0, 5000), (99.0, 10_000), (100.0, 10_000)],
)  # fmt: skip
def test_a_boost_is_rounded_to_the_nearest_pace(boost: float | None, pace: int) -> None:
    assert class_of(boost) == pace


@given(st.floats(0, 100))
def test_no_pace_is_nearer_than_the_one_that_is_taken(boost: float) -> None:
    assert abs(class_of(boost) - boost * 100) == min(abs(pace - boost * 100) for pace in PACES)


@pytest.mark.parametrize(
    ("left_ms", "points", "more_in_ms"),
    [(24 * HOUR + 1, 0, 1), (24 * HOUR, 1, 12 * HOUR), (12 * HOUR + 1, 1, 1),
     (12 * HOUR, 2, 6 * HOUR),
     (6 * HOUR, 4, 3 * HOUR), (3 * HOUR, 8, 90 * MINUTE), (90 * MINUTE, 16, 45 * MINUTE),
     (45 * MINUTE, 32, 45 * MINUTE // 2), (45 * MINUTE // 2, 64, None), (0, 64, None),
     (-HOUR, 64, None)],
)  # fmt: skip
def test_urgency_doubles_each_time_half_of_what_was_left_is_gone(
    left_ms: int, points: int, more_in_ms: int | None
) -> None:
    deadline = NOW + left_ms
    more_at = None if more_in_ms is None else NOW + more_in_ms
    assert urgency_of(deadline, NOW) == (points, more_at)


@pytest.mark.parametrize(
    ("points", "name"),
    [(-300.0, "Critical"), (0.0, "Critical"), (9.999, "Critical"), (10.0, "High"),
     (29.999, "High"), (30.0, "Normal"), (59.999, "Normal"), (60.0, "Low"), (79.999, "Low"),
     (80.0, "Background"), (100.0, "Background")],
)  # fmt: skip
def test_tiers_meet_at_their_edges(points: float, name: str) -> None:
    assert tier(round(points * POINT)) == name


def test_the_middle_of_each_p_lies_in_its_tier() -> None:
    names = [tier(base_of(p, None) * POINT) for p in range(1, 11)]
    assert names == ["Critical", "High", "High", "Normal", "Normal", "Normal", "Low", "Low",
                     "Background", "Background"]  # fmt: skip


@given(bases, paces, moments)
def test_when_a_task_arrived_can_be_told_from_its_turn(base: int, pace: int, arrived: int) -> None:
    stands = standing(base)
    found = arrived_of(turn_of(stands, pace, arrived), pace, stands)
    assert 0 <= arrived - found <= 6000 // pace + 1


@given(tasks, moments, st.integers(0, 10**12))
def test_nobody_arrives_overdue(
    one: tuple[int, int, float, float, int], now: int, brought: int
) -> None:
    turn = arriving(_stands(one), one[4], arrived_ms=now - brought, now_ms=now)
    assert effective(Turn(one[4], turn), now) > OVERDUE


@pytest.mark.parametrize(("weight", "counts"), [(-5.0, 0), (20.0, 20), (25.0, 20), (1e9, 20)])
def test_the_weight_of_a_task_on_the_longest_path_is_twenty_points_at_most(
    weight: float, counts: int
) -> None:
    """However long a path somebody draws, a fresh task of it does not go before all others."""
    assert standing(50, weight=weight) == standing(50) - counts * POINT
