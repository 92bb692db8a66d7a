"""`arc plan` shows the very plan that the sensors would carry out, and changes nothing."""

from __future__ import annotations

from tests.builders import uid
from tests.hub.cli.desk import Desk


def test_count_first_then_each_move_then_the_rules_that_keep_the_others(desk: Desk) -> None:
    desk.waits("iris", 1, 2, 3, 4, 5, 6, 7, priority=6, skills=["arc-research"])
    desk.waits("iris", 8, 9, priority=2)
    desk.waits("inbox", 10, skills=["stacks-js"])
    desk.minutes_pass(5)
    text, data = desk.both("plan")
    assert text.code == 0
    assert text.lines[0].startswith("plan (arc0): 3 steals, 0 drained tasks, 1 route planned")
    assert [step["to"] for step in data["steals"]] == ["loom"] * 3
    assert [step["to"] for step in data["routes"]] == ["spark"]
    assert "low_enough_priority" in text.out
    kept = sum(one["count"] for one in data["counts"] if one["node"] == "iris")
    assert kept + len(data["steals"]) == 9


def test_a_plan_changes_nothing(desk: Desk) -> None:
    desk.waits("iris", 1, 2, 3, 4, 5, 6, 7, priority=6, skills=["arc-research"])
    desk.minutes_pass(5)
    first = desk.arc("plan").out
    assert desk.arc("plan").out == first
    assert desk.nodes.states(7) == {"iris": "READY"}


def test_what_could_not_be_seen_is_in_the_plan_and_in_the_exit_code(desk: Desk) -> None:
    desk.nodes.switch_off("loom")
    text, data = desk.both("plan")
    assert text.code == 3
    assert [one["node"] for one in data["unseen"]] == ["loom"]
    assert "unseen loom: no route to it" in text.out


def test_without_an_idle_and_a_busy_node_it_says_which_is_missing(desk: Desk) -> None:
    text, data = desk.both("plan")
    assert data["skipped"] in {"no idle", "no busy"}
    assert f"no rebalance: {data['skipped']}" in text.out


def test_a_paused_fleet_plans_and_says_that_nothing_of_it_is_done(desk: Desk) -> None:
    desk.arc("pause", "--reason", "audit")
    text, data = desk.both("plan")
    assert data["paused"] == "paused by human:ada: audit"
    assert "nothing of it is done: the fleet is paused by human:ada: audit" in text.out


def test_the_short_and_the_long_spelling_are_one_thing(desk: Desk) -> None:
    desk.waits("inbox", 1, skills=["stacks-js"])
    plan = desk.arc("plan").out
    assert desk.arc("skills", "run", "--name", "fleet-rebalance", "--", "plan").out == plan
    routes = desk.arc("skills", "run", "--name", "fleet-router", "--", "dry-run").out
    assert desk.arc("sensors", "run", "fleet-router", "--dry-run").out == routes
    assert [line for line in plan.splitlines() if line.startswith("  route")] == [
        line for line in routes.splitlines() if line.startswith("  route")]
    assert uid(1)[-4:].lower() in routes
