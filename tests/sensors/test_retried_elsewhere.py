"""What everybody on its node has failed is tried elsewhere once: over real stores, with the hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import commands as c
from arc.operations.plan import plan as arc_plan
from arc.operations.why import why_task
from arc.text.look import Look
from arc.text.plan import render_plan
from tests.builders import a_task, uid
from tests.sensors_stage import Scene, rows, within

REBALANCE = "fleet-rebalance"


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def has_one(day: Scene, node: str, number: int = 1, skill: str = "arc-research") -> None:
    task = a_task(number, skills=[skill], max_attempts=9, priority=2)
    day.fleet.machines[node].store.apply(c.Add((task,)))


def fails(day: Scene, node: str) -> None:
    """The node's only agent takes a task and fails it; then its wait is over."""
    machine = day.fleet.machines[node]
    got = machine.store.apply(c.Claim(node))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    ended = machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("failed", "crash")))
    assert ended.state == "RETRYING"
    day.passes(400)
    assert machine.store.apply(c.Wake()).readied == 1


def waits_on(day: Scene) -> list[str]:
    return [name for name in day.fleet.machines if day.waiting(name)]


def test_it_goes_to_another_node_once_and_stays_there_when_it_fails_again(day: Scene) -> None:
    """Fails when the hub never asks, or when loom's failure sends it on again."""
    has_one(day, "iris")
    fails(day, "iris")
    assert day.asks("iris", "status")["retried_count"] == 1
    report = day.run(REBALANCE)
    (move,) = report.moves
    assert (move.uid, move.busy, move.idle, move.outcome) == (uid(1), "iris", "loom", "moved")
    assert (move.why, move.rule) == ("retried", "retry_elsewhere")
    assert move.because.startswith("everybody on iris who can run it has failed it; loom also does")
    assert within(report.details, "requests", "candidates") == 1
    assert waits_on(day) == ["loom"]

    fails(day, "loom")
    assert day.asks("loom", "status")["retried_count"] == 0
    report = day.run(REBALANCE)
    assert (report.moves, report.acted) == ((), 0)
    assert "candidates" not in rows([report.details["requests"]])[0]
    assert waits_on(day) == ["loom"]
    tried = rows(day.asks("loom", "show", uid=uid(1)), "attempts")
    assert [one["node"] for one in tried] == ["iris", "loom"]


def test_a_task_that_never_failed_is_no_reason_to_ask(day: Scene) -> None:
    has_one(day, "iris")
    report = day.run(REBALANCE)
    assert report.details["requests"] == {"status": 4}
    assert waits_on(day) == ["iris"]


def test_what_nobody_else_may_do_stays_and_why_says_so(day: Scene) -> None:
    """Spark alone does its work: the reason is kept by the run, and told by plan and why."""
    has_one(day, "spark", skill="clarity")
    fails(day, "spark")
    report = day.run(REBALANCE)
    assert report.acted == 0
    (kept,) = [one for one in report.decisions if one.rule == "retry_elsewhere"]
    assert (kept.node, kept.uid) == ("spark", uid(1))
    assert "everybody on spark who can run it has failed it; may_do_this_work" in kept.because
    said = day.tells(why_task, task=uid(1)).data
    assert within(said, "kept", "rule") == "retry_elsewhere"
    assert "retry_elsewhere: everybody on spark" in str(said["result"])


def test_plan_and_why_tell_of_the_move_before_it_is_made(day: Scene) -> None:
    has_one(day, "iris")
    fails(day, "iris")
    planned = day.tells(arc_plan).data
    assert [one["to"] for one in rows(planned, "retries")] == ["loom"]
    text = render_plan(planned, Look())
    assert "0 drained tasks, 1 retried task, 0 routes planned" in text
    assert "everybody on iris who can run it has failed it" in text
    said = day.tells(why_task, task=uid(1)).data
    assert within(said, "moves", "to") == "loom"
    assert "the next cycle moves it to loom: retry_elsewhere: everybody" in str(said["result"])
    assert waits_on(day) == ["iris"]
