"""What may be spent and what was, from the operator's side; unknown is never nothing."""

from __future__ import annotations

import asyncio

from agent_node.strict import JsonObject
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dead import dies


def test_without_limits_it_says_so_and_what_was_heard_of_costs(desk: Desk) -> None:
    dies(desk, "iris", 1, cost="0.25")
    health = next(one for one in desk.hub.sensors if one.name == "fleet-health")
    asyncio.run(health.run(desk.hub, desk.clock.now()))
    text, data = desk.both("budget")
    assert data["scopes"] == []
    assert data["heard_today_usd"] == "0.25"
    assert {one["node"]: (one["spent_today_usd"], one["heard_today_usd"])
            for one in data["nodes"]} == {
        "iris": ("0.25", "0.25"), "loom": ("0", "0.00"), "spark": ("0", "0.00")}
    assert text.lines[0] == "no limit is set"


def test_a_node_that_does_not_answer_is_unknown_and_not_without_a_limit(desk: Desk) -> None:
    desk.nodes.switch_off("loom")
    text, data = desk.both("budget")
    assert text.code == 3
    assert data["unread"] == ["loom"]
    assert "unknown" in text.out
    assert "where it could be seen; not loom" in text.lines[0]


def test_a_limit_is_shown_with_what_is_left(desk: Desk) -> None:
    asked: JsonObject = {"scope": "fleet", "limit_usd": "5", "urgent_overdraft": True}
    asyncio.run(desk.hub.inbox.ask("set_budget", asked))
    text, data = desk.both("budget")
    (scope,) = data["scopes"]
    assert (scope["store"], scope["scope"], scope["limit_usd"], scope["remaining_usd"]) == (
        "inbox", "fleet", "5", "5")
    assert "the fleet, a day" in text.out
