"""What a node answers is read as values, or it is an error that names the node and the field."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_node.spec import hash_of, spec_of
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import to_wire
from arc.asking import (
    read_added,
    read_changed,
    read_events,
    read_given,
    read_listed,
    read_reowned,
    read_shown,
)
from arc.errors import AnswerUnreadable
from arc.moved import Asked, read_moved
from tests.builders import a_task, uid, xfer

TASK = to_wire(a_task(1, body="b"))
NO: JsonObject = {"rule": "paused", "text": "an upgrade\x1b[2J" + "x" * 900}


def test_a_reason_is_made_safe_and_short_before_anybody_prints_it() -> None:
    result: JsonObject = {"results": [{"xfer": xfer(), "outcome": "refused", "because": NO}]}
    said = read_moved("iris", "hold", result, [Asked(xfer(), uid())])[xfer()]
    assert (said.rule, len(said.because)) == ("paused", 500)
    assert "\x1b" not in said.because


@pytest.mark.parametrize("weight", [20.001, -0.5, "13", True, [1]])
def test_a_weight_that_is_none_is_no_answer(weight: JsonValue) -> None:
    """Seen to fail where the hub hands on whatever stands there."""
    task = a_task(1)
    said: JsonObject = {"xfer": xfer(), "outcome": "escrowed", "task": to_wire(task),
                        "sha256": hash_of(spec_of(task))}  # fmt: skip
    plain = read_moved("iris", "escrow", {"results": [said]}, [Asked(xfer(), uid())])[xfer()]
    assert plain.weight == 0
    heavy: JsonObject = {**said, "weight": 13.334}
    read = read_moved("iris", "escrow", {"results": [heavy]}, [Asked(xfer(), uid())])
    assert read[xfer()].weight == 13.334
    odd: JsonObject = {**said, "weight": weight}
    with pytest.raises(AnswerUnreadable, match="weight"):
        read_moved("iris", "escrow", {"results": [odd]}, [Asked(xfer(), uid())])


def test_outcomes_may_come_in_any_order() -> None:
    asked = [Asked(xfer(n), uid(n)) for n in (1, 2)]
    results: JsonObject = {
        "results": [{"xfer": xfer(n), "outcome": "committed"} for n in (2, 1)],
    }
    assert list(read_moved("iris", "commit", results, asked)) == [xfer(2), xfer(1)]


def test_words_on_tasks_come_back_as_values() -> None:
    added = read_added("iris", {"results": [
        {"uid": uid(1), "outcome": "added"},
        {"uid": "", "outcome": "refused", "because": {"rule": "bad_task", "text": "no subject"}},
    ]})  # fmt: skip
    assert [(one.uid, one.outcome) for one in added] == [(uid(1), "added"), ("", "refused")]
    (changed,) = read_changed("iris", "set", {"results": [
        {"uid": uid(1), "outcome": "changed", "task": TASK},
    ]})  # fmt: skip
    assert (changed.task and changed.task.subject) == "work 1"


def test_what_was_asked_about_one_task_is_about_that_task() -> None:
    shown: JsonObject = {"task": TASK, "attempts": [], "moves": [], "events": []}
    assert read_shown("iris", uid(1), shown).task.body == "b"
    with pytest.raises(AnswerUnreadable, match=f"it is about {uid(1)}"):
        read_shown("iris", uid(2), shown)
    with pytest.raises(AnswerUnreadable, match="not about the tasks"):
        read_reowned("iris", "bar", {"results": [{"uid": uid(1), "outcome": "barred"}]}, [uid(2)])


GARBAGE: JsonObject = {
    "tasks": 1, "results": [7], "moved": {}, "doubts": None, "events": [{"seq": "x"}],
    "task": "it", "next": 1,
}  # fmt: skip
READERS: dict[str, Callable[[JsonObject], object]] = {
    "add": lambda result: read_added("iris", result),
    "set": lambda result: read_changed("iris", "set", result),
    "list": lambda result: read_listed("iris", result),
    "show": lambda result: read_shown("iris", uid(), result),
    "events": lambda result: read_events("iris", result),
    "moved": lambda result: read_given("iris", result),
    "bar": lambda result: read_reowned("iris", "bar", result, [uid()]),
    "hold": lambda result: read_moved("iris", "hold", result, [Asked(xfer(), uid())]),
}


@pytest.mark.parametrize("do", READERS)
@pytest.mark.parametrize("result", [GARBAGE, {}], ids=["garbage", "nothing"])
def test_garbage_is_an_error_that_names_the_node_and_what_was_asked(
    do: str, result: JsonObject
) -> None:
    with pytest.raises(AnswerUnreadable, match=f"iris: its answer to {do} cannot be read"):
        READERS[do](result)
