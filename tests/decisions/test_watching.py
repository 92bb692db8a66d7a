"""When so much failed that work is added for it: at the edges, and once in the time watched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from arc.decisions.watching import End, Failing, failing_of, parse_when, why_now

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
DAY = Failing(0.4, 5, 86_400)


def ends(well: int, bad: int, *, ago_s: float = 60, domain: str | None = "x",
         node: str = "iris") -> list[End]:  # fmt: skip
    at = NOW - timedelta(seconds=ago_s)
    return [End(node, domain, good, at) for good in [True] * well + [False] * bad]


@pytest.mark.parametrize(("well", "bad", "fires"), [
    (3, 2, True), (4, 1, False), (2, 2, False), (0, 5, True), (0, 0, False), (4, 2, False),
])
def test_the_share_and_the_number_are_met_exactly(well: int, bad: int, fires: bool) -> None:
    said = why_now(DAY, ends(well, bad), now=NOW, last=None, domain="x")
    assert (said is not None) is fires


def test_it_says_the_numbers() -> None:
    assert why_now(DAY, ends(3, 2), now=NOW, last=None, domain="x", node="iris") == (
        "2 of 5 attempts failed in domain x on iris within 1d")


def test_other_domains_and_other_nodes_do_not_count() -> None:
    some = [*ends(0, 9, domain="y"), *ends(0, 9, domain=None), *ends(0, 9, node="loom")]
    assert why_now(DAY, some, now=NOW, last=None, domain="x", node="iris") is None
    assert why_now(DAY, some, now=NOW, last=None) is not None


@pytest.mark.parametrize(("ago_s", "fires"), [(86_399, True), (86_400, False), (-1, False)])
def test_what_lies_outside_the_window_does_not_count(ago_s: float, fires: bool) -> None:
    assert (why_now(DAY, ends(0, 5, ago_s=ago_s), now=NOW, last=None) is not None) is fires


def test_within_one_window_it_is_added_once() -> None:
    """Run once without the first look at `last`: it fired at every round."""
    last = NOW - timedelta(seconds=86_399)
    assert why_now(DAY, ends(0, 9), now=NOW, last=last) is None
    assert why_now(DAY, ends(0, 9), now=NOW, last=last - timedelta(seconds=1)) is not None


def test_a_clock_that_was_years_ahead_silences_no_rule() -> None:
    """Fails where a time that is yet to come counts as a moment ago."""
    assert why_now(DAY, ends(0, 9), now=NOW, last=NOW + timedelta(days=400)) is not None


def test_what_counted_once_does_not_count_for_the_next_window() -> None:
    hour = Failing(0.4, 5, 3600)
    last = NOW - timedelta(seconds=3600)
    assert why_now(hour, ends(0, 9, ago_s=3600), now=NOW, last=last) is None


@pytest.mark.parametrize(("text", "kept"), [
    ("failing: 40% of 5 in 1d", "failing 40% of 5 in 1d"),
    ("failing  40% of 5 in 24h", "failing 40% of 5 in 1d"),
])
def test_the_words_of_a_rule(text: str, kept: str) -> None:
    assert parse_when(text) == kept
    assert failing_of(kept) == DAY


@pytest.mark.parametrize("text", ["", "40% of 5 in 1d", "failing", "failing 40%", "failing 0% of 1",
                                  "failing 40% of 0 in 1d", "failing 40% of 5 in 0s", 5, None])
def test_words_that_are_no_rule(text: object) -> None:
    with pytest.raises(ValueError, match=r"should|needs"):
        parse_when(text)
