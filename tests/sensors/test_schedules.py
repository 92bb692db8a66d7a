"""Work that schedules, files and failures ask for, against the hub's real queue: each once."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_node.clock import iso
from agent_node.strict import JsonObject
from arc.adding import add_work, uid_for
from arc.journal_nodes import Ended
from arc.operations import dags_submit
from arc.polling import Stamps
from arc.schedule import Schedule
from arc.sensor import SensorReport
from arc.settings import FilesEntry, ScheduleEntry, WatchEntry
from sensors import watched_files
from sensors.fleet_schedules import FleetSchedules, wanted_of
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dead import dies

TASK: JsonObject = {"subject": "audit", "priority": 3, "skills": ["audit"]}
NIGHTLY = ScheduleEntry("nightly", "*/10 * * * *", "UTC", TASK)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


def a_desk(place: Path, **settings: Any) -> Desk:
    return Desk(place, names=("iris",), **settings)


@pytest.fixture
def desk(place: Path) -> Iterator[Desk]:
    made = a_desk(place, schedules=(NIGHTLY,))
    yield made
    made.close()


def look(desk: Desk) -> SensorReport:
    sensor = FleetSchedules(desk.hub.settings)
    return asyncio.run(sensor.run(desk.hub, desk.clock.now()))


def tasks(desk: Desk) -> list[dict[str, Any]]:
    return [desk.arc("tasks", "show", one["uid"], "--json").data["task"]
            for one in desk.arc("tasks", "list", "--json").data["tasks"]]  # fmt: skip


def to_the_next(desk: Desk) -> datetime:
    """On to the next ten minutes by the clock."""
    now = desk.clock.now()
    late = timedelta(minutes=now.minute % 10, seconds=now.second, microseconds=now.microsecond)
    following = now - late + timedelta(minutes=10)
    desk.minutes_pass((following - now).total_seconds() / 60 + 0.01)
    return following


def test_a_new_schedule_adds_nothing_for_times_before_it(desk: Desk) -> None:
    assert look(desk).outcome == "skipped"
    assert look(desk).outcome == "skipped"
    assert tasks(desk) == []


def test_a_time_adds_one_task_that_says_whose_it_is(desk: Desk) -> None:
    look(desk)
    at = to_the_next(desk)
    report = look(desk)
    assert (report.outcome, report.acted) == ("done", 1)
    (task,) = tasks(desk)
    assert task["key"] == f"cron:nightly:{iso(at)}"
    assert (task["origin"], task["source"]) == ("cron:nightly", "cron:nightly")
    assert (task["subject"], task["priority"], task["ref"]) == ("audit", 3, iso(at))
    assert look(desk).outcome == "skipped"
    assert len(tasks(desk)) == 1


def test_a_hub_that_died_before_it_wrote_the_time_down_adds_nothing_twice(desk: Desk) -> None:
    """Run once with a key of the moment instead of the time: there were two."""
    look(desk)
    at = to_the_next(desk)
    wanted = wanted_of(NIGHTLY, at, f"cron:nightly:{iso(at)}")
    first = asyncio.run(add_work(desk.hub, wanted))
    report = look(desk)
    assert report.details["added"][0]["outcome"] == "exists"  # type: ignore[index, call-overload]
    assert [one["uid"] for one in tasks(desk)] == [first.uid]


def test_a_schedule_whose_task_was_changed_meanwhile_still_adds_it_once(desk: Desk) -> None:
    """Seen to fail: it was told as refused, and asked for again in each round."""
    look(desk)
    at = to_the_next(desk)
    other = ScheduleEntry("nightly", NIGHTLY.cron, "UTC", {"subject": "other"})
    asyncio.run(add_work(desk.hub, wanted_of(other, at, f"cron:nightly:{iso(at)}")))
    report = look(desk)
    assert report.details["added"][0]["outcome"] == "exists"  # type: ignore[index, call-overload]
    assert (report.outcome, report.acted, look(desk).outcome) == ("done", 0, "skipped")
    assert [one["subject"] for one in tasks(desk)] == ["other"]


def test_a_night_without_a_hub_is_caught_up_with_one_task(desk: Desk) -> None:
    look(desk)
    desk.minutes_pass(8 * 60)
    report = look(desk)
    assert report.acted == 1
    assert "times passed without a hub" in report.summary
    assert len(tasks(desk)) == 1


def test_a_schedule_that_does_not_catch_up_waits_for_its_next_time(place: Path) -> None:
    desk = a_desk(place, schedules=(ScheduleEntry("x", "*/10 * * * *", task=TASK,
                                                  catch_up=False),))  # fmt: skip
    look(desk)
    to_the_next(desk)
    desk.minutes_pass(5)
    assert look(desk).acted == 0
    to_the_next(desk)
    assert look(desk).acted == 1
    desk.close()


def test_a_paused_fleet_is_given_nothing_until_it_is_resumed(desk: Desk) -> None:
    look(desk)
    desk.arc("pause", "--reason", "night")
    desk.minutes_pass(60)
    assert "paused by human:ada" in look(desk).summary
    desk.arc("resume")
    assert look(desk).acted == 1


def test_what_the_queue_refuses_is_asked_for_again_and_named(place: Path) -> None:
    bad = ScheduleEntry("x", "*/10 * * * *", task={**TASK, "not_a_state": 1, "deadline": "never"})
    desk = a_desk(place, schedules=(bad,))
    look(desk)
    to_the_next(desk)
    for _ in range(2):
        report = look(desk)
        assert report.outcome == "failed"
        assert "refused by the hub's own queue" in report.summary
    desk.close()


@pytest.mark.parametrize("ties", [
    {"depends_on": [{"uid": uid(1)}]}, {"context_refs": [f"task:{uid(1)}:output"]},
])  # fmt: skip
def test_what_would_wait_for_a_task_that_nobody_has_is_refused(
    place: Path, ties: JsonObject
) -> None:
    """Fails when schedules go past the look that `arc tasks add` takes: it waits for ever."""
    lone = ScheduleEntry("lone", "*/10 * * * *", "UTC", {**TASK, **ties})
    graph = ScheduleEntry("whole", "*/10 * * * *", "UTC", None, {"title": "T", "tasks": {
        "a": {"subject": "a", "after": [uid(1)]}}})  # fmt: skip
    desk = a_desk(place, schedules=(lone, graph))
    look(desk)
    to_the_next(desk)
    report = look(desk)
    assert report.acted == 0
    assert len(report.details["problems"]) == 2  # type: ignore[arg-type]
    for problem in cast("list[str]", report.details["problems"]):
        assert f"it would wait for ever for {uid(1)}" in problem
    for name in ("lone", "whole"):
        assert desk.arc("schedules", "run", name, "--dry-run").code == 1
    assert tasks(desk) == []
    desk.close()


def test_work_that_cannot_be_tied_is_refused_by_the_rule_that_a_queue_has_for_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: whatever was wrong, it was called a task that nobody knows."""
    desk.arc("dag", "submit", "-", stdin=json.dumps(
        {"id": uid(7), "title": "T", "tasks": {"a": {"subject": "a"}}}).encode())  # fmt: skip
    assert desk.arc("dag", "cancel", uid(7), "--reason", "x").code == 0

    def rule(graph: JsonObject | None = None, **task: Any) -> str:
        entry = ScheduleEntry("one", NIGHTLY.cron, "UTC", None if graph else {**TASK, **task},
                              graph)  # fmt: skip
        wanted = wanted_of(entry, desk.clock.now(), "cron:one:now")
        said = asyncio.run(add_work(desk.hub, wanted))
        assert said.outcome == "refused"
        return said.rule

    assert rule(depends_on=[{"uid": uid(1)}]) == "unknown_task"
    assert rule(dag=uid(7)) == "graph_ended"
    assert rule(dag=uid(8), parent=uid(3)) == "unknown_graph"
    monkeypatch.setattr(dags_submit, "OUTSIDE_MAX", 1)
    assert rule(depends_on=[{"uid": uid(1)}, {"uid": uid(2)}]) == "bad_task"
    assert rule({"title": "T", "tasks": {"a": {"subject": "a", "after": [uid(1), uid(2)]}}}
                ) == "bad_task"  # fmt: skip


