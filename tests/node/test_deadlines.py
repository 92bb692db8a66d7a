"""A deadline ends nothing; that it has passed is told wherever somebody looks at its task."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent_node.clock import iso
from agent_node.deadlines import late_s, passed_already, say_late
from tests.builders import START

THEN = iso(START)


@pytest.mark.parametrize(
    ("task", "after_s", "late"),
    [
        ({}, 60, None),
        ({"deadline": THEN, "state": "READY"}, 0, None),
        ({"deadline": THEN, "state": "READY"}, 60, 60.0),
        ({"deadline": THEN, "state": "RUNNING", "completed_at": None}, 60, 60.0),
        ({"deadline": THEN, "state": "COMPLETED", "completed_at": THEN}, 60, None),
        ({"deadline": THEN, "completed_at": iso(START + timedelta(seconds=5))}, 60, 5.0),
        ({"deadline": THEN, "state": "MOVED"}, 60, None),
        ({"deadline": "soon", "state": "READY"}, 60, None),
    ],
)
def test_a_task_is_late_by_its_own_end_or_by_now(
    task: dict[str, object], after_s: float, late: float | None
) -> None:
    assert late_s(task, START + timedelta(seconds=after_s)) == late


def test_it_is_said_as_a_length_of_time() -> None:
    assert say_late(7500, ended=False) == "passed 2h 5m ago"
    assert say_late(5, ended=True) == "missed by 5s"


def test_who_adds_several_is_warned_once() -> None:
    tasks = [{"deadline": THEN}, {"deadline": THEN}, {}]
    assert [*passed_already(tasks, START)] == []
    (warning,) = passed_already(tasks, START + timedelta(seconds=1))
    assert warning.startswith("2 tasks with a deadline that has passed already")
