"""When a task was ready, whichever of the queues that had it is heard first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent_node.strict import JsonObject
from arc.decisions.lives import lives_of
from arc.history import History
from tests.builders import START, uid
from tests.sensors_stage import Scene

TRAITS: JsonObject = {"priority": 5, "domain": "", "skills": [], "needs": []}
ORDERS = [("inbox", "iris"), ("iris", "inbox")]
MADE, MOVED = 10.0, 40.0  # seconds after the start: at the hub, and on the node it was given to
ADDED: JsonObject = {"event": "task_added", "uid": uid(1), "state": "READY"}
HELD_BACK: JsonObject = {"event": "task_added", "uid": uid(1), "state": "PENDING"}
LET_GO: JsonObject = {"event": "task_ready", "uid": uid(1), "was": "PENDING", "state": "READY"}
ARRIVED: JsonObject = {"event": "task_arrived", "uid": uid(1), "was": "HELD", "state": "READY",
                       "traits": TRAITS}  # fmt: skip


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    made.passes(3600)
    yield made
    made.close()


def hears(day: Scene, node: str, *events: tuple[JsonObject, float]) -> None:
    told = [(event, START + timedelta(seconds=at)) for event, at in events]
    day.hub.journal.history.hear(node, "L", lives_of(told, now=day.hub.clock.now()))


def ready_s(day: Scene) -> float:
    (one,) = History(day.hub.settings.state).arrivals(START, START + timedelta(days=1))
    assert one.ready_at is not None
    return (one.ready_at - START).total_seconds()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("traits", [TRAITS, None], ids=["told", "gone by then"])
def test_what_was_ready_as_it_came_was_not_blocked_because_it_was_moved(
    day: Scene, order: tuple[str, ...], traits: JsonObject | None
) -> None:
    """A queue that was heard when the task had left it says nothing of what the task is like."""
    added = {**ADDED, "traits": traits} if traits else ADDED
    for node in order:
        hears(day, node, (added, MADE) if node == "inbox" else (ARRIVED, MOVED))
    assert ready_s(day) == MADE


@pytest.mark.parametrize("order", ORDERS)
def test_what_was_held_back_was_ready_when_it_was_let_go(
    day: Scene, order: tuple[str, ...]
) -> None:
    for node in order:
        if node == "inbox":
            hears(day, node, (HELD_BACK, MADE), (LET_GO, 30.0))
        else:
            hears(day, node, (ARRIVED, MOVED))
    assert ready_s(day) == 30.0


def test_no_task_was_ready_before_it_came_whatever_the_clock_of_its_next_node_says(
    day: Scene,
) -> None:
    for node, said in (("iris", (ARRIVED, 0.0)), ("inbox", (ADDED, MADE))):
        hears(day, node, said)
    assert ready_s(day) == MADE
