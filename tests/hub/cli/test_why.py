"""`arc why` gives one of four answers, in numbers that add up, and never a guess."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from agent_node import commands as c
from agent_node.config import ValidatorSettings
from agent_node.strict import JsonObject
from arc.errors import NodeUnreachable
from arc.operations.everybody import not_found_yet
from arc.operations.why_cancelled import _who_and_why
from arc.schedule import Schedule
from tests.builders import uid
from tests.hub.cli.desk import Desk


@pytest.fixture
def busy(desk: Desk) -> Desk:
    """iris has seven waiting that only research does; loom and spark are idle; a hub runs."""
    desk.hub.schedule = Schedule(desk.hub)
    desk.waits("iris", 1, 2, 3, 4, 5, 6, 7, priority=6, skills=["arc-research"])
    desk.minutes_pass(5)
    return desk


def test_a_task_that_moves_next_says_where_and_why(busy: Desk) -> None:
    planned = busy.arc("plan", "--json").data["steals"][0]["uid"]
    text, data = busy.both("why", planned)
    assert text.code == 0
    assert data["moves"]["to"] == "loom"
    assert data["verdict"] == "WAIT"
    assert "WAIT: the next cycle moves it to loom" in text.out


def test_the_nodes_that_drop_out_and_those_left_add_up_to_all_of_them(busy: Desk) -> None:
    _, data = busy.both("why", uid(1))
    steps = data["steps"]
    assert steps[0]["left"] == data["receivers"] == 2
    dropped = sum(len(step["dropped"]) for step in steps)
    assert dropped + steps[-1]["left"] == data["receivers"]


def test_every_line_that_would_move_it_carries_the_change_of_the_data(desk: Desk) -> None:
    desk.waits("iris", 1, 2, 3, 4, 5, 6, 7, priority=3, skills=["arc-research"])
    desk.minutes_pass(5)
    text, data = desk.both("why", uid(1))
    assert text.lines[2].startswith("NOT MOVED")
    assert "NO  low_enough_priority: P3; we steal P5 and less urgent" in text.out
    assert data["ways"]
    for way in data["ways"]:
        said = " and ".join(change["says"] for change in way["changes"])
        at = text.lines.index(f"  to {way['to']} if {said}")
        commands = [one["command"] for one in way["changes"] if one["command"]]
        below = text.lines[at + 1 : at + 1 + len(commands)]
        assert [line.strip() for line in below] == commands


def test_a_domain_that_forbids_it_is_answered_by_a_command_one_can_type(desk: Desk) -> None:
    desk.waits("iris", 1, 2, 3, 4, 5, 6, 7, priority=6, skills=["stacks-js"])
    desk.minutes_pass(5)
    desk.arc("nodes", "pause", "spark")
    text, _ = desk.both("why", uid(1))
    assert "arc nodes resume spark" in text.out
    assert f"arc tasks move {uid(1)} --to loom --reason '…'" in text.out


def test_a_task_that_runs_says_that_it_does_and_what_one_may_do(desk: Desk) -> None:
    text, data = desk.both("why", desk.runs("iris", 1))
    assert data["life"]["state"] == "RUNNING"
    assert f"arc tasks cancel {uid(1)}" in text.out
    assert "NOT MOVED" not in text.out


def test_a_task_with_the_hub_is_answered_by_the_router(desk: Desk) -> None:
    desk.waits("inbox", 1, skills=["stacks-js"])
    text, data = desk.both("why", uid(1))
    assert data["moves"]["to"] == "spark"
    assert "is READY in the hub's queue" in text.out
    assert "the next run of the router sends it to spark" in text.out


def test_a_task_that_waits_for_the_router_says_for_how_long_and_how_not_to(desk: Desk) -> None:
    """Seen to fail: it said "the next run of the router", which may be half an hour away."""
    schedule = desk.hub.schedule = Schedule(desk.hub)
    desk.waits("inbox", 1, skills=["stacks-js"])
    in_a_while = desk.clock.now() + timedelta(minutes=12, seconds=5)
    with patch.object(schedule, "next_run", lambda name: in_a_while):
        said = desk.arc("why", uid(1)).out
    assert "; it looks in 12m; not to wait: arc sensors run fleet-router" in said


def test_a_task_that_nobody_may_do_stays_with_the_hub_and_says_by_which_rule(desk: Desk) -> None:
    desk.hub.schedule = Schedule(desk.hub)
    desk.waits("inbox", 1, skills=["deploy"])
    text, data = desk.both("why", uid(1))
    assert data["moves"] is None
    assert data["kept"]["rule"] in text.out
    assert "NOT MOVED; CHANGE" in text.out


def test_a_queue_that_cannot_be_read_is_the_fourth_answer_with_its_fix(
    busy: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = busy.nodes.link("iris")
    ask = link.ask

    async def mute(do: str, fields: Any = None, *, timeout_s: float | None = None) -> Any:
        if do == "candidates" or (fields or {}).get("states") == ["READY"]:
            raise link._silence(do)
        return await ask(do, fields, timeout_s=timeout_s)

    monkeypatch.setattr(link, "ask", mute)
    busy.arc("sensors", "run", "fleet-rebalance")
    text, data = busy.both("why", uid(1))
    assert text.code == 3
    assert "could not look, and in 1 cycle before" in text.out
    assert data["verdict"] == "ESCALATE"
    assert data["could_not_look"]["node"] == "iris"
    assert "ESCALATE: could not look: iris" in text.out
    assert "arc doctor --node iris   ·   arc explain ARC-SILENT" in text.out
    assert data["steps"] == []


def test_what_earlier_runs_said_is_told_with_their_numbers(desk: Desk) -> None:
    desk.waits("iris", 1, 2, 3, 4, 5, 6, 7, priority=6, skills=["stacks-js"], pinned=True)
    desk.minutes_pass(5)
    desk.arc("sensors", "run", "fleet-rebalance")
    text, data = desk.both("why", uid(1))
    assert data["evidence"]["run"] == 1
    assert "arc skills run --name fleet-rebalance -- show 1" in text.out


def test_only_cycles_since_it_lies_there_are_those_in_which_it_stayed(desk: Desk) -> None:
    """Seen to fail: `READY on iris for 1s` and `NOT MOVED in 3 cycles`, all of them the router's
    from before it came there.
    """
    desk.waits("inbox", 1, priority=5, skills=["arc-research"])
    for name in desk.nodes.links:
        desk.arc("nodes", "pause", name)
    for _ in range(3):
        desk.minutes_pass(1)
        desk.arc("sensors", "run", "fleet-router")
    assert len(desk.arc("why", uid(1), "--json").data["said"]) == 3
    desk.minutes_pass(1)
    for name in desk.nodes.links:
        desk.arc("nodes", "resume", name)
    assert desk.arc("tasks", "move", uid(1), "--to", "iris", "--yes").code == 0
    text, data = desk.both("why", uid(1))
    assert "NOT MOVED; " in text.out
    assert (data["history"]["cycles"], data["history"]["since"]) == (0, None)
    desk.waits("iris", 2, 3, 4, 5, 6, 7, 8, priority=6, skills=["arc-research"])
    desk.minutes_pass(5)
    desk.arc("sensors", "run", "fleet-rebalance")
    text, data = desk.both("why", uid(1))
    assert "NOT MOVED in 1 cycle since " in text.out
    assert data["history"]["since"] > data["moved"][0]["at"]


def test_any_part_of_a_uid_will_do_and_several_that_fit_are_named(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.waits("loom", 2)
    assert desk.arc("why", uid(1)[-6:].lower()).code == 0
    text, error = desk.both("why", uid(1)[:8])
    assert text.code == 2
    assert error["code"] == "ARC-AMBIGUOUS"
    assert uid(1) in text.err
    assert uid(2) in text.err


def test_not_found_is_certain_only_when_every_node_answered(desk: Desk) -> None:
    assert desk.both("why", "ZZZZ")[0].code == 5
    desk.nodes.switch_off("loom")
    text, error = desk.both("why", "ZZZZ")
    assert text.code == 3
    assert error["code"] == "ARC-NOT-FOUND-YET"
    assert "loom did not answer" in text.err


@pytest.mark.parametrize(("words", "what"), [
    (("tasks", "show", "ZZZZ"), "ZZZZ: no node that answered has such a task; "),
    (("tasks", "cancel", "ZZZZ"), "ZZZZ: no node that answered has such a task; "),
    (("dead", "show", "ZZZZ"), "ZZZZ: no node that answered has such a dead letter; "),
    (("dag", "show", "ZZZZ"), "ZZZZ: no node that answered has such a graph or task; "),
])  # fmt: skip
def test_what_may_be_at_a_silent_node_is_told_with_why_it_is_silent_and_what_to_type(
    desk: Desk, words: tuple[str, ...], what: str
) -> None:
    """It gave neither; of a graph it said `no graph and ZZZZ: no node that answered …`."""
    desk.nodes.switch_off("loom")
    text, error = desk.both(*words)
    assert (text.code, error["code"]) == (3, "ARC-NOT-FOUND-YET")
    assert text.err.startswith(f"error[ARC-NOT-FOUND-YET]: {what}loom did not answer: ")
    assert "loom did not answer: no route to it" in text.err
    assert error["hint"] == "arc doctor --node loom"


def test_of_many_silent_nodes_some_are_named() -> None:
    failed = {f"n{n:03}": NodeUnreachable(f"n{n:03}", "away " * 900) for n in range(99)}
    said = str(not_found_yet("x", failed, [f"s{n} is suspended" for n in range(99)]))
    assert said.count("did not answer: away") == 10
    assert "89 more did not answer" in said
    assert len(said) < 5000


def test_a_task_that_went_to_a_suspended_node_is_not_said_to_be_nowhere(desk: Desk) -> None:
    desk.waits("loom", 1)
    desk.waits("iris", 2)
    desk.arc("tasks", "move", uid(2), "--to", "loom")
    desk.arc("nodes", "suspend", "loom")
    text, error = desk.both("why", uid(1))
    assert text.code == 3
    assert "loom is suspended, so it was not asked" in error["message"]
    assert desk.both("why", uid(2))[0].code == 3
    listed = desk.arc("tasks", "list")
    assert (listed.code, listed.err) == (0, "warning: loom is suspended, so it was not asked\n")


def test_a_subject_is_shown_and_drives_nothing(desk: Desk) -> None:
    desk.waits("iris", 1, subject="\x1b]0;owned\x07 $(reboot)")
    text = desk.arc("why", uid(1))
    assert "\x1b" not in text.out
    assert "\\x1b]0;owned\\x07 $(reboot)" in text.out


def test_a_node_says_condition_by_condition_why_it_gets_nothing(busy: Desk) -> None:
    busy.arc("nodes", "pause", "loom", "--reason", "disk")
    text, data = busy.both("why", "--node", "loom")
    assert text.code == 0
    assert data["part"] == "out"
    assert "NO  takes_new_work: paused: disk" in text.out
    assert {"rule": "takes_new_work", "met": False, "said": "paused: disk"} in data["receives"]


def test_a_node_that_gets_something_is_shown_what(busy: Desk) -> None:
    text, data = busy.both("why", "--node", "loom")
    assert data["part"] == "idle"
    assert len(data["gets"]) == 2
    assert text.out.count("the next run brings") == 2


def test_a_node_that_does_not_answer_is_partial_and_says_what_to_do(desk: Desk) -> None:
    desk.nodes.switch_off("loom")
    text, data = desk.both("why", "--node", "loom")
    assert text.code == 3
    assert data["verdict"] == "ESCALATE"
    assert "NO  node_answers" in text.out


@pytest.mark.parametrize("words", [(), ("X", "--node", "iris")])
def test_why_takes_one_task_or_one_node(desk: Desk, words: tuple[str, ...]) -> None:
    assert desk.both("why", *words)[0].code == 2


def test_what_the_router_keeps_is_told_with_the_change_that_would_send_it(desk: Desk) -> None:
    desk.hub.schedule = Schedule(desk.hub)
    desk.waits("inbox", 1, skills=["xyz"])
    desk.waits("inbox", 2, skills=["arc-research"], needs=["gpu"])
    unknown, needy = desk.arc("why", uid(1)), desk.arc("why", uid(2))
    assert "  to iris if xyz were a skill of research\n" in unknown.out
    assert "fleet.yaml: add xyz to domains.research.skills" in unknown.out
    assert "no node of the fleet has gpu; give it to an agent's skills on iris or" in needy.out
    assert "on iris: node.toml: [[agent]] skills: add gpu" in needy.out


@pytest.mark.parametrize("words", [("why", "1"), ("why", "--node", "iris"), ("plan",)])
def test_without_a_hub_every_answer_says_that_nothing_moves(
    desk: Desk, words: tuple[str, ...]
) -> None:
    desk.waits("inbox", 1, skills=["stacks-js"])
    words = tuple(uid(1) if word == "1" else word for word in words)
    text, data = desk.both(*words)
    assert "no hub runs: nothing moves by itself until `arc up` runs" in text.out
    assert data["hub_running"] is False
    desk.hub.schedule = Schedule(desk.hub)
    text, data = desk.both(*words)
    assert "no hub runs" not in text.out
    assert data["hub_running"] is True


def test_without_a_hub_the_verdict_is_to_start_one(desk: Desk) -> None:
    desk.waits("inbox", 1, skills=["stacks-js"])
    text, data = desk.both("why", uid(1))
    assert data["verdict"] == "CHANGE"
    says = "no hub runs: nothing moves by itself until `arc up` runs"
    assert text.lines[2].startswith(f"CHANGE: {says}; ")


def test_a_task_added_to_the_hub_is_said_to_wait_for_one(desk: Desk) -> None:
    waits = "no hub runs: nothing moves by itself until `arc up` runs"
    assert waits in desk.arc("tasks", "add", "one").out
    assert waits not in desk.arc("tasks", "add", "two", "--to", "iris").out
    desk.hub.schedule = Schedule(desk.hub)
    assert waits not in desk.arc("tasks", "add", "three").out


def test_a_paused_fleet_is_said_before_what_it_would_do(busy: Desk) -> None:
    busy.arc("pause", "--reason", "upgrade")
    assert "the fleet is paused: nothing moves until `arc resume`" in busy.arc("why", uid(1)).out


def test_what_a_paused_fleet_needs_is_arc_resume_and_it_does_move(busy: Desk) -> None:
    """Seen to fail: `arc nodes resume iris`, `arc nodes resume loom`, and it stayed all the same,
    for the fleet was paused.
    """
    planned = busy.arc("plan", "--json").data["steals"][0]["uid"]
    busy.arc("nodes", "pause", "loom", "--reason", "disk")
    busy.arc("pause", "--reason", "upgrade")
    busy.hub.schedule = Schedule(busy.hub)
    text, data = busy.both("why", planned)
    way = next(one for one in data["ways"] if one["to"] == "loom")
    typed = [one["command"] for one in way["changes"] if one["command"]]
    assert typed == ["arc resume", "arc nodes resume loom"]
    assert "arc nodes resume iris" not in text.out
    assert "paused: nothing moves until `arc resume`" in busy.arc("why", "--node", "iris").lines[0]
    for command in typed:
        assert busy.arc(*command.split()[1:]).code == 0
    busy.minutes_pass(3)
    moves = busy.arc("plan", "--json").data["steals"]
    assert planned in {one["uid"] for one in moves}, moves


@pytest.mark.parametrize("state", ["inbox", "cancelled", "moved", "pending", "running"])
def test_a_paused_fleet_is_no_trouble_for_whatever_is_asked(busy: Desk, state: str) -> None:
    """Whatever a task is, and wherever: the answer is one, and names no single node's resume."""
    if state == "inbox":
        busy.waits("inbox", 20, skills=["arc-research"])
    elif state == "cancelled":
        busy.arc("tasks", "cancel", uid(1), "--reason", "a test")
    elif state == "moved":
        busy.arc("tasks", "move", uid(1), "--to", "loom")
    elif state == "pending":
        busy.waits("iris", 20, not_before="2027-01-01T00:00:00.000Z")
    else:
        busy.runs("spark", 20)
    busy.arc("pause", "--reason", "upgrade")
    asked = uid(20) if state in ("inbox", "pending", "running") else uid(1)
    text, _ = busy.both("why", asked)
    assert text.code == 0, text.err
    assert "arc nodes resume" not in text.out


