"""`arc log` has what people did and why, and can be narrowed to what one looks for."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.errors import NodeUnreachable, OutcomeUnknown, StateBroken
from arc.running import CRASHED, _after_a_crash, run_hub
from sensors.bad_ends import log_bad_ends
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dead import dies
from tests.hub.cli.test_tasks import without_an_answer


def events(desk: Desk, *words: str) -> list[str]:
    return [one["event"] for one in desk.arc("log", "--json", *words).data["lines"]]


def last(desk: Desk) -> Any:
    return desk.arc("log", "--json").data["lines"][-1]


def test_every_word_of_a_person_is_there_with_who_and_why(desk: Desk) -> None:
    desk.arc("nodes", "pause", "iris", "--reason", "disk swap")
    assert last(desk)["fields"] == {"by": "human:ada", "reason": "disk swap"}
    assert "reason=disk swap" in desk.arc("log").out
    desk.arc("nodes", "suspend", "loom", "--until", "6h", "--reason", "moving")
    assert last(desk)["fields"]["until"] == "2026-03-10T09:45:00.000Z"
    desk.arc("pause", "--reason", "audit")
    assert last(desk)["fields"]["reason"] == "audit"


def doubts(desk: Desk) -> list[tuple[str, str, str]]:
    lines = desk.arc("log", "--event", "word_in_doubt", "--json").data["lines"]
    assert all(one["fields"]["by"] == "human:ada" for one in lines)
    assert all("it may have happened" in one["fields"]["because"] for one in lines)
    return [(one["fields"]["asked"], one["node"], one["fields"].get("uid", "")) for one in lines]


def test_a_word_whose_answer_was_lost_is_there(desk: Desk) -> None:
    """Seen to fail: the node was paused, and nothing in the log said that anybody had asked."""
    without_an_answer(desk, "loom", "pause")
    assert desk.arc("nodes", "pause", "loom", "--dry-run").code == 3
    assert doubts(desk) == []
    assert desk.arc("nodes", "pause", "loom").code == 3
    assert doubts(desk) == [("nodes.pause", "loom", "")]
    without_an_answer(desk, "iris", "add")
    added = desk.arc("tasks", "add", "deploy", "--to", "iris", "--json").envelope["error"]
    assert doubts(desk)[1:] == [("tasks.add", "iris", added["where"])]
    assert "deploy" not in desk.arc("log").out


def test_a_word_to_several_nodes_names_who_did_not_answer(desk: Desk) -> None:
    """Seen to fail: the log had the task of the node that answered, and of the other nothing."""
    desk.waits("iris", 1)
    desk.waits("loom", 2)
    without_an_answer(desk, "loom", "cancel")
    assert desk.arc("tasks", "cancel", uid(1), uid(2), "--yes").code == 3
    assert doubts(desk) == [("tasks.cancel", "loom", "")]
    assert events(desk, "--event", "task_cancelled") == ["task_cancelled"]


def test_a_log_that_takes_no_line_leaves_the_person_the_error_of_the_word(desk: Desk) -> None:
    """Guarded by the suppressed error: without it the journal's own trouble was all that was told.
    """
    without_an_answer(desk, "loom", "pause")
    with patch.object(desk.hub.journal.runs, "log", side_effect=StateBroken("the disk is full")):
        error = desk.arc("nodes", "pause", "loom", "--json").envelope["error"]
    assert error["code"] == "ARC-OUTCOME-UNKNOWN"


def test_what_was_done_to_tasks_by_hand_is_there(desk: Desk) -> None:
    """Seen to fail with any of the four lines left out."""
    desk.waits("iris", 1)
    desk.arc("tasks", "set", uid(1), "priority=2", "--reason", "urgent")
    desk.arc("tasks", "move", uid(1), "--to", "loom", "--reason", "quiet there")
    desk.arc("tasks", "cancel", uid(1), "--dry-run")
    desk.arc("tasks", "cancel", uid(1), "--reason", "not needed")
    desk.arc("tasks", "retry", uid(1))
    lines = desk.arc("log", "--json").data["lines"]
    assert [one["event"] for one in lines] == [
        "task_set", "task_moved", "task_cancelled", "task_retried"]
    assert {one["task"] for one in lines} == {uid(1)}
    assert lines[0]["fields"]["reason"] == "urgent"
    assert "quiet there" in lines[1]["fields"]["because"]


def test_a_task_that_was_cancelled_before_is_not_cancelled_again(desk: Desk) -> None:
    desk.waits("iris", 1)
    assert "changed  now CANCELLED" in desk.arc("tasks", "cancel", uid(1)).out
    again = desk.arc("tasks", "cancel", uid(1))
    assert (again.code, "already  now CANCELLED" in again.out) == (0, True)
    assert events(desk) == ["task_cancelled"]


def test_a_running_task_that_is_told_to_stop_is_there(desk: Desk) -> None:
    """Seen to fail: only what was cancelled at once was written down."""
    running = desk.runs("iris", 1)
    assert "stopping" in desk.arc("tasks", "cancel", running, "--reason", "wrong branch").out
    assert (events(desk), last(desk)["fields"]["reason"]) == (["task_cancelled"], "wrong branch")


def test_what_was_so_before_is_no_change_and_no_line(desk: Desk) -> None:
    """Seen to fail before: a second `set` or `retry` told of a change that nobody made."""
    desk.waits("iris", 1)
    assert "changed  now READY" in desk.arc("tasks", "set", uid(1), "-p", "1").out
    again = desk.arc("tasks", "set", uid(1), "-p", "1", "--reason", "urgent")
    assert (again.code, "already  now READY" in again.out) == (0, True)
    assert "already  now READY" in desk.arc("tasks", "retry", uid(1)).out
    assert events(desk) == ["task_set"]


def test_runs_that_did_nothing_are_left_out_unless_they_are_asked_for(desk: Desk) -> None:
    desk.arc("sensors", "run", "fleet-health")
    desk.arc("sensors", "run", "fleet-router")
    desk.arc("nodes", "pause", "iris")
    assert "run_skipped" not in events(desk)
    assert "run_skipped" in events(desk, "--all")
    assert events(desk, "--event", "run_skipped") == ["run_skipped"]
    assert events(desk, "--event", "node_paused") == ["node_paused"]
    assert set(events(desk, "--sensor", "fleet-router", "--all")) == {"run_skipped"}
    assert desk.both("log", "--sensor", "nix")[0].code == 5


def test_a_line_is_found_behind_many_runs_that_did_nothing(desk: Desk) -> None:
    desk.waits("inbox", 1, skills=["stacks-js"])
    for _ in range(6):
        desk.arc("sensors", "run", "fleet-router")
    assert events(desk, "--limit", "2") == ["run_done", "task_moved"]


async def test_a_hub_that_starts_and_ends_says_so(desk: Desk) -> None:
    noted: list[str] = []
    log = desk.hub.journal.runs.log

    def note(event: str, **more: Any) -> None:
        noted.append(event)
        log(event, **more)

    desk.hub.journal.runs.log = note  # type: ignore[method-assign]
    desk.hub.sensors = ()
    await run_hub(desk.hub, once=True)
    assert noted == ["hub_started", "hub_stopped"]


async def test_a_hub_that_comes_back_after_a_crash_says_so(desk: Desk) -> None:
    """Seen to fail: two lines alike, and nothing of how the first had ended."""
    runs = desk.hub.journal.runs
    runs.log("hub_started", fields={"term": 1, "once": False})
    runs.log("hub_stopped")
    assert _after_a_crash(desk.hub) == {}
    runs.log("hub_started", fields={"term": 1, "once": False})
    desk.minutes_pass(1)
    noted: list[JsonObject] = []

    def note(event: str, **more: Any) -> None:
        noted.append({"event": event, **more})

    desk.hub.sensors = ()
    with patch.object(runs, "log", note):
        await run_hub(desk.hub, once=True)
    assert [one["event"] for one in noted] == ["hub_started", "hub_stopped"]
    assert noted[0]["fields"] == {"term": 1, "once": True, "because": CRASHED}


async def test_a_hub_that_met_an_error_was_not_killed(desk: Desk) -> None:
    """Seen to fail: the next one said that it was, or that its machine had gone down."""
    (desk.hub.settings.state / "hub.sock").mkdir()
    desk.hub.sensors, noted = (), list[tuple[str, str]]()

    def note(event: str, fields: JsonObject, **more: Any) -> None:
        noted.append((event, str(fields.get("because"))))

    with patch.object(desk.hub.journal.runs, "log", note), pytest.raises(IsADirectoryError):
        await run_hub(desk.hub)
    assert [event for event, _ in noted] == ["hub_started", "hub_stopped"]
    assert "hub.sock" in noted[1][1]


def test_what_ended_badly_in_the_night_is_in_the_log_once(desk: Desk) -> None:
    """Seen to fail: of a task that ended dead there was no line, and of a graph neither."""
    desk.arc("sensors", "run", "fleet-health")  # from here on it is news
    desk.minutes_pass(1)
    dies(desk, "iris", 1)
    desk.minutes_pass(1)
    for _ in range(2):
        desk.arc("sensors", "run", "fleet-health")
    (line,) = desk.arc("log", "--event", "task_dead_lettered", "--json").data["lines"]
    assert (line["node"], line["task"], line["fields"]["kind"]) == ("iris", uid(1), "timeout")
    assert line["fields"]["ended_at"] < line["at"]
    assert "it broke" not in desk.arc("log").out
    dies(desk, "loom", *range(2, 60))
    desk.arc("sensors", "run", "fleet-health")
    (line,) = desk.arc("log", "--event", "tasks_dead_lettered", "--json").data["lines"]
    assert (line["node"], line["fields"]["count"]) == ("loom", 58)


def test_a_graph_that_failed_is_in_the_log(desk: Desk) -> None:
    failed: JsonObject = {"event": "dag_failed", "uid": uid(7), "because": "1 of 4"}
    log_bad_ends(desk.hub, "inbox", [(failed, desk.clock.now())])
    (line,) = desk.arc("log", "--event", "dag_failed", "--json").data["lines"]
    assert (line["node"], line["fields"]["dag"]) == ("inbox", uid(7))


def test_a_word_that_is_no_line_is_wrong_use_and_names_the_near_ones(desk: Desk) -> None:
    """Seen to fail: it said that nothing had happened, which of a slip is not known."""
    desk.arc("nodes", "pause", "iris")
    for words in ((), ("--since", "1h"), ("--follow",)):
        ran = desk.arc("log", "--event", "node_pausd", *words)
        assert (ran.code, ran.out) == (2, "")
        assert "no line 'node_pausd'; did you mean node_paused" in ran.err
        assert "docs/events.md" in ran.err
    of_a_node = desk.arc("log", "--event", "task_completed", "--json").envelope["error"]
    assert of_a_node["hint"].endswith("arc tasks show TASK")
    assert "no line 'zzz'\n" in desk.arc("log", "--event", "zzz").err


def test_a_line_that_has_not_happened_yet_is_no_slip(desk: Desk) -> None:
    ran = desk.arc("log", "--event", "node_fenced")
    assert (ran.code, ran.lines) == (0, ["nothing happened since then"])
    desk.arc("nodes", "pause", "iris")
    assert events(desk, "--event", "Node.Paused") == ["node_paused"]


def test_a_line_of_a_sensor_that_is_not_ours_is_known_once_there_is_one(desk: Desk) -> None:
    assert desk.arc("log", "--event", "theirs_began").code == 2
    desk.hub.journal.runs.log("theirs_began", sensor="theirs")
    assert events(desk, "--event", "theirs_began") == ["theirs_began"]
    desk.minutes_pass(60 * 48)
    assert events(desk, "--event", "theirs_began") == []


def test_runs_that_moved_nothing_have_their_moves_there(desk: Desk) -> None:
    """The nights when all is kept or in doubt are the ones that people look at.

    Seen to fail while only runs that had moved something were looked into.
    """
    desk.waits("inbox", 1, skills=["arc-research"])
    link = desk.hub.links["iris"]
    ask, said = link.ask, list[str]()

    async def asked(do: str, *words: Any, **more: Any) -> Any:
        said.append(do)
        if do == "hold" and said.count(do) == 1:
            raise NodeUnreachable("iris", "no route to it")
        result = await ask(do, *words, **more)
        if do == "hold" and said.count(do) == 2:
            raise OutcomeUnknown("iris", do, "no answer in time")
        return result

    link.ask = asked  # type: ignore[method-assign]
    for event in ("task_kept", "task_in_doubt"):
        desk.arc("sensors", "run", "fleet-router")
        assert events(desk, "--event", event) == [event]
    desk.nodes.machines["iris"].store.apply(c.SetNode("paused", "an upgrade"))
    desk.arc("sensors", "run", "fleet-router")
    assert set(events(desk, "--event", "task_settled")) == {"task_settled"}
    runs = desk.hub.journal.runs.last("fleet-router", 10)
    assert [run.report.acted for run in runs] == [0, 0, 0]
    lines = desk.arc("log", "--json").data["lines"]
    assert {(one["event"], one["task"]) for one in lines if one["task"]} == {
        ("task_kept", uid(1)), ("task_in_doubt", uid(1)), ("task_settled", uid(1))}  # fmt: skip
