"""`arc sensors`, `arc skills` and `arc log`: what ran, what it cost, why, and what it said."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from arc.errors import SensorBroken, StateBroken
from arc.hub import Hub
from arc.operations import skills
from arc.settings import NotifyEntry, ScheduleEntry
from tests.builders import uid
from tests.hub.cli.desk import Desk, Ran
from tests.hub_builders import Counting

VERBS = [(name, verb) for name, some in {
    "fleet-rebalance": ("status", "plan", "steal"),
    "fleet-router": ("status", "dry-run", "route"),
    "fleet-health": ("status", "check"),
    "fleet-graphs": ("status", "tell"),
    "fleet-notices": ("status", "run"),
    "fleet-schedules": ("status", "run"),
}.items() for verb in some]  # fmt: skip
ALL: dict[str, Any] = {
    "schedules": (ScheduleEntry("night", "0 2 * * *", task={"subject": "x"}),),
    "notify": (NotifyEntry("ada", ("dead",), command=("true",)),),
}


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Desk]:
    """A desk whose fleet.yaml gives every sensor of ours something to do."""
    made = Desk(tmp_path, **ALL)
    yield made
    made.close()


def skill(desk: Desk, name: str, *words: str) -> Ran:
    return desk.arc("skills", "run", "--name", name, "--", *words)


def test_every_sensor_has_a_line_also_before_it_ran(desk: Desk) -> None:
    text, data = desk.both("sensors", "list")
    assert text.code == 0
    assert [one["sensor"] for one in data["sensors"]] == [
        "fleet-health", "fleet-graphs", "fleet-router", "fleet-rebalance"]
    assert text.out.count("has not run yet") == 4
    assert desk.arc("sensors").out == text.out


def test_a_run_by_hand_is_shown_whole(desk: Desk) -> None:
    desk.waits("inbox", 1, skills=["stacks-js"])
    text = desk.arc("sensors", "run", "fleet-router")
    assert text.code == 0
    assert text.lines[0].startswith("fleet-router run 1: 1 planned, 1 moved")
    assert "moved    0001 P5  inbox -> spark" in text.out
    assert desk.arc("sensors", "run", "fleet-router", "--json").data["outcome"] == "skipped"


def test_a_run_that_could_not_look_is_not_a_run_that_found_nothing(desk: Desk) -> None:
    for name in ("iris", "loom", "spark"):
        desk.nodes.switch_off(name)
    text = desk.arc("sensors", "run", "fleet-rebalance")
    assert text.code == 3
    assert "could not look: no node answered" in text.out


def test_a_sensor_that_is_not_there_is_exit_5_with_those_there_are(desk: Desk) -> None:
    text, error = desk.both("sensors", "run", "nix")
    assert text.code == 5
    assert "fleet-health, fleet-rebalance, fleet-router" in error["message"]
    assert desk.both("sensors", "history", "nix")[0].code == 5
    assert desk.both("skills", "show", "nix")[0].code == 5


def test_what_moves_nothing_has_no_dry_run(desk: Desk) -> None:
    assert desk.both("sensors", "run", "fleet-health", "--dry-run")[0].code == 2


def test_history_is_newest_first_of_one_or_of_all(desk: Desk) -> None:
    assert desk.arc("sensors", "history").out == "no sensor has run yet\n"
    for name in ("fleet-health", "fleet-router", "fleet-health"):
        desk.arc("sensors", "run", name)
    _, data = desk.both("sensors", "history")
    assert [(one["run"], one["sensor"]) for one in data["runs"]] == [
        (3, "fleet-health"), (2, "fleet-router"), (1, "fleet-health")]
    one = desk.arc("sensors", "history", "fleet-health", "--limit", "1", "--json").data
    assert [run["run"] for run in one["runs"]] == [3]


def test_a_run_that_could_not_see_a_node_ends_with_3_and_a_suspended_one_is_not_missed(
    desk: Desk,
) -> None:
    desk.nodes.switch_off("loom")
    for name in ("fleet-router", "fleet-rebalance", "fleet-health"):
        text, _ = desk.both("sensors", "run", name)
        assert (text.code, "warning: loom: " in text.err) == (3, True)
        [left] = desk.arc("sensors", "run", name, "--json").envelope["partial"]
        assert (left["node"], left["error"]["code"]) == ("loom", "ARC-SSH-UNREACHABLE")
        assert "no route to it" in left["error"]["message"]
    desk.arc("nodes", "suspend", "loom", "--reason", "repair")
    for name in ("fleet-router", "fleet-rebalance", "fleet-health"):
        assert desk.both("sensors", "run", name)[0].code == 0
        assert desk.arc("sensors", "run", name, "--json").envelope["partial"] == []


def test_a_broken_sensor_of_another_package_is_listed_and_stops_nothing(desk: Desk) -> None:
    desk.hub.broken = (SensorBroken("nightly: cannot be used: ImportError: gone"),)
    text, data = desk.both("sensors")
    assert data["sensors"][-1]["state"] == "broken"
    assert "nightly: cannot be used: ImportError: gone" in text.lines[-1]
    assert "sensor ?: broken: nightly" in desk.arc("status").out


@pytest.mark.parametrize(("name", "verb"), VERBS)
def test_every_word_of_every_sensor_is_answered(whole: Desk, name: str, verb: str) -> None:
    assert skill(whole, name, verb).code == 0
    assert json.loads(whole.arc("skills", "run", "--name", name, "--json", "--", verb).out)["ok"]


def test_a_word_that_runs_a_sensor_runs_it(whole: Desk) -> None:
    """`fleet-graphs -- tell` showed its last run instead."""
    for sensor in whole.hub.sensors:
        runs = [verb for verb, what in sensor.verbs.items() if what in ("run now", "look now")]
        (verb,) = runs
        assert skill(whole, sensor.name, verb).code == 0
        assert whole.asked[-1] == ("sensors.run", {"sensor": sensor.name})


def test_the_words_that_are_offered_are_those_that_are_answered(whole: Desk) -> None:
    desk = whole
    offered = {(one["sensor"], verb) for one in desk.arc("skills", "list", "--json").data["sensors"]
               for verb in one["verbs"]}  # fmt: skip
    assert offered == {*VERBS, ("fleet-rebalance", "why"), ("fleet-rebalance", "show")}
    shown = desk.arc("skills", "show", "fleet-router").out
    assert "arc skills run --name fleet-router -- dry-run" in shown
    assert desk.arc("skills", "show", "--name", "fleet-router").out == shown


def test_a_dry_run_of_one_sensor_tells_of_no_other(desk: Desk) -> None:
    desk.waits("inbox", 1)
    routes = skill(desk, "fleet-router", "dry-run")
    assert "1 route planned" in routes.lines[0]
    assert "steal" not in routes.out
    steals = desk.arc("sensors", "run", "fleet-rebalance", "--dry-run", "--json").data
    assert (steals["sensor"], "routes" in steals) == ("fleet-rebalance", False)
    both = desk.arc("plan", "--json").data
    assert {"routes", "steals", "drains"} <= both.keys()


def test_before_any_run_the_status_says_so(desk: Desk) -> None:
    assert "has not run yet" in skill(desk, "fleet-rebalance", "status").out


def test_the_status_of_a_sensor_tells_cost_nodes_moves_reasons_and_totals(desk: Desk) -> None:
    desk.waits("iris", *range(1, 10), priority=6, skills=["arc-research"])
    desk.waits("iris", 10, priority=1, skills=["arc-research"])
    desk.minutes_pass(5)
    skill(desk, "fleet-rebalance", "steal")
    text = skill(desk, "fleet-rebalance", "status").out
    assert "last run 1" in text
    assert "requests" in text
    assert text.count("moved    ") == 3
    assert "P6  iris -> loom" in text
    assert "low_enough_priority" in text
    assert "node loom: idle, 0 waiting, idle since" in text
    assert "  caps hit: per_node" in text
    assert text.splitlines()[-1].startswith("last 1 run: 3 planned, 3 done")


def test_a_run_is_shown_by_its_number_and_a_task_explained(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.arc("sensors", "run", "fleet-health")
    assert skill(desk, "fleet-rebalance", "show", "1").lines[0].startswith("fleet-health run 1:")
    assert skill(desk, "fleet-rebalance", "show", "99").code == 5
    assert skill(desk, "fleet-rebalance", "show", "x").code == 2
    assert skill(desk, "fleet-rebalance", "show").code == 2
    assert skill(desk, "fleet-rebalance", "why", uid(1)).out == desk.arc("why", uid(1)).out


class Disks(Counting):
    """A sensor of another package, with words of its own."""

    verbs: Mapping[str, str] = {"verify": "whether all disks are well", "break": "fails",
                                "trip": "has a fault", "burn": "fails too", "hang": "never ends"}

    async def answer(self, hub: Hub, verb: str, words: Sequence[str]) -> str:
        if verb == "break":
            raise StateBroken("the disk is full", hint="make room")
        if verb == "trip":
            return words[len(words)]
        if verb == "burn":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if verb == "hang":
            async with asyncio.timeout(5):  # longer than it is given
                await asyncio.Event().wait()
        return f"{verb}: {len(words)} looked at\n\x1b[2J{' '.join(words)}"


def test_a_word_of_another_packages_sensor_is_answered_by_the_sensor(desk: Desk) -> None:
    """`skills show` offered `-- verify`; typed, it was exit 2: "has no word 'verify'"."""
    desk.hub.sensors = (*desk.hub.sensors, Disks("disks", 60.0))
    assert "arc skills run --name disks -- verify" in desk.arc("skills", "show", "disks").out
    text = skill(desk, "disks", "verify", "iris", "loom")
    assert (text.code, text.lines) == (0, ["verify: 2 looked at", "\\x1b[2Jiris loom"])
    machine = desk.arc("skills", "run", "--name", "disks", "--json", "--", "verify", "iris").data
    assert machine == {"sensor": "disks", "verb": "verify", "cut": 0,
                       "said": "verify: 1 looked at\n\x1b[2Jiris"}
    failed = skill(desk, "disks", "break")
    assert (failed.code, failed.err.splitlines()[0]) == (1, "error[ARC-STATE]: the disk is full")
    assert skill(desk, "disks", "run").lines[0].startswith("disks run 1: run 1")
    assert "last run 1" in skill(desk, "disks", "status").out
    unknown = skill(desk, "disks", "mend")
    assert (unknown.code, "it has status, run, verify, break, " in unknown.err) == (2, True)
    assert skill(desk, "nix", "verify").code == 5


@pytest.mark.parametrize(("verb", "code", "says"), [
    ("trip", "ARC-SENSOR", "disks: it could not answer trip: IndexError in cli/test_sensors.py:"),
    ("burn", "ARC-MACHINE", "this machine failed: Input/output error"),
    ("hang", "ARC-SENSOR", "disks: cut off: no answer to hang after 0 s"),
])
def test_what_another_packages_answer_raises_is_no_fault_of_ours(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, verb: str, code: str, says: str
) -> None:
    """Seen to fail: a slip in it was told as a fault of ours, and one that hung held its place for
    fifteen minutes.
    """
    if verb == "hang":
        monkeypatch.setattr(skills, "ANSWER_S", 0.0)
    desk.hub.sensors = (*desk.hub.sensors, Disks("disks", 60.0))
    failed = skill(desk, "disks", verb)
    assert (failed.code, failed.err.startswith(f"error[{code}]: {says}")) == (1, True), failed.err
    assert skill(desk, "disks", "verify").code == 0, "the hub goes on"


def test_an_unknown_word_is_answered_with_the_known_ones(desk: Desk) -> None:
    text = skill(desk, "fleet-router", "steal")
    assert text.code == 2
    assert "it has status, dry-run, route" in text.err
    bare = desk.arc("skills", "run", "--name", "fleet-router")
    assert bare.code == 0
    assert "fleet-router has the words status, dry-run, route" in bare.err


def test_the_log_tells_runs_moves_and_words_in_order(desk: Desk) -> None:
    desk.waits("inbox", 1, skills=["stacks-js"])
    desk.arc("nodes", "pause", "iris")
    desk.minutes_pass(1)
    desk.arc("sensors", "run", "fleet-router")
    text, data = desk.both("log")
    assert [one["event"] for one in data["lines"]] == ["node_paused", "run_done", "task_moved"]
    assert data["lines"][2]["task"] == uid(1)
    assert "from=inbox to=spark" in text.lines[-1]


def test_the_log_never_holds_what_a_task_says(desk: Desk) -> None:
    desk.waits("inbox", 1, subject="secret plan", body="secret body", skills=["stacks-js"])
    desk.arc("sensors", "run", "fleet-router")
    desk.arc("tasks", "cancel", uid(1))
    assert "secret" not in desk.arc("log", "--json").out


def test_the_log_starts_where_one_says_and_tells_the_newest(desk: Desk) -> None:
    for minute in range(4):
        desk.arc("nodes", "pause", "iris", "--reason", str(minute))
        desk.minutes_pass(1)
    assert len(desk.arc("log", "--since", "150s", "--json").data["lines"]) == 2
    newest = desk.arc("log", "--limit", "1")
    assert newest.lines[0] == "there are older lines: --limit N, --since TIME"
    assert newest.lines[1].startswith("2026-03-10T03:48:00.000Z  node_paused")
    assert desk.arc("log", "--since", "1s").out == "nothing happened since then\n"
    assert desk.both("log", "--since", "whenever")[0].code == 2


def test_a_followed_log_goes_on_with_what_comes_one_object_a_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.arc("nodes", "pause", "iris")

    def sleep(seconds: float) -> None:
        if len(turns) == 2:
            raise KeyboardInterrupt
        turns.append(desk.arc("nodes", "resume", "iris"))

    turns: list[object] = []
    monkeypatch.setattr("arc.cli.fleet_words.time.sleep", sleep)
    followed = desk.arc("log", "--follow", "--json")
    assert followed.code == 130
    events = [json.loads(line)["data"]["lines"][0]["event"] for line in followed.lines]
    assert events == ["node_paused", "node_resumed", "node_resumed"]


def test_a_followed_log_leaves_nothing_out_that_comes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: of what came between two looks the newest alone was told, and of the rest not
    even that there was any: a cycle with many moves lost most of them.
    """
    desk.arc("nodes", "pause", "iris")
    desk.arc("nodes", "pause", "loom")

    def sleep(seconds: float) -> None:
        if turns:
            raise KeyboardInterrupt
        turns.extend(desk.arc("nodes", "resume", node) for node in ("iris", "loom", "spark"))

    turns: list[object] = []
    monkeypatch.setattr("arc.cli.fleet_words.time.sleep", sleep)
    followed = desk.arc("log", "--follow", "--limit", "1", "--json")
    lines = [json.loads(line)["data"]["lines"][0] for line in followed.lines]
    assert [(one["event"], one["node"]) for one in lines] == [
        ("node_paused", "loom"), *(("node_resumed", node) for node in ("iris", "loom", "spark"))]
    assert followed.err == "warning: there were older lines: arc log --limit N, --since TIME\n"


@pytest.mark.parametrize("short", ["router", "health", "rebalance", "graphs", "notices",
                                   "schedules"])  # fmt: skip
def test_our_sensors_are_known_by_their_short_names(whole: Desk, short: str) -> None:
    """`arc sensors run router` was: no sensor is called 'router'."""
    desk = whole
    assert desk.arc("sensors", "run", short, "--json").data["sensor"] == f"fleet-{short}"
    runs = desk.arc("sensors", "history", short, "--json").data["runs"]
    assert {one["sensor"] for one in runs} == {f"fleet-{short}"}
    assert desk.arc("skills", "run", "--name", short, "--json").data["sensor"] == f"fleet-{short}"