def test_what_was_added_already_is_there_whatever_became_of_what_it_waited_for(
    desk: Desk,
) -> None:
    """A hub that died before it wrote the time down: fails when it is refused instead."""
    wanted = wanted_of(
        ScheduleEntry("nightly", NIGHTLY.cron, "UTC", {**TASK, "depends_on": [{"uid": uid(1)}]}),
        desk.clock.now(), "cron:nightly:then",
    )  # fmt: skip
    task = {"ref": wanted.ref, **(wanted.task or {}), "uid": uid_for(wanted), "key": wanted.key,
            "origin": wanted.origin, "source": wanted.origin}  # fmt: skip
    fields: JsonObject = {"tasks": [task], "by": wanted.origin, "whole": True}
    asyncio.run(desk.hub.inbox.ask("add", fields))
    again = asyncio.run(add_work(desk.hub, wanted))
    assert (again.uid, again.outcome) == (uid_for(wanted), "exists")


def test_run_adds_it_now_under_a_key_of_its_own(desk: Desk) -> None:
    dry = desk.arc("schedules", "run", "nightly", "--dry-run", "--json")
    assert (dry.code, dry.data["outcome"], dry.data["dry_run"]) == (0, "added", True)
    assert tasks(desk) == []
    for _ in range(2):
        ran = desk.arc("schedules", "run", "nightly")
        assert (ran.code, "added" in ran.out) == (0, True), ran
    assert len({one["key"] for one in tasks(desk)}) == 2
    assert {one["origin"] for one in tasks(desk)} == {"cron:nightly"}


