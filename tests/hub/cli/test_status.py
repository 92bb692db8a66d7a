"""`arc status` and `arc nodes list` say what needs a person, what is unknown, and how old it is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.decisions.alerts import Alert, Edge
from arc.decisions.failing import NodeFactsSeen
from arc.decisions.view import NodeSeen
from arc.looking import look
from arc.operations.status import seen_line
from arc.schedule import Schedule
from arc.sensor import Moved
from arc.text.look import Look
from arc.text.sensors import render_log
from arc.text.status import render_status
from tests.builders import uid, xfer
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dead import dies
from tests.hub_nodes import twisted

EVIL = "\x1b[2J\u202egone"


def node(data: Any, name: str) -> Any:
    return next(one for one in data["nodes"] if one["node"] == name)


def test_every_node_has_a_line_with_its_state_and_the_age_of_what_is_known(desk: Desk) -> None:
    desk.waits("iris", 1, 2)
    desk.runs("loom", 3)
    text, data = desk.both("status")
    assert text.code == 0
    assert text.lines[0].startswith("arc0: 3 of 3 nodes seen, policy arc0")
    assert "no hub runs" in text.lines[0]
    iris = next(line for line in text.lines if line.startswith("iris"))
    assert iris.split()[:5] == ["iris", "working", "2", "0", "8/8"]
    assert "ago" in iris
    assert node(data, "loom")["running"] == 1
    assert node(data, "spark")["idle"] is True


def test_what_needs_a_person_comes_before_everything_else(desk: Desk) -> None:
    desk.hub.schedule = Schedule(desk.hub)
    desk.waits("iris", 1, needs=["gpu"])
    text, data = desk.both("status")
    assert text.lines[1] == "NEEDS YOU (1)"
    assert text.lines[2] == "  iris: 1 READY, but no agent here has: gpu"
    assert text.lines[3].strip() == "arc nodes show iris"
    assert data["needs_you"][0]["node"] == "iris"


def test_that_no_hub_runs_is_the_first_thing_that_needs_a_person(desk: Desk) -> None:
    """Seen to fail: it stood at the end of the first line, and NEEDS YOU was empty."""
    desk.waits("iris", 1, needs=["gpu"])
    text, data = desk.both("status")
    assert text.lines[1:4] == [
        "NEEDS YOU (2)",
        "  hub: no hub runs: nothing moves by itself until `arc up` runs; nodes work on",
        "      arc up   ·   as a service: arc unit",
    ]  # fmt: skip
    assert [one["node"] for one in data["needs_you"]] == ["hub", "iris"]
    desk.hub.schedule = Schedule(desk.hub)
    assert [one["node"] for one in desk.both("status")[1]["needs_you"]] == ["iris"]


def test_without_nodes_and_without_work_nobody_has_to_start_a_hub(tmp_path: Path) -> None:
    desk = Desk(tmp_path, names=())
    assert desk.both("status")[1]["needs_you"] == []
    desk.waits("inbox", 1)
    assert desk.both("status")[1]["needs_you"][0]["node"] == "hub"
    desk.close()


def test_a_node_that_cannot_be_read_is_named_with_the_reason_and_is_never_empty(desk: Desk) -> None:
    desk.nodes.switch_off("loom")
    text, data = desk.both("status")
    assert text.code == 3
    loom = next(line for line in text.lines if line.startswith("loom"))
    assert loom.split()[:5] == ["loom", "unseen", "?", "?", "?"]
    assert "unreachable: no route to it" in loom
    assert "pending" not in node(data, "loom")
    assert [one["node"] for one in desk.arc("status", "--json").envelope["partial"]] == ["loom"]


def test_the_hubs_own_queue_raises_no_alarm_for_having_no_agent(desk: Desk) -> None:
    desk.hub.schedule = Schedule(desk.hub)
    desk.waits("inbox", 1, 2)
    text, data = desk.both("status")
    assert "hub's queue: 2 waiting" in text.out
    assert data["needs_you"] == []


def test_a_suspended_node_is_one_line_and_no_alarm(desk: Desk) -> None:
    desk.hub.schedule = Schedule(desk.hub)
    desk.arc("nodes", "suspend", "loom", "--reason", "moving house")
    text, data = desk.both("status")
    assert text.code == 0
    assert "suspended by human:ada: moving house" in text.out
    assert data["needs_you"] == []


def test_a_paused_fleet_says_so_at_once(desk: Desk) -> None:
    desk.arc("pause", "--reason", "audit")
    text, data = desk.both("status")
    assert text.lines[1] == "PAUSED by human:ada: audit (arc resume)"
    assert data["hub"]["paused"]["reason"] == "audit"


def test_moves_of_the_day_are_shown_with_their_reason(desk: Desk) -> None:
    desk.waits("inbox", 1, priority=8)
    desk.arc("sensors", "run", "fleet-router")
    text, data = desk.both("status")
    assert "moved in 24h: 1" in text.out
    assert "inbox -> " in text.lines[-1]
    assert data["moves"][0]["because"]


def test_a_health_run_that_found_stranded_slots_is_told_with_the_rule(desk: Desk) -> None:
    desk.waits("iris", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, priority=6)
    desk.arc("sensors", "run", "fleet-health")
    text, data = desk.both("status")
    assert data["stranded"]["now"], data["stranded"]
    at = data["stranded"]["seen_at"]
    assert f"at {at} loom had a free slot beside work on iris: idle_long_enough: " in text.out
    assert " 0.0" not in text.out.partition("stranded today: 0.0")[2]


@pytest.mark.parametrize(("causes", "says"), [
    ({"a": 8.4, "b": 8.4, "c": 4.2}, "0.4 node-minutes (a 0.2, b 0.1, c 0.1)"),
    ({"a": 8.0, "b": 10.0, "c": 2.0, "nobody_looked": 2.0},
     "0.4 node-minutes (a 0.2, b 0.2)"),
    ({"nobody_looked": 2.0}, "0.0 node-minutes"),
    ({"a": 600.0, "nobody_looked": 5.0}, "10.1 node-minutes (a 10.0, nobody looked 0.1)"),
    ({}, "0.0 node-minutes"),
])  # fmt: skip
def test_the_parts_of_stranded_time_add_up_as_they_are_shown(
    causes: dict[str, float], says: str
) -> None:
    """Seen to fail: `0.4 (0.1, 0.2)`."""
    stranded: JsonObject = {"today_s": sum(causes.values()), "by_cause": {**causes}}
    text = render_status({"stranded": stranded}, Look(None))
    assert f"stranded today: {says}" in text.splitlines()


def test_stranded_time_and_the_log_are_folded_between_their_words(desk: Desk) -> None:
    """Seen to fail: a terminal broke `low_enough_priority` after its second letter."""
    desk.waits("iris", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, priority=6)
    desk.arc("sensors", "run", "fleet-health")
    status, log = desk.arc("status", "--json").data, desk.arc("log", "--all", "--json").data

    def texts(width: int | None) -> tuple[str, str]:
        stranded = render_status(status, Look(width)).partition("stranded today")[2]
        return stranded, render_log(log, Look(width))

    for width in (60, 83):
        for said, whole in zip(texts(width), texts(None), strict=True):
            assert max(map(len, said.splitlines())) <= width < max(map(len, whole.splitlines()))
            assert said.split() == whole.split()


def test_what_a_node_says_cannot_drive_the_terminal(desk: Desk) -> None:
    desk.arc("nodes", "pause", "loom", "--reason", "\x1b[2Jgone")
    text = desk.arc("status")
    assert "\x1b" not in text.out
    assert "\\x1b[2Jgone" in text.out


@pytest.mark.parametrize("words", [
    ("status",), ("nodes",), ("nodes", "show", "loom"),
    ("nodes", "pause", "iris", "--reason", EVIL),
    ("why", "--node", "loom"), ("why", uid(1)), ("plan",), ("tasks",), ("tasks", "show", uid(1)),
    ("tasks", "set", uid(1), f"tags={EVIL}"), ("tasks", "move", uid(1), "--to", "loom"), ("log",),
    ("sensors", "run", "fleet-rebalance"), ("skills", "run", "--name", "fleet-rebalance"),
    ("doctor", "--node", "iris"), ("explain", EVIL), ("nodes", "show", EVIL), (EVIL,),
    ("tasks", "add", EVIL), ("sensors", "run", EVIL), ("nodes", "suspend", EVIL),
])  # fmt: skip
def test_no_command_lets_anybodys_words_drive_the_terminal(
    desk: Desk, words: tuple[str, ...]
) -> None:
    desk.waits("iris", 1, subject=EVIL, body=EVIL, needs=["gpu"], source=f"human:{EVIL}")
    desk.arc("nodes", "pause", "loom", "--reason", EVIL)
    said = desk.arc(*words)
    assert "\x1b" not in said.out + said.err
    assert "\u202e" not in said.out + said.err


def test_nothing_is_cut_or_folded_in_a_pipe(desk: Desk) -> None:
    long = "because " * 40
    desk.arc("nodes", "pause", "loom", "--reason", long.strip())
    assert long.strip() in desk.arc("status").out


def test_a_terminal_gets_no_line_that_is_longer_than_it_and_loses_no_word(desk: Desk) -> None:
    desk.hub.schedule = Schedule(desk.hub)
    desk.arc("nodes", "pause", "loom", "--reason", "because " * 40)
    seen = desk.arc("status", typed=b"", environ={"COLUMNS": "80"})
    table = [line for line in seen.lines if line.startswith(("NODE", "iris", "loom", "spark"))]
    assert len(table) == 4
    assert max(map(len, seen.lines[1:])) <= 80
    assert seen.out.count("because") == 40


def test_a_watched_status_is_told_again_until_somebody_interrupts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("arc.cli.daily.time.sleep", sleep)
    watched = desk.arc("status", "--watch", "--json")
    assert watched.code == 130
    assert [json.loads(line)["schema"] for line in watched.lines] == ["arc.status/1"] * 3


def test_the_list_of_nodes_says_how_each_is_reached_and_whose_work_it_does(desk: Desk) -> None:
    text, data = desk.both("nodes", "list")
    assert text.code == 0
    spark = next(line for line in text.lines if line.startswith("spark"))
    assert spark.split()[2] == "local"
    assert node(data, "spark")["never"] == ["infrastructure"]
    assert desk.arc("nodes").out == text.out


def test_one_node_is_shown_whole(desk: Desk) -> None:
    desk.waits("iris", 1)
    text, data = desk.both("nodes", "show", "iris")
    assert text.code == 0
    assert data["counts"] == {"READY": 1}
    assert data["agents"][0]["slots"] == 8
    assert "agent iris: available, 0 of 8 slots" in text.out


def test_a_node_that_does_not_answer_is_shown_with_when_it_was_met_last(desk: Desk) -> None:
    desk.arc("status")
    desk.nodes.switch_off("loom")
    text, data = desk.both("nodes", "show", "loom")
    assert text.code == 3
    assert data["last_met"]["version"]
    assert "not seen       unreachable: no route to it" in text.out


def test_a_node_that_stops_answering_needs_somebody_soon_and_keeps_when_it_was_seen(
    desk: Desk,
) -> None:
    """It was named after ten minutes, when the notices go out; beside `unseen` stood a dash."""
    desk.hub.schedule = Schedule(desk.hub)
    desk.arc("status")
    desk.nodes.switch_off("loom")
    desk.minutes_pass(0.2)
    data = desk.arc("status", "--json").data
    assert data["needs_you"] == []
    desk.minutes_pass(0.25)
    text, data = desk.both("status")
    assert text.lines[1:4] == [
        "NEEDS YOU (1)", "  loom: no route to it; nothing changed there; last seen 27s ago",
        "      arc doctor --node loom"]  # fmt: skip
    loom = next(line for line in text.lines if line.startswith("loom"))
    assert loom.split()[5:7] == ["27s", "ago"]
    assert node(data, "loom")["age_s"] == 27.0
    listed = next(line for line in desk.arc("nodes").lines if line.startswith("loom"))
    assert "27s ago" in listed


def test_a_node_that_was_never_seen_has_no_age(desk: Desk) -> None:
    desk.nodes.switch_off("loom")
    lines = desk.arc("status").lines
    loom = next(line for line in lines if line.startswith("loom"))
    assert loom.split()[:6] == ["loom", "unseen", "?", "?", "?", "-"]


def test_a_node_that_the_fleet_does_not_have_is_exit_5_with_those_it_has(desk: Desk) -> None:
    text, error = desk.both("nodes", "show", "nix")
    assert text.code == 5
    assert error["code"] == "ARC-NOT-FOUND"
    assert "iris, loom, spark" in error["hint"]


def test_a_node_that_fails_says_why_it_is_idle_and_until_when(desk: Desk) -> None:
    """Seen to fail: the hub gave it nothing, and its line had no reason."""
    iris = asyncio.run(look(desk.hub)).view.node("iris")
    assert isinstance(iris, NodeSeen)
    fails = NodeFactsSeen(ended=9, failed=9, streak=9, again_s=720.0)
    reason = seen_line(desk.hub, iris, fails)["reason"]
    assert str(reason).startswith("given no work, work_succeeds: ")
    assert str(reason).endswith("; it is tried with one task in 12m")
    assert seen_line(desk.hub, iris, NodeFactsSeen())["reason"] == ""


def test_a_node_that_fails_is_named_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own words, until the hub has counted: two entries were one trouble."""
    desk.hub.schedule = Schedule(desk.hub)
    link = desk.hub.links["iris"]
    asyncio.run(link.meet())

    def says(do: str, result: Any) -> Any:
        more = {"needs_you": ["agent iris fails again and again"]} if do == "status" else {}
        return {**result, **more}

    monkeypatch.setitem(desk.hub.links, "iris", twisted(link, says))
    told = [one["text"] for one in desk.arc("status", "--json").data["needs_you"]]
    assert told == ["agent iris fails again and again"]
    desk.hub.journal.nodes.note(Edge(began=(Alert("iris", "work_succeeds", "5 of 5 failed"),)))
    told = [one["text"] for one in desk.arc("status", "--json").data["needs_you"]]
    assert told == ["5 of 5 failed"]