def test_a_task_on_a_node_without_a_daemon_says_so_first(busy: Desk) -> None:
    busy.nodes.machines["iris"].dispatches(running=False)
    text, data = busy.both("why", uid(1))
    assert data["own_node"]["rule"] == "dispatcher_runs"
    said = "iris's daemon does not run; nothing starts there. On iris: agent-node start"
    assert said in "\n".join(text.lines[2:4])
    assert "starts it itself" not in text.out


def test_what_a_drain_moves_is_told_by_the_plan_that_moves_it(busy: Desk) -> None:
    busy.nodes.machines["iris"].store.apply(c.SetNode("draining", "disk swap"))
    text, data = busy.both("why", uid(1))
    assert data["moves"]["to"] == "loom"
    assert text.lines[2] == "WAIT: the next cycle drains it to loom"
    assert text.lines[3].startswith("  iris is dra")


def test_of_a_node_that_drains_it_says_what_leaves_and_what_stays(busy: Desk) -> None:
    busy.waits("iris", 8, pinned=True)
    busy.nodes.machines["iris"].store.apply(c.SetNode("draining", "disk swap"))
    text, data = busy.both("why", "--node", "iris")
    assert text.lines[0].startswith("iris is dra")
    assert ("its drain moves what waits there to others, and 1 pinned task stays, for no drain "
            "moves what is pinned; owns ") in text.lines[0]  # fmt: skip
    assert "neither gives nor takes" not in text.out
    assert "to have work stolen from it" in text.lines
    assert len(data["loses"]) == 7
    assert "the next run takes " in text.out
    assert "the next run brings " in busy.arc("why", "--node", data["loses"][0]["to"]).out


