"""When work of a schedule is due: each time once, in a clock of its own zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.schedules import due, next_time, parse_cron, parse_zone, times_after

BERLIN = "Europe/Berlin"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


def between(cron: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    return list(takewhile(lambda at: at <= end, times_after(cron, zone, start)))


@pytest.mark.parametrize(("text", "says"), [
    ("61 * * * *", "has a minute that cron does not know"),
    ("* 24 * * *", "has a hour that cron does not know"),
    ("0 0 30 2 *", "has a day-of-month that cron does not know"),
    ("0 0 */29 2 MON#5", "names a time that never comes"),
    ("* * * *", "should be five fields"),
    ("* * * * * *", "should be five fields"),
    ("@daily", "should be five fields"),
    ("", "should be five fields"),
    ("0 " * 200, "should be five fields"),
    ("99999999999999999999 * * * *", "has a minute"),
    (5, "should be five fields"),
    (None, "should be five fields"),
])
def test_cron_nonsense_is_said_in_words(text: object, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("*", r"\*")):
        parse_cron(text)


@given(st.text(alphabet="0123456789*/,-#LWMON ", max_size=40))
def test_whatever_is_written_is_a_schedule_or_one_clear_fault(text: str) -> None:
    said, good = "", None
    try:
        good = parse_cron(text)
    except ValueError as error:
        said = str(error)
    if good is None:
        assert 10 < len(said) < 200
    else:
        assert next_time(good, "UTC", utc(2026, 1, 1)) is not None


@pytest.mark.parametrize("zone", ["Berlin", "../etc/passwd", "/etc/localtime", "", "America", 5,
                                  None, "x" * 300, "Europe/Berlin\0", "UTC+1é"])
def test_a_zone_that_is_none_is_refused(zone: object) -> None:
    with pytest.raises(ValueError, match="should be a time zone that is known here"):
        parse_zone(zone)


def test_monday_is_monday() -> None:
    assert next_time("0 9 * * 1", "UTC", utc(2026, 11, 18)) == utc(2026, 11, 23, 9)


def test_a_time_that_the_clock_shows_twice_comes_once() -> None:
    """25 October 2026: at three the clock in Berlin goes back to two."""
    day = between("30 2 * * *", BERLIN, utc(2026, 10, 24, 12), utc(2026, 10, 26))
    assert day == [utc(2026, 10, 25, 0, 30)]


def test_a_time_that_the_clock_skips_comes_when_it_goes_on() -> None:
    """29 March 2026: at two the clock in Berlin goes on to three."""
    day = between("30 2 * * *", BERLIN, utc(2026, 3, 28, 12), utc(2026, 3, 29, 12))
    assert day == [utc(2026, 3, 29, 1)]


def test_what_runs_every_hour_runs_through_both_hours_of_autumn() -> None:
    hours = between("0 * * * *", BERLIN, utc(2026, 10, 24, 23), utc(2026, 10, 25, 2))
    assert hours == [utc(2026, 10, 25, 0), utc(2026, 10, 25, 1), utc(2026, 10, 25, 2)]


@pytest.mark.parametrize(("cron", "times"), [
    ("*/20 2 * * *", [(1, 0)]),  # seen to fail: none came at all
    ("0 */2 * * *", [(1, 0), (2, 0)]),  # seen to fail: 02:00 came at no time
    ("30 2,3 * * *", [(1, 0), (1, 30)]),
    ("30 * * * *", [(0, 30), (1, 30), (2, 30)]),
    ("30 0-23 * * *", [(0, 30), (1, 30), (2, 30)]),  # every hour, however it is written
])
def test_whatever_a_clock_skips_comes_once_when_it_goes_on(
    cron: str, times: list[tuple[int, int]]
) -> None:
    day = between(cron, BERLIN, utc(2026, 3, 29), utc(2026, 3, 29, 2, 59))
    assert day == [utc(2026, 3, 29, *time) for time in times]


@pytest.mark.parametrize(("cron", "times"), [
    ("*/20 2 * * *", [(0, 0), (0, 20), (0, 40)]),
    ("0 */2 * * *", [(0, 0), (3, 0)]),  # seen to fail: 02:00 came twice, an hour apart
    ("30 2,3 * * *", [(0, 30), (2, 30)]),
    ("30 0-23 * * *", [(0, 30), (1, 30), (2, 30)]),  # seen to fail: 02:30 came once
])
def test_whatever_a_clock_shows_twice_comes_the_first_time(
    cron: str, times: list[tuple[int, int]]
) -> None:
    day = between(cron, BERLIN, utc(2026, 10, 24, 23, 59), utc(2026, 10, 25, 3, 1))
    assert day == [utc(2026, 10, 25, *time) for time in times]


@pytest.mark.parametrize(("cron", "since", "times"), [
    ("*/20 2 * * *", utc(2026, 10, 3, 12), [utc(2026, 10, 3, 15, 30), utc(2026, 10, 3, 15, 40)]),
    ("45 1 * * *", utc(2026, 4, 4, 12), [utc(2026, 4, 4, 14, 45)]),
])
def test_a_clock_that_is_changed_by_half_an_hour_is_one_as_well(
    cron: str, since: datetime, times: list[datetime]
) -> None:
    """On Lord Howe two o'clock becomes half past two in October, and half past one in April."""
    assert between(cron, "Australia/Lord_Howe", since, since + timedelta(hours=6)) == times