def test_a_node_that_fails_is_named_with_what_its_last_failure_printed(desk: Desk) -> None:
    """Seen to fail: `arc nodes show iris`, which says no more than that its agent is failing."""
    desk.hub.schedule = Schedule(desk.hub)
    for number in range(1, 6):
        dies(desk, "iris", number)
    needs = desk.both("status")[1]["needs_you"]
    (fails,) = [one for one in needs if "fails again and again" in one["text"]]
    assert fails["try"] == (
        f"arc nodes logs iris {uid(5)} --stderr   ·   arc dead list --node iris")  # fmt: skip
    desk.arc("sensors", "run", "fleet-health")
    needs = desk.both("status")[1]["needs_you"]
    (fails,) = [one for one in needs if "one after the other" in one["text"]]
    assert fails["try"] == "arc dead list --node iris   ·   arc why --node iris"


def test_what_neither_waits_to_run_nor_runs_is_counted_where_it_is(desk: Desk) -> None:
    """Seen to fail: a node with nothing but tasks that are tried again later was `idle`, with 0 and
    0, and a queue at the hub in which all waits for something was `0 waiting`.
    """
    desk.waits("iris", 1, not_before="2036-03-10T03:45:00.000Z")
    desk.runs("iris", 2)
    iris = desk.nodes.machines["iris"].store
    iris.apply(c.Finish(uid(2), 1, c.Result("failed", error_kind="crash")))
    desk.waits("inbox", 3, not_before="2036-03-10T03:45:00.000Z")
    text, data = desk.both("status")
    line = next(line for line in text.lines if line.startswith("iris"))
    assert line.split()[3:5] == ["0", "0"]
    assert line.endswith("1 PENDING, 1 RETRYING")
    assert node(data, "iris")["reason"] == ""
    assert "hub's queue: 0 waiting; 1 PENDING" in text.lines
    assert not next(line for line in text.lines if line.startswith("loom")).endswith("PENDING")