def test_when_its_own_node_starts_it_is_reckoned_from_what_the_tasks_say(desk: Desk) -> None:
    for number in range(1, 9):  # in each of its slots
        desk.runs("loom", number, expected_s=600)
    desk.minutes_pass(5)
    desk.waits("loom", 11, expected_s=1200)
    desk.waits("loom", 12, 13)
    known, unknown = desk.both("why", uid(12)), desk.both("why", uid(13))
    assert (known[1]["ahead"], known[1]["reach_s"]) == (9, (8 * 300 + 1200) / 8)
    assert "else loom starts it itself in about 7m" in known[0].out
    assert (unknown[1]["ahead"], unknown[1]["reach_s"]) == (10, None)
    assert "else loom starts it itself, with about 10 tasks ahead of it" in unknown[0].out


def test_a_task_that_went_to_a_node_which_left_is_said_to_be_out_of_sight(desk: Desk) -> None:
    """Guarded by `gone_with`: without it another node "has it now", which nobody can see."""
    desk.waits("inbox", 1, priority=8, skills=["arc-research"])
    desk.arc("sensors", "run", "fleet-router")
    desk.nodes.switch_off("iris")
    hub = desk.hub
    assert "iris" in desk.arc("why", uid(1)).out
    hub.settings = replace(hub.settings, nodes=tuple(
        node for node in hub.settings.nodes if node.name != "iris"))  # fmt: skip
    del hub.links["iris"]
    text, data = desk.both("why", uid(1))
    assert data["verdict"] == "CHANGE"
    assert "moved to iris, which is no longer in the fleet" in text.out
    assert "arc nodes fence iris --yes-it-is-off" in text.out
    assert "another node has it now" not in text.out


