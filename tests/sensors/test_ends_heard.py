"""What was heard to have ended on a node runs nowhere again, be it by a fence or by the router."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.operations.doubts import doubts_settle
from arc.operations.nodes_fence import nodes_fence
from arc.operations.status import status
from arc.operations.tasks import tasks_list
from arc.operations.tasks_change import tasks_cancel, tasks_retry
from arc.operations.why import why_task
from arc.sensor import Moved
from sensors.hearing import _is_end
from tests.builders import uid, xfer
from tests.sensors_stage import Scene, rows

HEALTH, REBALANCE, ROUTER = "fleet-health", "fleet-rebalance", "fleet-router"
Scenes = Callable[..., Scene]


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def routed(day: Scene, *numbers: int) -> list[str]:
    """Work of the hub's queue that went to iris; the run is written down as the hub would."""
    tasks = [{"uid": uid(n), "subject": "x", "skills": ["arc-research"]} for n in numbers]
    day.asks("inbox", "add", tasks=tasks)
    runs(day, ROUTER)
    assert day.waiting("iris") == len(numbers)
    return [uid(n) for n in numbers]


def runs(day: Scene, sensor: str) -> Any:
    report = day.run(sensor)
    day.hub.journal.runs.add(report, began=day.hub.clock.now(), because="interval")
    return report


def completes(
    day: Scene, node: str, *, result: Literal["completed", "failed"] = "completed"
) -> str:
    store = day.fleet.machines[node].store
    got = store.apply(c.Claim(node))
    assert isinstance(got, c.Claimed)
    store.apply(c.Started(got.task.uid, got.n, 42, 99, day.fleet.machines[node].clock.boot_id()))
    store.apply(c.Finish(got.task.uid, got.n, c.Result(result)))
    return got.task.uid


def fenced(day: Scene, node: str, **how: Any) -> list[tuple[object, object]]:
    """The outcome of each task, the first uid first."""
    day.off(node)
    args = {"yes_it_is_off": True, "reason": "burnt", **how}
    return [(one["outcome"], one["node"])
            for one in rows(day.tells(nodes_fence, node=node, **args).data, "tasks")]  # fmt: skip


def kept_copies(day: Scene, node: str) -> list[object]:
    return [one["ended"] for one in rows(day.asks(node, "moved"), "moved")]


def test_givers_are_told_the_ends_that_health_hears_and_each_once(day: Scene) -> None:
    """With `tell_heard` left out, a giver knows of an end only after the six-hour round."""
    routed(day, 1, 2)
    completes(day, "iris")
    assert runs(day, HEALTH).details["ends_told"] == 1
    assert sorted(map(str, kept_copies(day, "inbox"))) == ["COMPLETED", "None"]
    assert runs(day, HEALTH).details["ends_told"] == 0


def test_a_fence_runs_nothing_again_that_health_heard_to_have_ended(day: Scene) -> None:
    """The journal alone knows it here: the giver could not be told."""
    routed(day, 1, 2)
    done = completes(day, "iris")
    day.hub.journal._rows.write("DELETE FROM move")
    assert runs(day, HEALTH).details["ends_told"] == 0
    assert done == uid(1)
    assert fenced(day, "iris", dry_run=True) == [("ended", "iris"), ("reowned", "inbox")]
    assert fenced(day, "iris") == [("ended", "iris"), ("reowned", "inbox")]
    assert day.waiting("inbox") == 1


def test_a_fence_runs_nothing_again_that_a_list_showed_as_completed(day: Scene) -> None:
    """Seen to fail without the list's note: the hub listed it so, and owned it again."""
    routed(day, 1)
    completes(day, "iris")
    day.tells(tasks_list, states=["COMPLETED"])
    assert fenced(day, "iris") == [("ended", "iris")]


def test_what_ended_after_the_last_hearing_may_run_again_and_the_fence_says_since_when(
    day: Scene,
) -> None:
    routed(day, 1)
    runs(day, HEALTH)
    completes(day, "iris")
    day.off("iris")
    told = day.tells(nodes_fence, node="iris", yes_it_is_off=True)
    assert [one["outcome"] for one in rows(told.data, "tasks")] == ["reowned"]
    assert str(told.data["heard_at"]).startswith("2026-")


@pytest.mark.parametrize("way", ["failed", "retried"])
def test_what_may_run_again_there_has_not_ended(day: Scene, way: str) -> None:
    """Where every FAILED and CANCELLED counts as an end, a fence loses the task."""
    routed(day, 1)
    if way == "failed":
        completes(day, "iris", result="failed")
    else:
        day.asks("iris", "cancel", uid=uid(1), reason="no")
        runs(day, HEALTH)
        assert day.hub.journal.ends.of([uid(1)])[uid(1)].state == "CANCELLED"
        day.asks("iris", "retry", uid=uid(1), reason="yes")
    runs(day, HEALTH)
    assert day.hub.journal.ends.of([uid(1)]) == {}
    assert fenced(day, "iris") == [("reowned", "inbox")]