def test_the_list_says_when_it_runs_next_and_what_it_did(desk: Desk) -> None:
    look(desk)
    at = to_the_next(desk)
    look(desk)
    text, data = desk.both("schedules")
    (one,) = data["sources"]
    assert (one["name"], one["kind"], one["last_at"]) == ("nightly", "cron", iso(at))
    assert one["next"] == iso(at + timedelta(minutes=10))
    assert "no hub runs, so nothing is added by itself" in text.out
    text, data = desk.both("schedules", "show", "nightly")
    assert len(data["times"]) == 5
    assert data["task"] == TASK


def test_a_name_that_is_none_is_exit_5_with_those_there_are(desk: Desk) -> None:
    for verb in ("show", "run"):
        ran = desk.arc("schedules", verb, "weekly")
        assert (ran.code, "fleet.yaml has: nightly" in ran.err) == (5, True)


def test_a_schedule_of_a_graph_submits_the_whole_of_it_once(place: Path) -> None:
    tasks_of: JsonObject = {"build": {"subject": "build"},
                            "test": {"subject": "test", "after": ["build"]}}  # fmt: skip
    graph: JsonObject = {"title": "nightly", "tasks": tasks_of}
    desk = a_desk(place, schedules=(ScheduleEntry("g", "*/10 * * * *", graph=graph),))
    look(desk)
    at = to_the_next(desk)
    entry = desk.hub.settings.schedules[0]
    first = asyncio.run(add_work(desk.hub, wanted_of(entry, at, f"cron:g:{iso(at)}")))
    assert first.outcome == "added", first
    report = look(desk)
    assert report.details["added"][0]["outcome"] == "exists"  # type: ignore[index, call-overload]
    assert {one["subject"]: one["state"] for one in tasks(desk)} == {
        "build": "READY", "test": "PENDING"}
    assert {one["origin"] for one in tasks(desk)} == {"cron:g"}
    dry = desk.arc("schedules", "run", "g", "--dry-run", "--json")
    assert (dry.code, dry.data["what"]) == (0, "graph")
    assert len(tasks(desk)) == 2
    desk.close()