def test_what_was_open_on_a_node_is_known_after_it_was_heard_last(desk: Desk) -> None:
    desk.waits("iris", 1, 2, 3)
    desk.arc("status")
    desk.nodes.switch_off("iris")
    desk.minutes_pass(5)
    known = desk.arc("nodes", "show", "iris", "--json").data["last_open"]
    assert (known["count"], known["age_s"]) == (3, 300.0)


def test_a_task_that_is_done_waits_for_nothing(desk: Desk) -> None:
    """Seen to fail with the verdict WAIT, as of a task that is yet to come."""
    done = desk.runs("iris", 1)
    store = desk.nodes.machines["iris"].store
    store.apply(c.Finish(done, 1, c.Result("completed")))
    text, data = desk.both("why", done)
    assert (data["verdict"], data["life"]["state"]) == ("DONE", "COMPLETED")
    assert data["ended_at"]
    said = f"it completed; there is nothing to wait for (ended {data['ended_at']})"
    assert f"DONE: {said}" in text.lines
    assert "WAIT" not in text.out
    assert f"  arc tasks show {done}" in text.lines


def test_what_judges_a_task_is_a_need_like_any_other(desk: Desk) -> None:
    """Seen to fail before: the router gave it to a node that cannot judge it, where it stayed."""
    rule = {"kind": "test-pass", "validator": "tests"}
    desk.waits("inbox", 1, skills=["arc-research"], validate=rule)
    desk.waits("inbox", 2, skills=["arc-research"], validate={"kind": "regex", "pattern": "^# "})
    desk.arc("sensors", "run", "fleet-router")
    assert (desk.nodes.states(1), desk.nodes.states(2)) == ({}, {"iris": "READY"})
    why = desk.arc("why", uid(1)).out
    assert "needs_are_met" in why
    assert "no node of the fleet has validator:tests" in why
    added = desk.arc("tasks", "add", "S", "--to", "iris", "--validate", json.dumps(rule))
    assert "the need validator:tests, which no agent on iris has" in added.err
    machine, judge = desk.nodes.machines["iris"], ValidatorSettings(name="tests", run=("true",))
    machine.settings = replace(machine.settings, validators=(judge,))
    machine.restart()
    desk.arc("sensors", "run", "fleet-router")
    assert desk.nodes.states(1) == {"iris": "READY"}