def test_an_attempt_that_failed_is_no_end_also_where_a_page_is_cut_behind_it() -> None:
    """What follows, a retry, stands on the next page, which may be read five minutes later."""
    failed: JsonObject = {"event": "task_failed", "state": "FAILED", "was": "RUNNING"}
    assert not _is_end(failed)
    assert _is_end({**failed, "was": "PARKED"})


def test_a_task_that_is_retried_through_the_hub_is_not_ended_from_then_on(day: Scene) -> None:
    """The next hearing may come after the machine has gone."""
    routed(day, 1)
    day.asks("iris", "cancel", uid=uid(1), reason="no")
    runs(day, HEALTH)
    day.tells(tasks_retry, tasks=[uid(1)], dry_run=True)
    assert day.hub.journal.ends.of([uid(1)])
    day.tells(tasks_retry, tasks=[uid(1)])
    assert fenced(day, "iris") == [("reowned", "inbox")]


def test_a_persons_word_that_a_task_runs_again_counts_more_than_its_heard_end(day: Scene) -> None:
    """Where the end is not forgotten, the router keeps what a person let run again."""
    routed(day, 1)
    completes(day, "iris")
    runs(day, HEALTH)
    assert fenced(day, "iris") == []
    day.tells(doubts_settle, tasks=[uid(1)], yes=True)
    assert day.waiting("inbox") == 1
    assert day.hub.journal.ends.of([uid(1)]) == {}


def left_over(day: Scene) -> str:
    """A copy waits in the hub's queue; the node whose work it is has completed the task."""
    task: JsonObject = {"uid": uid(1), "subject": "x", "skills": ["arc-research"]}
    day.asks("iris", "add", tasks=[task])
    completes(day, "iris")
    day.asks("inbox", "add", tasks=[task])
    assert day.waiting("inbox") == 1
    return uid(1)


def needs_you(day: Scene) -> list[JsonObject]:
    return [one for one in rows(day.tells(status).data, "needs_you") if one["node"] == "inbox"]


def test_a_copy_that_a_node_refuses_as_completed_is_kept_and_needs_a_person(day: Scene) -> None:
    """Without the hint taken, every run of the router tries again, and nobody is told."""
    task = left_over(day)
    first = runs(day, ROUTER)
    assert [(one.outcome, one.rule) for one in first.moves] == [("kept", "already_here")]
    second = runs(day, ROUTER)
    assert (second.decided, second.moves) == (0, ())
    assert [one.rule for one in second.decisions if one.uid] == ["not_ended_elsewhere"]
    (line,) = needs_you(day)
    assert f"{task} waits in the hub's queue: it is COMPLETED on iris since" in str(line["text"])
    assert line["try"] == f"arc why {task}"


def test_why_promises_no_move_of_it_and_says_what_to_type(day: Scene) -> None:
    task = left_over(day)
    assert day.tells(why_task, task=task).data["moves"] is not None
    runs(day, ROUTER)
    said = day.tells(why_task, task=task).data
    assert (said["moves"], said["verdict"]) == (None, "CHANGE")
    assert "not_ended_elsewhere: it is COMPLETED on iris since" in str(said["result"])
    assert said["ways"] == []
    by_hand = said["by_hand"]
    assert isinstance(by_hand, list)
    assert by_hand[0] == f"arc tasks cancel {task} --reason 'it has ended'"
    assert not any("--to iris" in str(one) for one in by_hand)
    day.tells(tasks_cancel, tasks=[task], reason="it has ended")
    assert day.waiting("inbox") == 0
    assert needs_you(day) == []


def test_a_node_that_refused_for_a_reason_that_stays_is_not_promised(day: Scene) -> None:
    """The end is not known, such as of a task that waits on both: why tells the refusal."""
    task = left_over(day)
    runs(day, ROUTER)
    day.hub.journal.ends.forget(task)
    said = day.tells(why_task, task=task).data
    assert said["moves"] is None
    assert "already_here: iris refused it at 2026-" in str(said["result"])


def test_a_copy_whose_end_was_heard_of_a_node_that_never_got_it_is_tried_once(day: Scene) -> None:
    """Anybody can say so; who really has it refuses it, and then it is left alone."""
    left_over(day)
    runs(day, HEALTH)
    report = runs(day, ROUTER)
    assert [(one.idle, one.rule) for one in report.moves] == [("iris", "already_here")]
    report = runs(day, ROUTER)
    assert (report.decided, report.moves) == (0, ())


def test_the_router_leaves_a_copy_alone_whose_end_was_heard_of_who_had_it_last(day: Scene) -> None:
    day.hub.journal.runs.add_moves((Moved(xfer(1), uid(1), "inbox", "iris", "moved"),))
    left_over(day)  # as where the hub's queue came from a backup
    runs(day, HEALTH)
    report = runs(day, ROUTER)
    assert (report.decided, report.moves) == (0, ())
