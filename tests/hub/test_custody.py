"""Whose word on a task counts: whoever had it last, unless such a one could contradict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node.strict import JsonObject
from arc.custody import PARENTS_MAX, Fences, believed, last_holder, whose_else, without_strangers
from arc.decisions.outbox import JoinHeard
from arc.errors import NodeRefused
from arc.journal_ends import TaskEnd
from arc.looking import look
from arc.sensor import Moved
from tests.builders import uid, xfer
from tests.sensors_stage import Scene
from tests.threats.test_lying_nodes import LyingLink

TASK = uid(1)
MOVES = (
    Moved(xfer(1), TASK, "iris", "loom", "moved", idle_incarnation="L1"),
    Moved(xfer(2), TASK, "loom", "spark", "moved", idle_incarnation="S1"),
)


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def moved(day: Scene) -> None:
    day.hub.journal.runs.add_moves(MOVES)


def contradicts(day: Scene, node: str, *, once: bool = False) -> str:
    """Who keeps the word of this node on the task from being believed."""

    async def story() -> str:
        return await whose_else(await look(day.hub), TASK, node, once=once)

    return day._do(story())


@pytest.mark.parametrize(("fences", "holder"), [
    (set(), "spark"),
    ({("spark", "S2"), ("loom", "L1")}, "spark"),
    ({("spark", "S1")}, "loom"),
    ({("spark", "S1"), ("loom", "L1")}, "iris"),
])  # fmt: skip
def test_the_last_has_it_whose_life_was_not_declared_over(fences: Fences, holder: str) -> None:
    assert last_holder(MOVES, frozenset(fences)) == holder


def test_where_a_move_names_no_life_a_fence_of_any_counts() -> None:
    moves = (Moved(xfer(1), TASK, "iris", "loom", "moved"),)
    assert last_holder(moves, frozenset({("loom", "L9")})) == "iris"
    assert last_holder((), frozenset({("loom", "L9")})) is None


def test_who_was_given_it_last_is_believed_and_contradicts_the_others_by_being_away(
    day: Scene,
) -> None:
    moved(day)
    day.off("spark")
    assert contradicts(day, "spark") == ""
    assert contradicts(day, "iris") == "spark, which had it last and is away"
    assert contradicts(day, "iris", once=True) == "", "it had it at some time"
    assert contradicts(day, "forge", once=True) == "spark, which had it last and is away"


@pytest.mark.parametrize(("state", "by"), [("READY", "loom"), ("COMPLETED", "loom"), ("MOVED", ""),
                                           ("HELD", "")])  # fmt: skip
def test_where_it_lives_or_ended_contradicts_and_what_went_on_or_is_to_come_does_not(
    day: Scene, state: str, by: str
) -> None:
    day.asks("loom", "add", tasks=[{"uid": TASK, "subject": "a"}])

    def lie(do: str, asked: JsonObject, result: JsonObject) -> JsonObject:
        task = result.get("task")
        return {**result, "task": {**task, "state": state}} if isinstance(task, dict) else result

    day.hub.links["loom"] = LyingLink(day.hub.links["loom"], lie)
    assert contradicts(day, "iris") == by


def test_an_error_of_whoever_had_it_last_is_no_absence(day: Scene) -> None:
    """Seen to fail: a disk that failed under the task's own node let any other one end it."""

    def fail(do: str, asked: JsonObject, result: JsonObject) -> JsonObject:
        if do == "show":
            raise NodeRefused("spark", "disk_broken", "what is on the disk is not known")
        return result

    moved(day)
    day.asks("spark", "add", tasks=[{"uid": TASK, "subject": "a"}])
    day.hub.links["spark"] = LyingLink(day.hub.links["spark"], fail)
    assert contradicts(day, "forge") == "spark"
    assert contradicts(day, "forge", once=True) == "spark"
    assert contradicts(day, "spark") == ""


def test_a_queue_in_quarantine_contradicts_nobody(day: Scene) -> None:
    day.asks("loom", "add", tasks=[{"uid": TASK, "subject": "a"}])
    assert contradicts(day, "iris") == "loom"
    day.asks("loom", "quarantine", reason="a test")
    assert contradicts(day, "iris") == ""


def test_of_several_ends_that_of_the_last_holder_counts_then_those_of_earlier_ones(
    day: Scene,
) -> None:
    moved(day)
    ends = {node: TaskEnd(node, TASK, "COMPLETED", day.hub.clock.now())
            for node in ("forge", "iris", "spark")}  # fmt: skip
    assert without_strangers(day.hub, [*ends.values()]) == [ends["spark"]]
    assert without_strangers(day.hub, [ends["forge"], ends["iris"]]) == [ends["iris"]]
    assert without_strangers(day.hub, [ends["forge"]]) == [ends["forge"]]


def test_the_parents_of_one_nodes_births_are_asked_for_a_bounded_number_at_a_time(
    day: Scene,
) -> None:
    """A node that tells of thousands makes the hub ask every other one for each; the rest waits."""
    births = [JoinHeard(uid(2000 + n), uid(900), "iris", n, uid(3000 + n)) for n in range(250)]

    async def story() -> tuple[JoinHeard, ...]:
        return await believed(await look(day.hub), births)

    assert day._do(story()) == tuple(births[:PARENTS_MAX])