def test_a_graph_that_was_changed_meanwhile_is_there_and_one_that_cannot_be_is_refused(
    place: Path,
) -> None:
    """Seen to fail: the changed one was told as refused in each round, and one whose task has a
    key that is taken as there, though nothing of it was.
    """
    graph: JsonObject = {"title": "nightly", "tasks": {"build": {"subject": "x", "key": "k"}}}
    desk = a_desk(place, schedules=(ScheduleEntry("g", "*/10 * * * *", graph=graph),))
    look(desk)
    at = to_the_next(desk)
    other = ScheduleEntry("g", "*/10 * * * *", graph={**graph, "title": "other"})
    asyncio.run(add_work(desk.hub, wanted_of(other, at, f"cron:g:{iso(at)}")))
    outcomes = []
    for _ in range(2):
        report = look(desk)
        outcomes.append(report.details["added"][0]["outcome"])  # type: ignore[index, call-overload]
        to_the_next(desk)
    assert outcomes == ["exists", "refused"]
    assert "a task of this key is here already" in report.summary
    assert len(tasks(desk)) == 1
    desk.close()


def test_without_any_the_list_says_so(place: Path) -> None:
    desk = a_desk(place)
    assert "no work comes by itself" in desk.arc("schedules").out
    assert [one.name for one in desk.hub.sensors if one.name == "fleet-schedules"] == []
    desk.close()


def test_a_hub_that_runs_says_as_of_when_it_knows_fleet_yaml(place: Path) -> None:
    """Seen to fail: in the moment before it read the file again it said that this had none."""
    desk = a_desk(place)
    desk.hub.schedule = cast("Schedule", SimpleNamespace(follow=lambda: None))
    desk.minutes_pass(5)
    asyncio.run(desk.hub.follow(desk.hub.settings))
    read = iso(desk.hub.clock.now())
    desk.minutes_pass(1)
    assert f"fleet.yaml, as the hub read it {read}, has no schedules" in desk.arc("schedules").out
    assert f"as the hub read it {read}: none" in desk.arc("schedules", "show", "nightly").err
    desk.hub.complaint = "line 3: unknown key 'shedules'"
    assert "cannot be obeyed: line 3" in desk.arc("schedules").lines[-1]
    desk.hub.schedule = None
    desk.close()


# --- Files ----------------------------------------------------------------------------------------


@pytest.fixture
def drop(place: Path) -> Path:
    folder = place / "drop"
    folder.mkdir()
    return folder


def watching(place: Path, drop: Path) -> Desk:
    return a_desk(place, watch_files=(FilesEntry("orders", f"{drop}/*.json", TASK),))


def test_a_new_file_asks_for_one_task_once_nobody_writes_it(place: Path, drop: Path) -> None:
    """Run once without the second look: half a file was taken for a whole one."""
    (drop / "old.json").write_text("old")
    desk = watching(place, drop)
    look(desk)
    file = drop / "new.json"
    file.write_text("ha")
    assert look(desk).acted == 0
    file.write_text("half of it")
    assert look(desk).acted == 0
    assert look(desk).acted == 1
    assert look(desk).acted == 0
    (task,) = tasks(desk)
    assert (task["ref"], task["origin"]) == (str(file), "file:orders")
    desk.close()


def test_a_touched_file_is_no_changed_one_and_a_changed_one_asks_again(
    place: Path, drop: Path
) -> None:
    file = drop / "a.json"
    file.write_text("one")
    desk = watching(place, drop)
    look(desk)
    os.utime(file, (1, 1))
    assert [look(desk).acted for _ in range(3)] == [0, 0, 0]
    file.write_text("two")
    assert [look(desk).acted for _ in range(3)] == [0, 1, 0]
    file.unlink()
    assert look(desk).acted == 0
    file.write_text("three")
    assert [look(desk).acted for _ in range(3)] == [0, 1, 0]
    assert len(tasks(desk)) == 2
    desk.close()


