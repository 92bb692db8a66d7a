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
