"""Graphs on a real store beside other work: what waits behind a task draws it, money holds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from agent_node import graph_words as g
from agent_node import moves as m
from agent_node import queries as q
from agent_node.budget import Money
from agent_node.budget_words import Budgets
from agent_node.store.sqlite import SqliteStore
from tests.builders import DAY, NodeAtHand, a_task, rule_of, uid, xfer
from tests.node.store.contract_graphs import a_graph, of, states, submit
from tests.node.store.test_budgets import Rich, amounts


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    """A node without a limit of its own; a task that names none costs nothing."""
    node = NodeAtHand(Rich(Money()), tmp_path / "iris")
    yield node
    node.close()


def test_what_much_waits_for_goes_before_what_came_first(node: NodeAtHand) -> None:
    """Fails when a graph's tasks are written without their weight."""
    node.has(a_task(1))
    graph = a_graph(short=[], first=[], second=["first"], third=["second"])
    submit(node, graph)
    assert node.claimed().task.uid == of(graph, "first")


def worth(node: NodeAtHand, name: str) -> float:
    """What the task is worth at this moment, in points."""
    shown = node.ask(q.ShowTask(name))
    assert shown is not None
    return float(str(shown.order["effective"]))


def test_a_task_that_is_owned_again_is_as_heavy_as_it_was(node: NodeAtHand) -> None:
    """After what is over was forgotten. Seen to fail where the copy is taken back without its
    weight, and where what draws a task is forgotten as soon as the task has left.
    """
    node.finish(node.running(a_task(1)))
    graph = a_graph(first=[], second=["first"], third=["second"], fourth=["third"])
    submit(node, graph)
    root = of(graph, "first")
    created = node.task(root).created_at
    node.has(a_task(2, created_at=created))
    for number, name in ((1, root), (2, uid(2))):
        node.gives_away(xfer(number), node.task(name))
    node.clock.advance(1.1 * DAY)
    assert node.say(c.Forget(days=1)) > 0
    target = tuple(m.Target(name, 1 + 2**20) for name in (root, uid(2)))
    assert {one.outcome for one in node.say(m.Reown(target, alone=True))} == {"reowned"}
    assert worth(node, root) == worth(node, uid(2)) - 15


def test_a_graph_begins_nothing_that_it_cannot_pay(node: NodeAtHand) -> None:
    """Fails when a graph's limit is not kept; what belongs to no graph goes on beside it."""
    cost: Any = {"subject": "x", "max_cost_usd": "2"}
    graph = a_graph(budget_usd="3", a=cost, b=cost)
    submit(node, graph)
    first = node.running()
    node.has(a_task(1, max_cost_usd="50"))
    assert node.running().task.uid == uid(1)
    assert states(node, graph) == {"a": "RUNNING", "b": "PENDING"}
    assert isinstance(node.claim(), c.NothingToClaim)
    node.finish(first, cost_usd="0.75")
    assert amounts(node, f"dag:{graph.id}") == ("0.75", "0", "2.25", 0)
    assert states(node, graph) == {"a": "COMPLETED", "b": "READY"}


def test_a_graph_that_is_cancelled_keeps_no_money_for_what_was_parked(tmp_path: Path) -> None:
    """Seen to fail: both limits kept it reserved for ever, for a task that had ended. What waits
    for that money is cancelled as well, and is not READY for a moment on its way.
    """
    node = NodeAtHand(Rich(Money("10")), tmp_path / "iris")
    cost: Any = {"subject": "x", "max_cost_usd": "2"}
    graph = a_graph(budget_usd="3", a=cost, b=cost)
    submit(node, graph)
    node.finish(node.running(), "unproved", cost_usd="0.5")
    assert isinstance(node.claim(), c.NothingToClaim)
    assert states(node, graph) == {"a": "PARKED", "b": "PENDING"}
    node.say(g.CancelGraph(graph.id))
    assert set(states(node, graph).values()) == {"CANCELLED"}
    assert amounts(node)[:2] == amounts(node, f"dag:{graph.id}")[:2] == ("0.5", "0")
    told = [one["event"] for one in node.events(of(graph, "b"))]
    assert told == ["task_added", "task_blocked", "task_cancelled"]
    node.close()


def test_urgent_tasks_of_a_graph_may_begin_beyond_its_budget(node: NodeAtHand) -> None:
    """Where its document says so. Fails where that is read and not kept."""
    cost: Any = {"subject": "x", "max_cost_usd": "4"}
    graph = a_graph(budget_usd="3", urgent_overdraft=True, a={**cost, "priority": 4}, b=cost)
    submit(node, graph)
    assert node.running().task.uid == of(graph, "a")
    assert isinstance(node.claim(), c.NothingToClaim)
    assert states(node, graph) == {"a": "RUNNING", "b": "PENDING"}
    assert amounts(node, f"dag:{graph.id}") == ("0", "4", "-1", 1)


def test_a_retry_that_comes_due_releases_nothing_that_waits_for_it(node: NodeAtHand) -> None:
    """Fails when whatever comes due is let go with all that holds it."""
    graph = a_graph(a=[], b=["a"])
    submit(node, graph)
    node.finish(node.running(), "failed", error_kind="crash")
    held = node.task(of(graph, "b")).blocked_by
    assert node.wake(after=10**4).readied == 1
    assert states(node, graph) == {"a": "READY", "b": "PENDING"}
    assert held
    assert node.task(of(graph, "b")).blocked_by == held


def test_what_runs_makes_no_more_work_below_the_floor_of_free_disk(node: NodeAtHand) -> None:
    """One task that spawns without an end would fill the disk, PENDING tasks being no READY ones.
    What is there already is told as before, and people go on. Fails without the look at the disk.
    """
    got = node.running(a_task(1))
    parent = g.Parent(uid(1), got.n)
    known, graph = g.Spawn(a_task(2), parent), a_graph(a=[])
    assert node.say(known).outcome == "added"
    assert isinstance(node.store, SqliteStore)
    node.store.live.disk_low = True
    assert node.say(known).outcome == "exists"
    assert rule_of(node.say(g.Spawn(a_task(3), parent))) == "disk_floor"
    assert rule_of(node.say(g.Submit(graph, parent=parent))) == "disk_floor"
    node.has(a_task(4))
    submit(node, graph)


def test_the_books_of_a_graph_go_with_it_unless_something_of_it_may_still_spend(
    node: NodeAtHand,
) -> None:
    """Seen to fail: each graph that ever had a limit stood in `arc budget` for ever."""
    cost: Any = {"subject": "x", "max_cost_usd": "2"}
    over, dead = a_graph(1, budget_usd="3", a=cost), a_graph(2, budget_usd="5", a=cost)
    submit(node, over)
    node.finish(node.running(), cost_usd="1")
    submit(node, dead)
    node.finish(node.running(), "failed", error_kind="auth_failure", cost_usd="1")
    assert states(node, dead) == {"a": "DEAD_LETTERED"}
    node.clock.advance(40 * DAY)
    while node.say(c.Forget()):
        pass
    assert node.ask(g.ShowGraph(over.id)) is None
    assert node.ask(g.ShowGraph(dead.id)) is None
    books = [one.scope for one in node.ask(Budgets())]
    assert books == ["node", f"dag:{dead.id}"], "somebody may still let that one run again"
    assert [row[0] for row in node.dump()["spending"]] == [f"dag:{dead.id}"]