def test_a_file_that_comes_to_what_it_held_before_or_comes_back_asks_again(
    place: Path, drop: Path
) -> None:
    """Fails where an occasion is known by the content alone: the second one is taken for the first
    and asks for nothing, for as long as the first one's task is known.
    """
    file = drop / "a.json"
    desk = watching(place, drop)
    look(desk)
    for wanted, said in enumerate(("on", "off", "on"), start=1):
        file.write_text(said)
        os.utime(file, (wanted, wanted))
        assert [look(desk).acted for _ in range(3)] == [0, 1, 0]
    file.unlink()
    look(desk)
    file.write_text("on")
    assert [look(desk).acted for _ in range(3)] == [0, 1, 0]
    assert len(tasks(desk)) == 4
    desk.close()


def test_pipes_and_links_are_never_read_and_are_named(place: Path, drop: Path) -> None:
    desk = watching(place, drop)
    look(desk)
    os.mkfifo(drop / "pipe.json")
    (drop / "link.json").symlink_to("/etc/hostname")
    report = look(desk)
    problems: Any = report.details["problems"]
    assert [one.split(": ")[-1] for one in problems] == ["is no plain file"] * 2
    assert report.acted == 0
    desk.close()


def test_a_file_system_that_hangs_holds_up_nothing_else_and_is_asked_once(
    place: Path, drop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run once without: each round left one more thread behind."""
    hangs, asked = threading.Event(), []

    def stamps(pattern: str) -> Stamps:
        asked.append(pattern)
        hangs.wait(20)
        return Stamps({})

    monkeypatch.setattr(watched_files, "stamps_of", stamps)
    monkeypatch.setattr(watched_files, "LOOK_S", 0.05)
    files = FilesEntry("orders", f"{drop}/*.json", TASK)
    rule = WatchEntry("w", "failing 1% of 1 in 1h", TASK)
    desk = a_desk(place, watch_files=(files,), watch=(rule,))
    assert "could not be looked at within" in look(desk).summary
    heard(desk, 0, 1, "x")
    report = look(desk)
    assert report.acted == 1
    assert "an earlier look" in report.summary
    assert len(asked) == 1
    hangs.set()
    desk.close()


def test_a_folder_that_is_not_there_asks_for_nothing(place: Path) -> None:
    desk = a_desk(place, watch_files=(FilesEntry("x", str(place / "none" / "*"), TASK),))
    assert [look(desk).outcome for _ in range(3)] == ["skipped"] * 3
    desk.close()


# --- Failures -------------------------------------------------------------------------------------


def heard(desk: Desk, well: int, bad: int, domain: str) -> None:
    now = desk.clock.now()
    first = desk.hub.journal.nodes.heard_up_to("iris", "L")
    ended = [Ended(first + n + 1, now, f"T{n}", n < well, domain) for n in range(well + bad)]
    desk.hub.journal.nodes.hear("iris", "L", first + len(ended), ended)


def test_failures_of_a_domain_add_one_task_in_the_time_watched(place: Path) -> None:
    rule = WatchEntry("papers", "failing 40% of 5 in 1h", TASK, domain="research")
    desk = a_desk(place, watch=(rule,))
    look(desk)
    heard(desk, 0, 9, "protocol")
    assert look(desk).acted == 0
    heard(desk, 3, 2, "research")
    assert [look(desk).acted for _ in range(3)] == [1, 0, 0]
    (task,) = tasks(desk)
    assert task["origin"] == "watch:papers"
    assert task["ref"] == "2 of 5 attempts failed in domain research within 1h"
    desk.minutes_pass(61)
    assert look(desk).acted == 0
    heard(desk, 0, 5, "research")
    assert look(desk).acted == 1
    desk.close()


def test_a_node_tells_the_domain_of_what_failed_there(place: Path) -> None:
    """Run once with events as they were before: no end had a domain, and the rule never fired."""
    rule = WatchEntry("papers", "failing 40% of 2 in 1h", TASK, domain="research")
    desk = a_desk(place, watch=(rule,))
    look(desk)
    desk.minutes_pass(1)
    dies(desk, "iris", 1, 2, domain="research")
    health = next(one for one in desk.hub.sensors if one.name == "fleet-health")
    asyncio.run(health.run(desk.hub, desk.clock.now()))
    assert look(desk).acted == 1
    desk.close()
