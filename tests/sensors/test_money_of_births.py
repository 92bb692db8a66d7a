"""Children that members make on other nodes are paid out of their graph's budget, at its home."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.journal_ends import TaskEnd
from arc.operations.tasks_change import tasks_retry
from arc.operations.tasks_move import tasks_move
from arc.outbox import end_heard
from tests.builders import uid
from tests.sensors.test_graphs_across import (
    DAG,
    FATES,
    GRAPHS,
    HEALTH,
    ROUTER,
    born,
    runs_it,
    state,
    stormy_round,
    submitted,
)
from tests.sensors_stage import Scene, rows

CHILDREN = range(11, 16)


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def spree(day: Scene, home: str, children: Iterable[int] = CHILDREN) -> None:
    """A graph may spend 2 USD; its first task runs elsewhere, and makes some of 100 USD each."""
    task: JsonObject = {"subject": "x", "max_cost_usd": "1", "skills": ["arc-research"]}
    tasks: JsonObject = {"a": {**task, "uid": uid(1)},
                         "b": {**task, "uid": uid(2), "after": ["a"]}}  # fmt: skip
    document: JsonObject = {"id": DAG, "title": "spree", "budget_usd": "2", "tasks": tasks}
    submitted(day, document, home=home)
    node = "iris"
    if home == "inbox":
        day.run(ROUTER)
    else:
        day.tells(tasks_move, tasks=[uid(1)], to=node, yes=True)
    machine = day.fleet.machines[node]
    got = machine.store.apply(c.Claim(node))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    for number in children:
        born(day, node, got, number, max_cost_usd="100")
    machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed", cost_usd="1")))


def books(day: Scene, home: str) -> tuple[str, str, str]:
    """Spent, reserved and left of the graph, as its home says."""
    scopes = rows(day.asks(home, "budget")["scopes"])
    (mine,) = [one for one in scopes if one["scope"] == f"dag:{DAG}"]
    return str(mine["spent_usd"]), str(mine["reserved_usd"]), str(mine["remaining_usd"])


@pytest.mark.parametrize("home", ["inbox", "loom"])
def test_what_children_elsewhere_may_cost_and_did_cost_counts_at_their_graphs_home(
    day: Scene, home: str
) -> None:
    """Seen to fail: of 601 USD the home knew of 1, and went on."""
    spree(day, home)
    day.run(GRAPHS)
    assert books(day, home) == ("1", "500", "-499")
    if home == "inbox":
        day.run(ROUTER)  # which gives it to nobody
    else:
        assert isinstance(day.fleet.machines[home].store.apply(c.Claim(home)), c.NothingToClaim)
    assert state(day, home, 2) == "PENDING"
    shown: Any = day.asks(home, "show", uid=uid(2))
    assert shown["task"]["blocked_by"][0]["rule"] == "over_budget"
    for _ in CHILDREN:
        runs_it(day, "iris", cost_usd="100")
    day.run(GRAPHS)
    assert books(day, home) == ("501", "0", "-499")
    assert state(day, home, 2) == "PENDING", "what is spent is spent"


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_the_word_a_birth_is_reserved_for_once(day: Scene, fate: str) -> None:
    """Fails where the journal forgets the price, or a birth that is told twice is counted twice."""
    spree(day, "loom")
    stormy_round(day, "joined", fate)
    assert books(day, "loom") == ("1", "500", "-499")


@pytest.mark.parametrize("fate", FATES)
def test_a_retry_that_ends_as_badly_before_anybody_heard_of_it_counts(
    day: Scene, fate: str
) -> None:
    """Seen to fail where an end is known by its node and being bad: of 20 USD the home knew 3."""
    spree(day, "loom", [11])
    day.run(GRAPHS)
    runs_it(day, "iris", how="failed", cost_usd="3")
    day.run(GRAPHS)
    assert books(day, "loom") == ("4", "0", "-2")
    day.tells(tasks_retry, tasks=[uid(11)], reason="mended", by="human:ann")
    runs_it(day, "iris", how="failed", cost_usd="17")
    stormy_round(day, "alive", fate)
    assert books(day, "loom") == ("21", "0", "-19")
    assert day.run(GRAPHS).acted == 0, "it is told once"


def retried_there(day: Scene, number: int) -> None:
    """As by `agent-node retry` at the node's own keyboard: the hub has no part in it."""
    said = day.fleet.machines["iris"].store.apply(c.RetryNow(uid(number)))
    assert said.outcome == "changed"


@pytest.mark.parametrize("after", ["nothing", "a word on it"])
def test_a_retry_at_its_node_that_ends_as_badly_counts_once(day: Scene, after: str) -> None:
    """Seen to fail: both events come in one page, the end is as bad as the one that was known, and
    what the second attempt cost was in nobody's books.
    """
    spree(day, "loom", [11])
    day.run(GRAPHS)
    runs_it(day, "iris", how="failed", cost_usd="3")
    day.run(GRAPHS)
    retried_there(day, 11)
    runs_it(day, "iris", how="failed", cost_usd="17")
    if after == "a word on it":
        day.asks("iris", "set", uid=uid(11), fields={"priority": 3})
    day.run(HEALTH)  # which hears of it; nobody waits for anything
    for _ in range(2):  # that it lives, and how it ended
        day.run(GRAPHS)
    assert books(day, "loom") == ("21", "0", "-19")
    day.run(HEALTH)
    assert day.run(GRAPHS).acted == 0, "it is told once"


def test_what_is_said_of_a_dead_task_that_stays_dead_is_told_to_nobody(day: Scene) -> None:
    """Fails where each later event counts as another end."""
    spree(day, "loom", [11])
    day.run(GRAPHS)
    runs_it(day, "iris", how="failed", cost_usd="3")
    day.run(GRAPHS)
    day.asks("iris", "set", uid=uid(11), fields={"priority": 3})
    day.run(HEALTH)
    assert day.hub.journal.outbox.revived() == ()
    assert day.run(GRAPHS).acted == 0
    assert books(day, "loom") == ("4", "0", "-2")


def test_an_end_that_was_seen_in_a_list_first_is_not_told_anew_with_its_number(day: Scene) -> None:
    ends, outbox = day.hub.journal.ends, day.hub.journal.outbox
    now = day.hub.clock.now()
    ends.note([TaskEnd("iris", uid(1), "DEAD_LETTERED", now)])
    outbox.telling("inbox", map(end_heard, ends.all_of([uid(1)])))
    ends.note([TaskEnd("iris", uid(1), "DEAD_LETTERED", now, seq=7)])
    assert outbox.revived() == ()


def test_what_lives_again_elsewhere_is_reserved_for_at_its_graphs_home(day: Scene) -> None:
    """Seen to fail: 3 of 100 USD were spent, and the other 97 were anybody's."""
    spree(day, "loom", [11])
    day.run(GRAPHS)
    runs_it(day, "iris", how="failed", cost_usd="3")
    day.run(GRAPHS)
    day.tells(tasks_retry, tasks=[uid(11)], reason="mended", by="human:ann")
    day.run(GRAPHS)
    assert books(day, "loom") == ("4", "97", "-99")
    runs_it(day, "iris", cost_usd="17")
    day.run(GRAPHS)
    assert books(day, "loom") == ("21", "0", "-19")
