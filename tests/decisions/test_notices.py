"""What people are told of, when a receiver is due, and how a notice reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arc.decisions.notices import (
    SHOWN_MAX,
    Happened,
    again_after_s,
    document_of,
    is_due,
    of_alert,
    of_events,
)

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def event(name: str, seq: int = 7, **more: Any) -> tuple[dict[str, Any], datetime]:
    return {"event": name, "seq": seq, "uid": "T1", **more}, NOW


@pytest.mark.parametrize(("name", "kind"), [
    ("task_dead_lettered", "dead_letter"), ("task_parked", "parked"),
    ("dag_failed", "graph_failed"),
])
def test_events_that_need_a_person_are_told(name: str, kind: str) -> None:
    (one,) = of_events("iris", "L", [event(name, because="timeout")])
    assert (one.kind, one.node, one.text) == (kind, "iris", "T1: timeout")


def test_a_graph_that_nothing_follows_is_told_with_the_reason() -> None:
    """Seen to fail: it reached nobody, for the graph itself had completed."""
    (one,) = of_events("iris", "L", [event("dag_not_followed", because="key k is taken")])
    assert (one.kind, one.text) == (
        "graph_not_followed",
        "T1: it completed, and the graph that follows was not submitted: key k is taken")


def test_a_graph_is_told_with_its_title_and_a_long_one_hides_nothing() -> None:
    said: dict[str, Any] = {"because": "1 of 3 tasks ended badly", "data": {"title": "n" * 500}}
    (one,) = of_events("iris", "L", [event("dag_failed", **said)])
    assert one.text == f'T1 "{"n" * 120}": 1 of 3 tasks ended badly'


@pytest.mark.parametrize("data", [None, [], {"title": None}, {"title": 7}, {}])
def test_a_graph_without_a_readable_title_is_told_by_its_id(data: Any) -> None:
    (one,) = of_events("iris", "L", [event("dag_failed", because="x", data=data)])
    assert one.text == "T1: x"


def test_other_events_are_not() -> None:
    some = [event(name) for name in ("task_completed", "task_failed", "task_added", "x")]
    assert list(of_events("iris", "L", [*some, ({}, NOW)])) == []


def test_a_second_death_is_another_thing_and_the_same_event_is_not() -> None:
    first, again, second = of_events("iris", "L", [
        event("task_dead_lettered", 7), event("task_dead_lettered", 7),
        event("task_dead_lettered", 9)])  # fmt: skip
    assert first.thing == again.thing != second.thing


def test_a_budget_that_holds_many_tasks_back_is_one_thing_a_day() -> None:
    some = [event("task_blocked", n, state="PENDING", because="over_budget: 0 left")
            for n in range(5)]  # fmt: skip
    assert len({one.thing for one in of_events("iris", "L", some)}) == 1


@pytest.mark.parametrize(("rule", "kind"), [
    ("node_answers", "node_silent"), ("dispatcher_runs", "node_silent"),
    ("work_succeeds", "failing"), ("disk_has_room", None),
])
def test_troubles_of_a_node_are_told_by_their_rule(rule: str, kind: str | None) -> None:
    found = of_alert("iris", rule, "iris: no answer", NOW)
    assert (found.kind if found else None) == kind
    assert found is None or found.text == "no answer"


def due(**more: Any) -> bool:
    given = {"waiting": 1, "told_at": None, "again_at": None, "at_most_s": 600.0, "now": NOW}
    return is_due(**{**given, **more})


@pytest.mark.parametrize(("told_s", "is_now"), [(599, False), (600, True), (-5, True)])
def test_between_two_notices_lies_the_time_that_was_asked_for(told_s: int, is_now: bool) -> None:
    assert due(told_at=NOW - timedelta(seconds=told_s)) is is_now
    assert due(told_at=NOW - timedelta(seconds=told_s), waiting=0) is False


def test_after_a_try_in_vain_it_waits_whatever_was_told_before() -> None:
    assert due() is True
    assert due(again_at=NOW + timedelta(seconds=1)) is False
    assert due(again_at=NOW, told_at=NOW) is True
    assert due(again_at=NOW + timedelta(days=1)) is True  # the clock was set back


def test_tries_come_ever_less_often_up_to_an_hour() -> None:
    assert [again_after_s(n) for n in (1, 2, 3, 7, 8, 1000)] == [30, 60, 120, 1920, 3600, 3600]


def test_a_notice_groups_by_kind_and_counts_what_it_does_not_name() -> None:
    many = [Happened("parked", f"p{n}", "iris", f"T{n}", NOW, n + 1) for n in range(SHOWN_MAX + 9)]
    some = [*many, Happened("failing", "f", "loom", "bad", NOW, 900)]
    said: Any = document_of(some, fleet="arc0", hub="arc", sink="ada", at="2026")
    assert [(one["kind"], one["count"], len(one["things"])) for one in said["groups"]] == [
        ("failing", 1, 1), ("parked", 59, 50)]
    assert (said["id"], said["count"]) == ("ada:1-900", 60)
    assert "arc0: 59 x parked" in said["text"]
    assert "  and 9 more" in said["text"]