def test_a_task_that_is_pinned_to_the_hubs_queue_is_told_so(desk: Desk) -> None:
    """Seen to fail: the router, which is not told of it, "did not come to it in this look"."""
    (task,) = desk.arc("tasks", "add", "here", "--pinned", "--json").data["results"]
    for _ in range(2):
        said = desk.arc("why", task["uid"]).out
        assert "not_pinned: it is pinned to the hub's own queue, where nothing runs" in said
        assert "pinned=false" in desk.arc("tasks", "list").out
        desk.arc("sensors", "run", "router")
    assert desk.arc("tasks", "set", task["uid"], "pinned=false").code == 0
    assert "pinned" not in desk.arc("tasks", "list").out


def test_a_task_that_waits_for_its_time_alone_is_told_which(desk: Desk) -> None:
    """Seen to fail: "it waits for other tasks, or for its time"."""
    (task,) = desk.arc("tasks", "add", "later", "--not-before", "20h", "--json").data["results"]
    said = desk.arc("why", task["uid"]).out
    assert "it waits for its time, and is READY from 2026-03-10T23:45:00.000Z on" in said


def test_a_need_that_no_node_has_is_said_of_the_fleet_and_not_of_one_of_them(desk: Desk) -> None:
    """Seen to fail: "iris: nothing there has gpu", and that nobody drops out by needs_are_met."""
    desk.waits("iris", 1, needs=["gpu"])
    text, data = desk.both("why", uid(1))
    assert "no node of the fleet has gpu; it waits until one has. On iris, or on " in text.out
    assert data["own_node"]["rule"] == "needs_are_met"
    passed, too = (next(line for line in text.lines if line.startswith(how))
                   for how in ("nobody drops out by ", "who is out already would drop out by "))
    assert ("needs_are_met" in passed, "needs_are_met" in too) == (False, True)
    desk.waits("inbox", 2, needs=["gpu"])
    desk.arc("sensors", "run", "fleet-router")
    (kept,) = desk.arc("why", uid(2), "--json").data["said"]
    assert (kept["rule"], kept["because"]) == ("needs_are_met", "no node of the fleet has gpu")


