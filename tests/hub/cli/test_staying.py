"""`arc tasks list` and NEEDS YOU say what holds now: of the node first, then of the last cycle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.text import duration, safe_text
from arc.decisions.why_states import NO_HUB
from arc.schedule import Schedule
from arc.sensor import Decided, Moved, SensorReport
from tests.builders import uid, xfer
from tests.hub.cli.desk import Desk, RealFleet
from tests.hub.cli.test_budget import a_day_has


def reason(desk: Desk, number: int) -> tuple[str, str]:
    listed = desk.arc("tasks", "list", "--json").data["tasks"]
    found = next(one for one in listed if one["uid"] == uid(number))
    return found["rule"], found["because"]


def needs(desk: Desk) -> list[tuple[str, str, str]]:
    said = desk.arc("status", "--json").data["needs_you"]
    return [(one["node"], one["text"], one["try"]) for one in said]


def test_a_task_on_a_node_that_starts_nothing_stays_for_the_nodes_reason(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.arc("nodes", "pause", "iris", "--reason", "disk swap")
    assert reason(desk, 1) == ("takes_new_work", "iris is paused: disk swap")
    desk.arc("nodes", "drain", "iris", "--dry-run")
    desk.nodes.machines["iris"].dispatches(running=False)
    assert reason(desk, 1) == (
        "dispatcher_runs", "iris's daemon does not run: on iris: agent-node start")


def test_every_hint_to_start_a_node_names_its_home(desk: Desk) -> None:
    """Seen to fail: `agent-node start` alone started another node, in the usual place."""
    desk.waits("iris", 1)
    desk.nodes.machines["iris"].dispatches(running=False)
    nodes = tuple(replace(one, home="/far/iris") if one.name == "iris" else one
                  for one in desk.hub.settings.nodes)  # fmt: skip
    desk.hub.settings = replace(desk.hub.settings, nodes=nodes)
    start = "on iris: AGENT_NODE_HOME=/far/iris agent-node start"
    assert reason(desk, 1)[1].endswith(start)
    assert [one[2] for one in needs(desk) if one[0] == "iris"] == [start]
    for words in (("status",), ("doctor",), ("why", uid(1))):
        out = desk.arc(*words).out
        assert start[1:] in out, words
        assert "iris: agent-node start" not in out


def test_a_task_on_a_node_that_is_not_busy_stays_for_that_and_its_count_is_of_now(
    desk: Desk
) -> None:
    for number in (1, 2):
        desk.waits("iris", number, priority=8)
        rule, because = reason(desk, 1)
        assert rule == "busy_node_is_busy", because
        assert because.startswith(f"{number} waiting; ")
    assert because in desk.arc("tasks").out


def test_a_reason_from_before_the_last_move_is_not_the_reason_now(desk: Desk) -> None:
    """Seen to fail with the newest reason believed, whatever has happened since."""
    desk.waits("inbox", 1, skills=["deploy"])
    desk.arc("sensors", "run", "fleet-router")
    assert reason(desk, 1)[0]
    desk.minutes_pass(1)
    before = reason(desk, 1)
    assert desk.arc("tasks", "move", uid(1), "--to", "spark").code == 0
    assert reason(desk, 1)[1].startswith("1 waiting; ")
    desk.waits("spark", *range(2, 12))
    assert reason(desk, 1) == ("", "") != before


def test_a_reason_of_an_old_run_says_how_old_it_is(desk: Desk) -> None:
    """Seen to fail: `the fleet has no other node`, said before two others were added."""
    desk.waits("inbox", 1, skills=["deploy"])
    desk.arc("sensors", "run", "fleet-router")
    rule, because = reason(desk, 1)
    assert "said" not in because
    every_s = next(one.every_s for one in desk.hub.sensors if one.name == "fleet-router")
    desk.minutes_pass(2 * every_s / 60)
    assert reason(desk, 1) == (rule, because)
    desk.minutes_pass(1)
    assert reason(desk, 1) == (rule, f"{because} (said {duration(2 * every_s + 60)} ago)")


def test_a_daemon_that_died_is_told_at_once_with_a_count_of_now(desk: Desk) -> None:
    """Seen to fail with the words of the last run for health: its count was an older one."""
    desk.hub.schedule = Schedule(desk.hub)
    desk.waits("iris", 1)
    desk.nodes.machines["iris"].dispatches(running=False)
    assert needs(desk) == [
        ("iris", "its daemon does not run; 1 task waiting there", "on iris: agent-node start")]
    desk.arc("sensors", "run", "fleet-health")
    desk.waits("iris", 2)
    assert next(one for one in needs(desk) if one[0] == "iris")[1] == (
        "its daemon does not run; 2 tasks waiting there")
    assert sum("daemon" in one[1] or "dispatcher" in one[1] for one in needs(desk)) == 1
    iris = next(line for line in desk.arc("status").lines if line.startswith("iris"))
    assert iris.endswith("its daemon does not run: on iris: agent-node start")
    desk.nodes.machines["iris"].dispatches(running=True)
    assert not [one for one in needs(desk) if one[0] == "iris" and "daemon" in one[1]]


def test_what_a_node_says_itself_is_not_said_again_as_an_alarm(desk: Desk) -> None:
    desk.waits("iris", 1, needs=["gpu"])
    desk.arc("sensors", "run", "fleet-health")
    assert [text for _, text, _ in needs(desk)].count("1 READY, but no agent here has: gpu") == 1
    assert desk.arc("status").out.count("no agent here has: gpu") == 1


def test_a_node_that_does_not_answer_is_told_with_the_command_that_looks_closer(
    desk: Desk
) -> None:
    desk.hub.schedule = Schedule(desk.hub)
    desk.nodes.switch_off("loom")
    (one,) = needs(desk)
    assert one[0] == "loom"
    assert one[2] == "arc doctor --node loom"


def test_a_node_whose_daemon_never_ran_says_that_and_no_needs(real: RealFleet) -> None:
    """Seen to fail with who is able to do what asked of agents that nobody knows yet."""
    real.arc("tasks", "add", "work", "--to", "loom")
    told = real.arc("status", "--json").data["needs_you"]
    loom = [one for one in told if one["node"] == "loom"]
    assert [one["text"] for one in loom] == [
        "1 READY, and no daemon has run here yet: agent-node run"]


def test_a_fleet_yaml_that_cannot_be_obeyed_needs_a_person(desk: Desk) -> None:
    desk.hub.schedule = Schedule(desk.hub)
    desk.hub.complaint = "line 3: unknown key 'nodse'"
    text, data = desk.both("status")
    assert "line 3: unknown key 'nodse'" in text.out
    assert data["needs_you"][0]["try"] == "arc config check"
    assert data["needs_you"][0]["node"] == "fleet.yaml"


@pytest.mark.parametrize("width", ["40", "60"])
def test_a_narrow_terminal_shows_the_reason_and_no_line_of_a_move_too_long(
    desk: Desk, width: str
) -> None:
    desk.waits("inbox", 1, priority=8)
    desk.arc("sensors", "run", "fleet-router")
    desk.arc("nodes", "pause", "iris", "--reason", "disk")
    seen = desk.arc("status", typed=b"", environ={"COLUMNS": width})
    assert "disk" in next(line for line in seen.lines if line.startswith("iris"))
    assert len(seen.lines[-1]) <= int(width)


def test_a_move_off_a_draining_node_says_that_it_drains(desk: Desk) -> None:
    desk.waits("loom", 1, priority=9)
    desk.arc("nodes", "drain", "loom")
    assert "loom drains; " in desk.arc("status").lines[-1]


def test_the_lease_of_a_command_is_not_called_a_hub(desk: Desk) -> None:
    checks: Any = desk.arc("doctor", "--json").data["checks"]
    lease = next(one for one in checks if one["what"] == "lease")
    assert lease["text"] == "term 1, no hub runs; held for this command"
    assert safe_text(lease["text"]) in desk.arc("doctor").out


def test_a_task_that_came_back_is_looked_at_anew_before_a_reason_is_given(desk: Desk) -> None:
    """Seen to fail with the move left out of sight: the reason was from before it went."""
    desk.waits("iris", *range(1, 31), priority=8)
    desk.minutes_pass(5)
    desk.arc("sensors", "run", "fleet-rebalance")
    for stays in (1, 24):  # the last one was looked at, the first one only counted
        assert desk.nodes.states(stays) == {"iris": "READY"}
        assert reason(desk, stays)[0] == "receiver_has_room"
    for node in ("loom", "iris"):
        desk.minutes_pass(1)
        moved = desk.arc("tasks", "move", uid(stays), "--to", node)
        assert moved.code == 0, moved
    assert reason(desk, stays) == ("", "")


def test_an_urgent_task_of_a_busy_node_stays_for_being_urgent(desk: Desk) -> None:
    desk.waits("iris", *range(1, 11), priority=1)
    assert reason(desk, 1) == ("low_enough_priority", "P1; we steal P5 and less urgent")


def failed(desk: Desk, number: int, **fields: Any) -> dict[str, Any]:
    """A task that failed on iris, as its node tells it."""
    store = desk.nodes.machines["iris"].store
    task = desk.runs("iris", number, **fields)
    store.apply(c.Finish(task, 1, c.Result("failed", error_kind="crash")))
    shown = desk.arc("tasks", "show", uid(number), "--json").data["task"]
    assert isinstance(shown, dict)
    return shown


def test_a_task_that_is_tried_again_says_when_and_which_try_that_is(desk: Desk) -> None:
    """The list had an empty reason, and `why` named no moment."""
    at = failed(desk, 1)["retry_at"]
    said = f"again at {at[11:19]}, attempt 2 of 3"
    assert reason(desk, 1) == ("", said)
    assert said in desk.arc("tasks").out
    text, data = desk.both("why", uid(1))
    assert f"WAIT: it failed and is tried {said}" in text.out
    assert data["retry_at"] == at
    desk.minutes_pass(-24 * 60)
    assert reason(desk, 1) == ("", f"again at {at[:10]} {at[11:19]}, attempt 2 of 3")


def test_a_dead_letter_says_where_more_is_read(desk: Desk) -> None:
    assert failed(desk, 1, max_attempts=1)["state"] == "DEAD_LETTERED"
    assert reason(desk, 1)[1].endswith(f"arc dead show {uid(1)}")


def test_a_task_that_no_run_of_the_router_has_seen_says_so(desk: Desk) -> None:
    desk.waits("inbox", 1)
    assert reason(desk, 1) == (
        "", f"the router has not seen it yet: {NO_HUB}")


def test_what_money_kept_and_lets_go_is_not_said_to_be_unseen(desk: Desk) -> None:
    """Seen to fail: that the router had not seen it yet, a minute after a run had tried to."""
    a_day_has(desk, "1")
    desk.waits("inbox", 1, max_cost_usd="1")
    desk.arc("sensors", "run", "fleet-router")
    desk.waits("inbox", 2)
    desk.minutes_pass(1)
    desk.arc("sensors", "run", "fleet-router")
    assert reason(desk, 2)[0] == "over_budget"
    desk.minutes_pass(1)
    a_day_has(desk, "5.5")
    assert reason(desk, 2) == (
        "", f"READY again, and the router has not looked since; last it was over_budget: {NO_HUB}")
    desk.arc("sensors", "run", "fleet-router")
    assert desk.arc("tasks", "show", uid(2), "--json").data["node"] != "inbox"


def test_what_a_node_refused_at_the_last_step_says_so_until_a_run_says_otherwise(
    desk: Desk,
) -> None:
    """Seen to fail: it was said to be unseen, for the plan that was to move it kept nothing."""
    desk.waits("inbox", 1)
    refused = Moved(xfer(1), uid(1), "inbox", "loom", "kept", "routed", 5, rule="disk_full",
                    because="loom has no room left")  # fmt: skip
    desk.minutes_pass(1)
    desk.hub.journal.runs.add_moves((refused,))
    assert reason(desk, 1) == ("disk_full", "loom has no room left")
    desk.minutes_pass(1)
    said = Decided("inbox", "load_below_hard", 1, "loom is full", uid(1))
    desk.hub.journal.runs.add(SensorReport("fleet-router", "done", "", decisions=(said,)),
                              began=desk.hub.clock.now(), because="due")  # fmt: skip
    assert reason(desk, 1) == ("load_below_hard", "loom is full")


JUDGED = {"kind": "regex", "pattern": "^# "}  # which every node can do


def test_a_task_that_nobody_can_take_says_that_before_all_else(desk: Desk) -> None:
    """Seen to fail: `busy_node_is_busy` on a node, and at the hub that no router had seen it."""
    desk.waits("iris", 1, needs=["gpu"])
    desk.waits("inbox", 2, needs=["gpu"])
    desk.waits("inbox", 3, validate=JUDGED)
    nobody = ("needs_are_met", "no node of the fleet has gpu")
    assert (reason(desk, 1), reason(desk, 2), reason(desk, 3)[0]) == (nobody, nobody, "")
    desk.arc("sensors", "run", "fleet-router")
    desk.arc("nodes", "pause", "iris", "--reason", "disk swap")
    assert (reason(desk, 1), reason(desk, 2)) == (nobody, nobody)
    desk.nodes.switch_off("loom")
    unsure = ("needs_are_met", "no node that was seen has gpu (not seen: loom)")
    assert (reason(desk, 1), reason(desk, 2)) == (unsure, unsure)


def test_what_waits_at_the_hub_for_what_nobody_has_needs_a_person(desk: Desk) -> None:
    """Seen to fail: it was said only of what lay on a node."""
    desk.hub.schedule = Schedule(desk.hub)
    desk.waits("inbox", 1, 2, needs=["gpu"])
    desk.waits("inbox", 3, validate=JUDGED)
    listed = "arc tasks list --node inbox"
    assert needs(desk) == [("inbox", "2 READY, but no node of the fleet has gpu", listed)]
    assert "  inbox: 2 READY, but no node of the fleet has gpu" in desk.arc("status").lines
    desk.nodes.switch_off("loom")
    assert needs(desk)[0] == (
        "inbox", "2 READY, but no node that was seen has gpu (not seen: loom)", listed)


def test_kinds_of_needs_do_not_push_each_other_out_at_the_hub(desk: Desk) -> None:
    """Seen to fail: of its own queue it was told twenty, most of which some node may well meet."""
    for number in range(1, 31):
        desk.waits("inbox", number, needs=[f"lens-{number}"])
    told = " ".join(text for _, text, _ in needs(desk))
    assert all(f"lens-{number}" in told for number in range(1, 31))