def test_a_node_that_left_the_fleet_needs_nobody(desk: Desk) -> None:
    """Guarded by the look at fleet.yaml in `_troubles`: without it the old alert stands on."""
    desk.hub.schedule = Schedule(desk.hub)
    nodes = desk.hub.journal.nodes
    nodes.note(Edge(began=(Alert("gone", "failing", "5 of 5 failed"),
                           Alert("iris", "failing", "5 of 5 failed"))))  # fmt: skip
    text, data = desk.both("status")
    assert [one["node"] for one in data["needs_you"]] == ["iris"]
    assert "gone" not in text.out


def test_a_pause_without_a_reason_shows_none(desk: Desk) -> None:
    """It said `PAUSED by human:ada: -`."""
    desk.arc("pause")
    assert desk.arc("status").lines[1] == "PAUSED by human:ada (arc resume)"
    assert desk.arc("plan", "--json").data["paused"] == "paused by human:ada"


def test_a_day_of_many_moves_is_counted_whole(desk: Desk) -> None:
    """Seen to fail: it counted among the newest thousand lines, whatever became of those."""
    runs = desk.hub.journal.runs
    runs.add_moves(tuple(a_move(n) for n in range(1500)))
    runs.add_moves(tuple(a_move(n, outcome="kept") for n in range(1500, 2600)))
    text, data = desk.both("status")
    assert "moved in 24h: 1500" in text.lines
    assert data["moved_24h"] == 1500
    assert [one["uid"] for one in data["moves"]] == [uid(n) for n in range(1499, 1494, -1)]
    desk.minutes_pass(60 * 25)
    assert "moved in 24h: 0" in desk.arc("status").lines


def a_move(number: int, *, outcome: str = "moved") -> Moved:
    return Moved(xfer(number), uid(number), "iris", "loom", outcome)
