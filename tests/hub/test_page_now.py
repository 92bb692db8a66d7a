"""What an open page lives by is told without asking any node, and costs nothing while it is so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_node.strict import JsonObject
from arc.decisions.limits import GOES_BY, LIMITS
from arc.decisions.view import FleetView, NodeSeen
from arc.operations.page_now import page_now
from arc.schedule import Schedule
from arc.settings import NodeEntry
from arc.simulate.policies import parse_policy
from tests.hub.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def now(desk: Desk, known: str = "") -> Any:
    args: JsonObject = {"known": known} if known else {}
    return asyncio.run(page_now(desk.hub, args)).data


def test_before_the_first_look_every_node_is_there_and_none_is_known(desk: Desk) -> None:
    said = now(desk)
    assert said["looked_at"] is None
    seen = {name: (one["seen"], one["rule"]) for name, one in said["nodes"].items()}
    assert seen == dict.fromkeys(("iris", "loom", "spark"), (False, "not_asked"))
    assert (said["inbox"], said["needs_you"], said["header"]["inbox"]) == (None, [], None)


def test_every_limit_that_a_slider_moves_is_told_as_it_is(desk: Desk) -> None:
    told = now(desk)["limits"]
    missing = [key for key in LIMITS if key not in told and f"{key}_s" not in told]
    assert missing == ["on_idle"]  # it is no number
    assert all(told[key] is not None for key in told)


def test_of_each_policy_it_tells_the_limits_that_a_replay_goes_by(desk: Desk) -> None:
    """Seen to fail: of the policy that does not decide nothing was told, and sliders stood there
    as if it had been.
    """
    told = now(desk)["policies"]
    assert {policy: tuple(limits) for policy, limits in told.items()} == GOES_BY
    for policy, limits in told.items():
        pairs = ",".join(f"{key}={str(value).lower() if isinstance(value, bool) else value}"
                         for key, value in limits.items())  # fmt: skip
        usual = parse_policy(policy, desk.hub.settings)
        assert parse_policy(f"{policy}:{pairs}", desk.hub.settings).limits_like(usual), policy
    assert told["arc0"]["idle_min"] != "30s"
    settings = desk.hub.settings
    desk.hub.settings = replace(settings, steal=replace(settings.steal, idle_min_s=30.0))
    assert now(desk)["policies"]["arc0"]["idle_min"] == "30s"
    assert now(desk)["policies"]["swift"] == told["swift"]


def test_it_tells_what_status_told_and_asks_no_node(desk: Desk) -> None:
    """Seen to fail with a look in the place of what is remembered."""
    desk.waits("iris", 1, 2, 3)
    desk.nodes.machines["loom"].off = True
    desk.hub.schedule = Schedule(desk.hub)  # a page is told by a hub that runs
    status = desk.arc("status", "--json").data
    asked = desk.nodes.weather.messages
    said = now(desk)
    assert desk.nodes.weather.messages == asked
    assert said["looked_at"] is not None
    for one in status["nodes"]:
        shown = said["nodes"][one["node"]]
        assert {name: shown[name] for name in ("seen", "state")} == {
            name: one[name] for name in ("seen", "state")}
    assert said["nodes"]["iris"]["pending"] == said["header"]["waiting"] == 3
    assert [one["node"] for one in said["needs_you"]] == [
        one["node"] for one in status["needs_you"]]
    assert "age_s" not in said["nodes"]["iris"]
    assert said["nodes"]["iris"]["at"] <= said["looked_at"]


def test_who_knows_it_already_is_told_that_and_no_more(desk: Desk) -> None:
    first = now(desk)
    assert now(desk, first["version"]) == {"version": first["version"], "unchanged": True}
    desk.minutes_pass(0.05)
    assert now(desk, first["version"])["unchanged"] is True
    desk.hub.journal.runs.log("something_happened")
    assert now(desk, first["version"])["unchanged"] is False
    second = now(desk)["version"]
    desk.arc("status")
    assert now(desk, second)["unchanged"] is False
    third = now(desk)["version"]
    desk.hub.settings = replace(desk.hub.settings, budget_per_day="3.00")
    assert now(desk, third)["header"]["budget_per_day_usd"] == "3.00"
    assert now(desk, "of another hub")["unchanged"] is False


def test_moves_runs_and_words_of_people_show_at_once(desk: Desk) -> None:
    (one,) = desk.waits("iris", 1)
    desk.arc("tasks", "move", one, "--to", "loom", "--reason", "x")
    said = now(desk)
    assert [(move["uid"], move["from"], move["to"], move["outcome"]) for move in said["moves"]] == [
        (one, "iris", "loom", "moved")]
    assert said["header"]["moved_24h"] == 1
    desk.arc("pause", "--reason", "night")
    assert now(desk)["hub"]["paused"]["reason"] == "night"
    desk.arc("nodes", "suspend", "spark", "--reason", "away")
    assert now(desk)["nodes"]["spark"]["state"] == "suspended"
    desk.arc("sensors", "run", "fleet-health")
    assert now(desk)["cursors"]["run"] > said["cursors"]["run"]


def test_five_hundred_nodes_cost_a_second_of_watching_very_little(desk: Desk) -> None:
    """A bound far above what it takes on a quiet machine; the figures stand in docs/page.md."""
    desk.arc("status")
    view = desk.hub.last_view
    assert view is not None
    iris = view.node("iris")
    assert isinstance(iris, NodeSeen)
    names = [f"n{n}" for n in range(500)]
    desk.hub.settings = replace(desk.hub.settings, nodes=tuple(NodeEntry(name, local=True)
                                                               for name in names))
    desk.hub.last_view = FleetView(view.at, tuple(replace(iris, name=name) for name in names))
    asyncio.run(page_now(desk.hub, {}))
    took: list[float] = []
    for n in range(20):
        desk.hub.journal.runs.log("something_happened")
        desk.hub.last_look_s += 0.001 * (n % 2)  # every other time there was a look
        began = time.process_time()  # beside other tests the wall's time is theirs, too
        asyncio.run(page_now(desk.hub, {}))
        took.append(time.process_time() - began)
    assert sorted(took)[10] < 0.2