@pytest.mark.parametrize(("now", "at"), [
    (utc(2026, 3, 10, 8, 59, 59), None),
    (utc(2026, 3, 10, 9), utc(2026, 3, 10, 9)),
    (utc(2026, 3, 10, 9, 0, 30), utc(2026, 3, 10, 9)),
])
def test_a_time_is_due_from_its_very_second_on(now: datetime, at: datetime | None) -> None:
    found = due("0 9 * * *", "UTC", utc(2026, 3, 10, 8), now, catch_up=True)
    assert (found.at, found.missed, found.seen_to) == (at, 0, now)


def test_a_time_that_was_seen_is_not_due_again() -> None:
    nine = utc(2026, 3, 10, 9)
    assert due("0 9 * * *", "UTC", nine, nine + timedelta(hours=1), catch_up=True).at is None


def test_after_a_week_without_a_hub_only_the_newest_time_is_due() -> None:
    found = due("0 * * * *", "UTC", utc(2026, 3, 1, 0, 30), utc(2026, 3, 8, 0, 30), catch_up=True)
    assert found.at == utc(2026, 3, 8)
    assert found.missed >= 1


@pytest.mark.parametrize(("late_s", "comes"), [(0, True), (120, True), (121, False)])
def test_without_catching_up_a_time_is_due_for_two_minutes(late_s: int, comes: bool) -> None:
    nine = utc(2026, 3, 10, 9)
    found = due("0 9 * * *", "UTC", utc(2026, 3, 9, 10), nine + timedelta(seconds=late_s),
                catch_up=False)  # fmt: skip
    assert (found.at == nine) is comes
    assert found.missed == (0 if comes else 1)


def test_a_clock_that_was_years_ahead_holds_nothing_back() -> None:
    """Run once going on from `last` whatever it is: the schedule was silent until 2036."""
    now = utc(2026, 3, 10, 8, 59)
    found = due("0 9 * * *", "UTC", utc(2036, 1, 1), now, catch_up=True)
    assert (found.at, found.seen_to) == (None, now)
    nine = utc(2026, 3, 10, 9)
    assert due("0 9 * * *", "UTC", found.seen_to or now, nine, catch_up=True).at == nine


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001 - made UTC below
       st.integers(1, 3 * 86_400), st.lists(st.integers(1, 7200), max_size=40),
       st.sampled_from(["30 2 * * *", "*/15 * * * *", "0 9 * * 1-5", "0 */3 * * *"]))  # fmt: skip
def test_looked_at_often_or_seldom_no_time_is_due_twice_and_the_newest_never_lost(
    start: datetime, span: int, steps: list[int], cron: str,
) -> None:  # fmt: skip
    first = start.replace(tzinfo=UTC, microsecond=0)
    last, end = first, first + timedelta(seconds=span)
    now, fired = first, []
    for step in [*steps, span]:
        now = min(now + timedelta(seconds=step), end)
        found = due(cron, BERLIN, last, now, catch_up=True)
        fired += [found.at] if found.at else []
        last = found.seen_to or last
    there = between(cron, BERLIN, first, now)
    assert fired == sorted(set(fired))
    assert set(fired) <= set(there)
    assert not there or fired[-1:] == there[-1:]
