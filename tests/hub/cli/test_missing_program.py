"""A node whose agent has no program to run gets nothing, and every command says why."""

from __future__ import annotations

from agent_node import commands as c
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_nothing_starts import ADD, told, warned

GONE = "there is no program claude here"
MEANS = f"agent iris: {GONE}"


def without_its_program(desk: Desk) -> None:
    """As its daemon found it."""
    desk.nodes.machines["iris"].store.live.missing["iris"] = GONE


def test_a_node_without_its_program_says_so_wherever_it_is_looked_at(desk: Desk) -> None:
    """Seen to fail: `idle`, `FREE 1/1` and no reason, while every task that it was given died."""
    without_its_program(desk)
    text, data = desk.both("status")
    (iris,) = [one for one in data["nodes"] if one["node"] == "iris"]
    assert (iris["free_slots"], iris["reason"]) == (0, MEANS)
    assert any("iris" in line and line.endswith(MEANS) for line in text.lines)
    shown = desk.arc("nodes", "show", "iris")
    assert f", held: {GONE}" in shown.out
    assert "iris, paused" not in shown.out


def test_a_task_for_a_node_without_its_program_is_taken_with_a_warning(desk: Desk) -> None:
    """Guard: the word for agents that a person paused, which no `resume` would end here."""
    without_its_program(desk)
    (said,) = warned(desk, *ADD)
    assert said == (f"iris, {MEANS}: nothing starts there until it is installed, or node.toml "
                    "names another; arc doctor --node iris")  # fmt: skip


def test_why_says_that_what_waits_there_waits_for_the_program(desk: Desk) -> None:
    without_its_program(desk)
    desk.waits("iris", 1)
    why = desk.arc("why", uid(1))
    assert f"iris, {MEANS}; nothing starts there until it is installed" in why.out


def test_needs_you_names_what_to_type_for_a_program_that_is_missing(desk: Desk) -> None:
    """Seen to fail: `arc nodes show iris`, which says that it is missing once more."""
    without_its_program(desk)
    (said,) = [one for one in desk.both("status")[1]["needs_you"] if one["node"] == "iris"]
    assert said["text"].startswith(f"{MEANS}; it is given work again once it can be started")
    assert said["try"] == "on iris: agent-node doctor"


def test_a_pause_by_a_person_is_told_as_such_whatever_is_missing(desk: Desk) -> None:
    without_its_program(desk)
    told(desk, c.SetNode("paused", "", agent="iris"))
    (said,) = warned(desk, *ADD)
    assert said.startswith("every agent of iris is paused")


def test_a_node_that_can_start_nothing_is_called_neither_idle_nor_working(desk: Desk) -> None:
    """Seen to fail: `idle 1m 33s`, one of `2 idle`, and `working` once a task waited there."""
    without_its_program(desk)
    for waits in (0, 1):
        if waits:
            desk.waits("iris", 1)
        text, data = desk.both("status")
        assert [one["state"] for one in data["nodes"] if one["node"] == "iris"] == ["no_agent"]
        (line,) = [line for line in text.lines if line.startswith("iris ")]
        assert line.split()[1:3] == ["no_agent", str(waits)], "and not since when it is idle"
        shown = desk.arc("nodes", "show", "iris").lines[0]
        assert shown.split()[1] == "no_agent"
    assert "1 no_agent" in desk.arc("sensors", "run", "fleet-health").out


def test_a_node_whose_agents_a_person_paused_is_not_idle_either_and_says_why(desk: Desk) -> None:
    """Seen to fail: `idle`, without a reason."""
    told(desk, c.SetNode("paused", "", agent="iris"))
    (iris,) = [one for one in desk.both("status")[1]["nodes"] if one["node"] == "iris"]
    assert (iris["state"], iris["reason"]) == ("no_agent", "no agent there takes work")


def test_a_node_that_only_ends_what_it_runs_is_working(desk: Desk) -> None:
    """Seen to fail: `no_agent`, while a task ran there."""
    desk.runs("iris", 1)
    told(desk, c.SetNode("paused", "", agent="iris"))
    (iris,) = [one for one in desk.both("status")[1]["nodes"] if one["node"] == "iris"]
    assert iris["state"] == "working"
    desk.arc("sensors", "run", "fleet-health")
    assert "no_agent" not in desk.arc("nodes", "list").out


def test_the_list_says_first_that_what_waits_there_starts_nowhere(desk: Desk) -> None:
    """Seen to fail: `busy_node_is_busy: 1 waiting; we steal above 5`."""
    without_its_program(desk)
    desk.waits("iris", 1)
    (line,) = [one for one in desk.arc("tasks", "list").lines if "iris" in one]
    assert f"has_an_agent: iris: no agent there takes work: {MEANS}" in line


def test_why_a_node_is_given_nothing_names_the_program(desk: Desk) -> None:
    """Seen to fail: `no free slot of 8, and it starts nothing now`."""
    without_its_program(desk)
    says = desk.arc("why", "--node", "iris").out
    assert f"no free slot of 8, and it starts nothing now: {MEANS}" in says


def test_the_node_as_a_whole_calls_its_agent_missing_and_names_the_cure(desk: Desk) -> None:
    """Seen to fail: `agent iris: available`, and no word of what mends it."""
    without_its_program(desk)
    text, data = desk.both("nodes", "show", "iris")
    (line,) = [line.strip() for line in text.lines if line.strip().startswith("agent iris: ")]
    assert line.startswith("agent iris: missing, 0 of 8 slots")
    assert "mend run or cwd in its node.toml, then there agent-node stop, agent-node start" in line
    assert data["agents"][0]["state"] == "available", "as the node reports it"
