"""What may be spent and what was, from the operator's side; unknown is never nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent_node.strict import JsonObject
from agent_node.task import Task
from arc.operations.why_waiting import holds_of
from tests.builders import uid
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


DEAR = b"""\
title: dear
budget_usd: 5
tasks:
  fetch: {subject: fetch it}
  build: {subject: build it, max_cost_usd: 10}
"""


def a_dear_graph(desk: Desk) -> tuple[str, str]:
    """A graph with less money than one of its tasks asks for, which the router met; both uids."""
    ran = desk.arc("dag", "submit", "-", "--json", stdin=DEAR)
    (build,) = (uid for uid, name in ran.data["names"].items() if name == "build")
    desk.arc("sensors", "run", "fleet-router")
    return ran.data["dag"], build


def test_a_task_that_its_graph_cannot_pay_for_names_the_way_out(desk: Desk) -> None:
    """Seen to fail: the sums alone were told, and nothing at all raised the limit of a graph."""
    dag, build = a_dear_graph(desk)
    command = f"arc dag budget {dag} 10"
    text, data = desk.both("why", build)
    assert data["verdict"] == "CHANGE"
    assert data["by_hand"][0] == command
    assert f"it never starts with that, but with: {command}" in data["result"]
    assert f"  {command}" in text.lines
    assert command in desk.arc("tasks", "list", "--state", "PENDING").out
    assert command in desk.arc("tasks", "show", build).out
    assert f"1 task held back by graph {dag}: arc dag budget {dag} USD" in desk.arc("budget").lines
    assert "arc budget" in desk.arc("status").out


def test_a_graph_is_allowed_more_and_what_waited_for_it_goes_on(desk: Desk) -> None:
    dag, build = a_dear_graph(desk)
    dry = desk.arc("dag", "budget", dag[-6:], "10", "--dry-run")
    assert (dry.code, "would be allowed 10 USD, is allowed 5 USD" in dry.out) == (0, True), dry.out
    assert dry.out.endswith("(dry run: nothing was changed)\n"), "as of every other command"
    assert desk.arc("tasks", "show", build, "--json").data["task"]["state"] == "PENDING"
    ran = desk.arc("dag", "budget", dag[-6:], "10")
    assert ran.code == 0, ran.err
    assert ran.out.endswith("1 task READY again\n"), ran.out
    assert desk.arc("tasks", "show", build, "--json").data["task"]["state"] == "READY"
    assert "of 10 USD" in desk.arc("dag", "show", dag).out
    again = desk.arc("dag", "budget", build, "none", "--json").data
    assert (again["dag"], again["was_usd"], again["limit_usd"]) == (dag, "10", None)
    assert desk.arc("budget").lines[0] == "no limit is set"
    assert "of " not in desk.arc("dag", "show", dag).out.partition("money:")[2].partition("\n")[0]


@pytest.mark.parametrize("lie", [
    {"scope": "dag:$(reboot)"}, {"enough_usd": "1; reboot"}, {"enough_usd": 7}, {"scope": "fleet"},
])  # fmt: skip
def test_what_a_node_says_of_money_is_a_command_only_where_it_could_be_one(
    lie: JsonObject
) -> None:
    """Seen to fail without the look at the graph's uid, and without that at the sum."""
    held: JsonObject = {"rule": "over_budget", "text": "5 of 5 USD", "scope": f"dag:{uid(1)}",
                        "enough_usd": "10", "comes_back": False}  # fmt: skip
    (true,), (false,) = (holds_of(replace(Task(uid=uid(2), subject="x"), blocked_by=[one]))
                         for one in (held, {**held, **lie}))  # fmt: skip
    assert (true.try_, true.for_good) == (f"arc dag budget {uid(1)} 10", True)
    assert (false.try_, false.for_good, false.because) == ("", False, true.because)


def test_a_sum_that_is_none_and_a_task_without_a_graph_change_nothing(desk: Desk) -> None:
    dag, _ = a_dear_graph(desk)
    (task,) = desk.waits("loom", 5)
    assert desk.arc("dag", "budget", dag, "ten").code == 2
    assert desk.arc("dag", "budget", task, "10").code == 2
    assert desk.arc("dag", "budget", "0404040404", "10").code == 5
    assert "of 5 USD" in desk.arc("dag", "show", dag).out


def test_a_graph_that_cannot_pay_for_a_task_is_warned_of_as_it_is_handed_in(desk: Desk) -> None:
    for words in (("--dry-run",), ()):
        ran = desk.arc("dag", "submit", "-", *words, stdin=DEAR)
        assert ran.code == 0
        assert ("task build may cost more than the 5 USD of the whole graph, and never starts with "
                "that: raise its budget_usd (10 is enough for all once), or say ") in ran.err
    assert ran.err.strip().endswith(" 10")
    typed = ran.err.strip().rpartition("or say arc ")[2].split()
    assert desk.arc(*typed).code == 0, "what it says to type is typed as it stands"
    fits = DEAR.replace(b"max_cost_usd: 10", b"max_cost_usd: 5")
    assert desk.arc("dag", "submit", "-", stdin=fits).err == ""