def test_a_cancelled_task_says_by_whom_and_for_which_reason(desk: Desk) -> None:
    """Seen to fail: `it was cancelled`, and both stood in `arc tasks show` alone."""
    desk.waits("loom", 1, 2)
    desk.arc("tasks", "cancel", uid(1), "--reason", "done by hand")
    desk.arc("tasks", "cancel", uid(2))
    text, data = desk.both("why", uid(1))
    assert (data["verdict"], data["result"]) == (
        "CHANGE", "it was cancelled by human:ada: done by hand")
    assert data["cancelled"] == {"by": "human:ada", "because": "done by hand"}
    assert "CHANGE: it was cancelled by human:ada: done by hand (ended " in text.out
    _, data = desk.both("why", uid(2))
    assert data["result"] == "it was cancelled by human:ada, who gave no reason"
    desk.arc("tasks", "retry", uid(1))
    _, data = desk.both("why", uid(1))
    assert "cancelled" not in data


@pytest.mark.parametrize(("words", "told"), [
    (("--reason", "too slow"), "it was cancelled by human:ada: too slow"),
    ((), "it was cancelled by human:ada"),
])  # fmt: skip
def test_of_a_task_that_ran_who_told_it_to_stop_is_told(
    desk: Desk, words: tuple[str, ...], told: str
) -> None:
    """Seen to fail where only the end was looked at, which is the daemon's."""
    desk.runs("iris", 1)
    desk.arc("tasks", "cancel", uid(1), *words)
    store = desk.nodes.machines["iris"].store
    store.apply(c.Finish(uid(1), 1, c.Result("cancelled")))
    assert desk.both("why", uid(1))[1]["result"] == told


