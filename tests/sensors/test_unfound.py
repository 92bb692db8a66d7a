"""Who waits for a task that no queue has, or that nobody can hear of, is named to a person."""

from __future__ import annotations

import pytest

from agent_node.strict import JsonObject
from arc.operations.status import status
from arc.operations.tasks_change import tasks_cancel
from arc.operations.tasks_move import tasks_move
from tests.builders import uid
from tests.sensors.test_circles import ten_minutes, waits
from tests.sensors.test_graphs_across import (
    DAG,
    GRAPHS,
    ROUTER,
    a_graph,
    day,
    runs_it,
    state,
    submitted,
)
from tests.sensors_stage import Scene, rows

__all__ = ["day"]


def named(day: Scene, number: int) -> list[JsonObject]:
    return [one for one in rows(day.tells(status).data["needs_you"])
            if f"waits for {uid(number)}" in str(one["text"])]  # fmt: skip


def test_who_waits_for_a_task_that_nobody_has_is_named_after_two_looks(day: Scene) -> None:
    """Fails where "nobody has it" and "could not ask" are one answer: it waits in silence."""
    waits(day, "iris", 1, 404)
    ten_minutes(day)
    assert named(day, 404) == []
    ten_minutes(day)
    (line,) = named(day, 404)
    assert line["node"] == "iris"
    assert str(line["text"]).startswith(f"{uid(1)} waits for {uid(404)}, which no queue")
    assert line["try"] == f"arc tasks cancel {uid(1)} --reason 'nobody has {uid(404)}'"
    day.tells(tasks_cancel, tasks=[uid(1)], reason="nobody has it")
    day.run(GRAPHS)
    assert state(day, "iris", 1) == "CANCELLED"
    assert named(day, 404) == []


def test_a_task_that_came_after_all_is_called_lost_no_more(day: Scene) -> None:
    waits(day, "iris", 1, 404)
    for _ in range(2):
        ten_minutes(day)
    assert len(named(day, 404)) == 1
    day.asks("loom", "add", tasks=[{"uid": uid(404), "subject": "late"}])
    ten_minutes(day)
    assert named(day, 404) == []
    runs_it(day, "loom")
    day.run(GRAPHS)
    assert (state(day, "iris", 1), named(day, 404)) == ("READY", [])


@pytest.mark.parametrize("others", [False, True])
def test_a_waiter_that_is_silent_for_one_run_is_named_as_before(
    day: Scene, *, others: bool
) -> None:
    """Fails where its silence is taken for a word that it waits no more, by one way or another."""
    waits(day, "iris", 1, 404)
    if others:
        waits(day, "loom", 2, 405)
    for _ in range(2):
        ten_minutes(day)
    before = named(day, 404)
    day.off("iris")
    day.run(GRAPHS)
    assert named(day, 404) == before
    day.fleet.machines["iris"].off = False
    day.run(GRAPHS)
    assert (named(day, 404), len(before)) == (before, 1)


def test_while_a_queue_cannot_be_asked_nothing_is_called_lost(day: Scene) -> None:
    """It may lie there: the line says who has not been heard, and only after a while."""
    waits(day, "iris", 1, 404)
    day.off("forge")
    for _ in range(2):
        ten_minutes(day)
    (line,) = named(day, 404)
    assert "which is in no queue that can be asked" in str(line["text"])
    assert "forge was last heard 20m ago" in str(line["text"])
    assert line["try"] == "arc doctor --node forge"
    day.fleet.machines["forge"].off = False
    ten_minutes(day)
    assert named(day, 404) == []
    ten_minutes(day)
    assert "which no queue of the fleet has" in str(named(day, 404)[0]["text"])


def test_a_wait_for_what_lies_on_a_node_that_is_not_heard_is_told_once_for_the_node(
    day: Scene,
) -> None:
    """Fails where only the node's own silence is told: nobody reads who waits for it."""
    submitted(day, a_graph(("c", "a"), ("d", "b")))
    day.run(ROUTER)
    for number in (1, 2):
        day.tells(tasks_move, tasks=[uid(number)], to="forge", yes=True)
    assert {state(day, "forge", number) for number in (1, 2)} == {"READY"}
    waits(day, "iris", 7, 1)
    day.off("forge")
    ten_minutes(day)
    (line,) = named(day, 1)
    assert "which is there, and 1 other task with it" in str(line["text"])
    assert (line["node"], line["try"]) == ("forge", "arc doctor --node forge")
    day.fleet.machines["forge"].off = False
    day.run(GRAPHS)
    assert named(day, 1) == []


def test_a_graph_that_waits_for_a_member_which_nobody_has_any_more_is_named_whole(
    day: Scene,
) -> None:
    """To cancel what waits for that member alone would leave the graph open for ever."""
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    store = day.fleet.machines["iris"].store
    store._db.execute("DELETE FROM task WHERE uid = ?", (uid(1),))
    for _ in range(2):
        ten_minutes(day)
    (line,) = named(day, 1)
    assert str(line["text"]).startswith(f'graph {DAG} "a graph" waits for')
    assert line["try"] == f"arc dag cancel {DAG} --reason 'nobody has {uid(1)}'"
