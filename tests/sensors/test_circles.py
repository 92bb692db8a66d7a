"""Tasks of several queues that wait for each other are named to a person, and nobody else is."""

from __future__ import annotations

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.operations.log import log
from arc.operations.status import status
from arc.operations.tasks_change import tasks_cancel
from tests.builders import uid
from tests.sensors.test_graphs_across import GRAPHS, born, day, state
from tests.sensors_stage import Scene, rows

__all__ = ["day"]


def waits(day: Scene, node: str, number: int, *needs: int) -> None:
    day.run(GRAPHS)  # they have met a hub: what they do not know may be anywhere
    task: JsonObject = {"uid": uid(number), "subject": "x", "depends_on": [
        {"uid": uid(one)} for one in needs]}  # fmt: skip
    (said,) = rows(day.asks(node, "add", tasks=[task])["results"])
    assert said["outcome"] == "added", said


def named(day: Scene) -> list[JsonObject]:
    return [one for one in rows(day.tells(status).data["needs_you"])
            if "in a circle" in str(one["text"])]  # fmt: skip


def ten_minutes(day: Scene) -> None:
    """In which nobody tells of an end."""
    day.run(GRAPHS)
    day.passes(601)
    day.run(GRAPHS)


def test_tasks_of_three_queues_that_wait_for_each_other_are_named_with_where_they_are(
    day: Scene,
) -> None:
    """Fails where each queue sees its own half alone: they wait for ever, and nobody knows."""
    waits(day, "iris", 1, 2)
    waits(day, "loom", 2, 3)
    waits(day, "forge", 3, 1)
    waits(day, "forge", 9, 3)
    ten_minutes(day)
    (line,) = named(day)
    circle = [f"{uid(1)} (iris)", f"{uid(2)} (loom)", f"{uid(3)} (forge)", uid(1)]
    assert " waits for ".join(circle) in str(line["text"])
    assert line["try"] == f"arc tasks cancel {uid(3)} --reason 'it waits for itself'"
    day.tells(tasks_cancel, tasks=[uid(3)], reason="it waits for itself")
    for _ in range(3):
        day.run(GRAPHS)
    assert [state(day, "iris", 1), state(day, "loom", 2)] == ["CANCELLED", "CANCELLED"]
    assert named(day) == []


def test_a_circle_of_which_nothing_is_left_is_named_no_more(day: Scene) -> None:
    """Fails where it is forgotten only by who looks for it: nobody looks where nobody waits."""
    waits(day, "iris", 1, 2)
    waits(day, "loom", 2, 1)
    ten_minutes(day)
    assert len(named(day)) == 1
    day.tells(tasks_cancel, tasks=[uid(1), uid(2)], reason="both")
    for _ in range(2):
        day.run(GRAPHS)
    assert named(day) == []


@pytest.mark.parametrize("silent", [("iris",), ("iris", "loom")])
def test_a_circle_whose_node_is_silent_for_one_run_is_named_as_before(
    day: Scene, silent: tuple[str, ...]
) -> None:
    """Fails where silence is taken for a word that the circle is broken, by one way or another."""
    waits(day, "iris", 1, 2)
    waits(day, "loom", 2, 1)
    ten_minutes(day)
    before = named(day)
    for name in silent:
        day.off(name)
    day.run(GRAPHS)
    assert named(day) == before
    for name in silent:
        day.fleet.machines[name].off = False
    day.run(GRAPHS)
    assert (named(day), len(before)) == (before, 1)
    assert len(rows(day.tells(log, event="tasks_wait_in_a_circle").data["lines"])) == 1


def test_a_task_that_waits_for_one_that_waits_for_work_is_in_no_circle(day: Scene) -> None:
    waits(day, "iris", 1, 2)
    waits(day, "loom", 2, 7)
    day.asks("loom", "add", tasks=[{"uid": uid(7), "subject": "work"}])
    ten_minutes(day)
    assert named(day) == []


def test_a_task_that_waits_for_its_child_which_waits_for_who_waits_for_it_is_found(
    day: Scene,
) -> None:
    """No field of the task says so: it asked while it ran."""
    day.asks("iris", "add", tasks=[{"uid": uid(1), "subject": "parent"}])
    waits(day, "loom", 2, 1)
    machine = day.fleet.machines["iris"]
    got = machine.store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    born(day, "iris", got, 7, waits=True, depends_on=[{"uid": uid(2)}])
    machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    assert state(day, "iris", 1) == "PENDING"
    ten_minutes(day)
    (line,) = named(day)
    assert "3 tasks wait for each other" in str(line["text"])


def test_a_child_that_nobody_waits_for_makes_no_circle(day: Scene) -> None:
    """Its parent waits for another one; what the lists make likely, the queue itself denies."""
    day.asks("iris", "add", tasks=[{"uid": uid(1), "subject": "parent"}])
    waits(day, "loom", 2, 1)
    machine = day.fleet.machines["iris"]
    got = machine.store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    born(day, "iris", got, 7, depends_on=[{"uid": uid(2)}])
    born(day, "iris", got, 8, waits=True)
    machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    ten_minutes(day)
    assert named(day) == []