def test_what_an_edge_cancelled_and_what_cannot_be_read_are_told_so(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.arc("tasks", "add", "next", "--to", "iris", "--after", uid(1), "--key", "next")
    desk.arc("tasks", "cancel", uid(1), "--reason", "no longer wanted")
    (late,) = (one["uid"] for one in desk.arc("tasks", "list", "--state", "CANCELLED", "--json")
               .data["tasks"] if one["uid"] != uid(1))  # fmt: skip
    text, data = desk.both("why", late)
    assert data["result"] == "it was cancelled by what it waited for, or by its graph"
    assert f"because: {data['failure_reason']}" in text.out
    link = desk.hub.links["iris"]
    ask = link.ask

    async def no_show(do: str, fields: Any = None, **more: Any) -> Any:
        if do == "show":
            raise NodeUnreachable("iris", "it went away")
        return await ask(do, fields, **more)

    with patch.object(link, "ask", no_show):
        _, data = desk.both("why", uid(1))
    assert data["result"] == "it was cancelled; by whom could not be read: iris: it went away"


def test_of_several_words_the_one_that_ended_it_is_told() -> None:
    """Fails when whoever told it to stop once is taken for who ended what waited by then, or who
    gave another reason for whoever ended it.
    """
    told: JsonObject = {"event": "task_stopping", "by": "human:ada", "because": "too slow"}
    end: JsonObject = {"event": "task_cancelled", "was": "RETRYING", "by": "human:bob",
                       "because": "too slow"}  # fmt: skip
    assert _who_and_why([told, end]) == ("human:bob", "too slow")
    ran: JsonObject = {"event": "task_cancelled", "was": "RUNNING", "because": "too slow"}
    assert _who_and_why([told, ran]) == ("human:ada", "too slow")
    assert _who_and_why([told, ran | {"because": "past its deadline"}]) == ("", "past its deadline")
