"""What a person may say of a graph's money at the node that keeps its books."""

from __future__ import annotations

from typing import Any

import pytest

from agent_node.errors import Refused
from tests.node.cli.desk import OTHER_UID, UID, Desk

GRAPH: dict[str, Any] = {"id": UID, "state": "running", "tasks": [{"uid": OTHER_UID}]}


def scopes(limit: str | None, *, urgent: bool = False, waiting: int = 2) -> dict[str, Any]:
    one = {"scope": f"dag:{UID}", "limit_usd": limit, "urgent_overdraft": urgent,
           "waiting": waiting}  # fmt: skip
    return {"scopes": [{"scope": "node"}, one]}


@pytest.fixture
def asking(desk: Desk) -> Desk:
    desk.door.replies = {"graph": GRAPH, "budget": scopes("5", urgent=True),
                         "set_budget": scopes("7", waiting=1)}  # fmt: skip
    return desk


def sent(desk: Desk) -> dict[str, Any]:
    (request,) = (one for one in desk.door.requests if one["do"] == "set_budget")
    return request


def test_a_graph_may_spend_more_and_who_goes_on_is_told(asking: Desk) -> None:
    ran = asking.run("dag", "budget", UID, "7")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (f"{UID} may spend 7 USD, P1 to P4 beyond it; 1 task READY again;"
                       " 1 task still held back by it\n")  # fmt: skip
    request = sent(asking)
    assert (request["scope"], request["limit_usd"]) == (f"dag:{UID}", "7")
    assert "dry_run" not in request


@pytest.mark.parametrize(("word", "urgent"), [
    ((), True), (("--urgent-overdraft",), True), (("--no-urgent-overdraft",), False),
])  # fmt: skip
def test_whether_urgent_tasks_may_pass_it_stays_as_it_was(
    asking: Desk, word: tuple[str, ...], *, urgent: bool
) -> None:
    """Fails when it is forgotten by whoever says the sum alone."""
    data = asking.run("dag", "budget", UID, "7", *word, "--json").envelope["data"]
    assert (data["was_usd"], data["limit_usd"], data["urgent_overdraft"]) == ("5", "7", urgent)
    assert sent(asking)["urgent_overdraft"] is urgent


def test_none_takes_the_limit_away(asking: Desk) -> None:
    ran = asking.run("dag", "budget", UID, "none")
    assert ran.out == f"{UID} may spend any sum; 2 tasks READY again\n"
    assert (sent(asking)["limit_usd"], sent(asking)["urgent_overdraft"]) == (None, False)


def test_a_dry_run_changes_nothing_and_says_so(asking: Desk) -> None:
    ran = asking.run("dag", "budget", UID, "7", "--dry-run")
    assert ran.out.startswith("dry run, nothing changed: ")
    assert "would be allowed 7 USD, P1 to P4 beyond it, is allowed 5 USD" in ran.out
    assert sent(asking)["dry_run"] is True


@pytest.mark.parametrize("words", [
    ("budget", UID), ("budget",), ("budget", UID, "-1"), ("budget", UID, "much"),
    ("show", UID, "7"), ("show", UID, "--urgent-overdraft"), ("list", "--no-urgent-overdraft"),
])  # fmt: skip
def test_what_makes_no_sum_is_wrong_use_and_nothing_is_asked(
    asking: Desk, words: tuple[str, ...]
) -> None:
    assert asking.run("dag", *words).code == 2
    assert asking.door.requests == []


def test_a_task_that_is_in_no_graph_has_its_own_limit(asking: Desk) -> None:
    asking.door.replies["graph"] = {**GRAPH, "tasks": [{"uid": UID}]}
    ran = asking.run("dag", "budget", UID, "7")
    assert (ran.code, "max_cost_usd" in ran.err) == (2, True)
    assert [one["do"] for one in asking.door.requests] == ["graph"]


def test_a_graph_that_lives_elsewhere_is_not_found(asking: Desk) -> None:
    asking.door.replies["graph"] = Refused("not_found", f"{UID}: iris has no such graph")
    assert asking.run("dag", "budget", UID, "7", "--json").code == 5
