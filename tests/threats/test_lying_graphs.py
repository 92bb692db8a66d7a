"""What a node that lies can do to graphs that are not its own: nothing but keep its own waiting.

The fleet is the product; only what one node answers is changed on its way to the hub.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.graph_words import Parent, Spawn
from agent_node.strict import JsonObject
from arc.decisions.outbox import JoinHeard
from arc.errors import NodeRefused
from arc.operations.dags_cancel import dag_cancel
from arc.operations.tasks_move import tasks_move
from arc.sensor import Moved
from tests.builders import a_task, uid, xfer
from tests.sensors.test_graphs_across import (
    DAG,
    GRAPHS,
    HEALTH,
    ROUTER,
    a_graph,
    day,
    graph_state,
    runs_it,
    state,
    submitted,
)
from tests.sensors_stage import Scene
from tests.threats.test_lying_nodes import LIAR, LyingLink

__all__ = ["day"]
ASKED_MAX = 100


def lies(day: Scene, event: JsonObject, *, waits: bool = False, **answers: Any) -> None:
    """The liar tells this event once, and answers these words in its own way."""
    told: list[JsonObject] = []

    def lie(do: str, asked: JsonObject, result: JsonObject) -> JsonObject:
        events = result.get("events")
        if do == "events" and event and not told and isinstance(events, list):
            told.append({"seq": 10**6, "at": "2026-03-01T00:00:00.000Z", **event})
            return {**result, "events": [*events, *told]}
        return {**result, "awaiting_count": 5} if do == "status" and waits else result

    class Liar(LyingLink):
        async def ask(
            self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
        ) -> JsonObject:
            if do in answers:
                answer: JsonObject = answers[do](fields or {})
                return answer
            return await super().ask(do, fields, timeout_s=timeout_s)

    day.hub.links[LIAR] = Liar(day.hub.links[LIAR], lie)


def routed(day: Scene) -> None:
    """The router's round, with its moves in the journal, as the schedule writes them."""
    day.hub.journal.runs.add_moves(day.run(ROUTER).moves)


def on_its_way(day: Scene) -> None:
    """A graph at the hub: its first task is on iris, its second one waits for that."""
    submitted(day, a_graph(("b", "a")))
    routed(day)
    assert (state(day, "iris", 1), state(day, "inbox", 2)) == ("READY", "PENDING")


@pytest.mark.parametrize("how", ["COMPLETED", "CANCELLED", "DEAD_LETTERED"])
def test_nobody_ends_a_task_that_another_node_has(day: Scene, how: str) -> None:
    """Fails where the newest end counts, whoever tells it."""
    on_its_way(day)
    shown: Any = day.asks("iris", "show", uid=uid(1))
    lie = {**shown, "task": {**shown["task"], "state": how, "output": "a lie"}}
    event: JsonObject = {"event": "task_completed", "uid": uid(1), "state": how, "was": "RUNNING"}
    lies(day, event, show=lambda asked: lie)
    for _ in range(3):
        day.run(GRAPHS)
        day.run(HEALTH)
    assert state(day, "inbox", 2) == "PENDING"
    runs_it(day, "iris", output="the truth")
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"
    shown = day.asks("inbox", "graph", dag=DAG)["tasks"]
    assert shown[0]["node"] == "iris"


@pytest.mark.parametrize(
    "left", [{"cost_usd": "abc"}, {"cost_usd": "-5"}, {"artifacts": "x"}, {"output": "x" * 70_000}],
    ids=["no money", "below nothing", "no list", "too long"],
)
def test_what_a_liar_says_it_left_keeps_no_other_graph_from_going_on(
    day: Scene, left: JsonObject
) -> None:
    """Fails where it is passed on unread: the whole letter is refused, again in every round."""
    on_its_way(day)
    day.fleet.machines[LIAR].store.apply(c.Add((a_task(60),)))
    its_own: JsonObject = {"id": uid(901), "title": "of the liar's", "tasks": {
        "x": {"uid": uid(50), "subject": "x", "after": [uid(60)]}}}  # fmt: skip
    submitted(day, its_own)
    day.run(GRAPHS)

    def refuses(asked: JsonObject) -> JsonObject:
        raise NodeRefused(LIAR, "not_found", "no such task")

    lies(day, {"event": "task_completed", "uid": uid(60), "state": "COMPLETED", "was": "RUNNING",
               "data": left}, show=refuses)  # fmt: skip
    runs_it(day, "iris")
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"


@pytest.mark.parametrize(
    "said",
    [{"uid": "nonsense"}, {"parent": "nonsense"}, {"name": "n" * 100}, {"name": "two\nlines"}],
    ids=str,
)
def test_a_birth_that_cannot_be_true_keeps_no_graph_from_going_on(
    day: Scene, said: JsonObject
) -> None:
    on_its_way(day)
    birth: JsonObject = {"uid": uid(77), "dag": DAG, "parent": uid(1), **said}
    lies(day, {"event": "task_added", "state": "READY", "uid": birth["uid"], "data": birth})
    runs_it(day, "iris")
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"


@pytest.mark.parametrize("parent", [1, 999])
def test_no_child_is_born_into_a_graph_by_a_node_that_never_ran_its_parent(
    day: Scene, parent: int
) -> None:
    """Fails where every birth is believed: the graph waits for ever for a task that is nowhere."""
    on_its_way(day)
    lies(day, {"event": "task_added", "state": "READY", "uid": uid(77),
               "data": {"dag": DAG, "parent": uid(parent)}})  # fmt: skip
    for _ in range(2):
        runs_it(day, "iris")
        day.run(GRAPHS)
        routed(day)
    assert graph_state(day) == "completed"


def test_graphs_that_are_nowhere_keep_no_other_from_being_found(day: Scene) -> None:
    """Fails where the first fifty are looked for in each round."""
    on_its_way(day)
    day.hub.homes.clear()
    births = [JoinHeard(uid(number), uid(1000 + number), LIAR, number, uid(9))
              for number in range(100, 220)]  # fmt: skip
    machine = day.fleet.machines["iris"]
    got = machine.store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    machine.store.apply(Spawn(a_task(70), Parent(got.task.uid, got.n)))
    nowhere = [replace(one, dag="00" + one.dag[2:]) for one in births]  # they come first
    day.hub.journal.outbox.note_births(nowhere)
    for _ in range(4):
        day.run(GRAPHS)
    assert day.asks("inbox", "graph", dag=DAG)["total"] == 3


def test_a_cancelled_graph_takes_no_task_of_another_node_with_it(day: Scene) -> None:
    """Fails where whatever is said to be born into it is cancelled, wherever it is. The liar once
    had the parent, so that its word on births is heard.
    """
    on_its_way(day)
    day.hub.journal.runs.add_moves((Moved(xfer(1), uid(1), "forge", LIAR, "moved"),))
    day.fleet.machines["iris"].store.apply(c.Add((a_task(60),)))
    day.tells(dag_cancel, dag=DAG, reason="no", yes=True)
    submitted(day, {"id": uid(901), "title": "another", "tasks": {
        "x": {"uid": uid(50), "subject": "x", "after": [uid(60)]}}})  # fmt: skip
    lies(day, {"event": "task_added", "state": "READY", "uid": uid(60),
               "data": {"dag": DAG, "parent": uid(1)}})  # fmt: skip
    for _ in range(3):
        day.run(GRAPHS)
    assert state(day, "iris", 60) == "READY"


@pytest.mark.parametrize("uids", [[], [uid(5)]], ids=["nothing", "the same"])
def test_a_list_that_never_ends_is_left_when_it_says_nothing_new(
    day: Scene, uids: list[str]
) -> None:
    on_its_way(day)
    asked: list[JsonObject] = []

    def awaits(fields: JsonObject) -> JsonObject:
        asked.append(fields)
        assert len(asked) < ASKED_MAX, "it is asked for ever"
        return {"uids": [*uids], "next": uid(5)}

    lies(day, {}, waits=True, awaits=awaits)
    runs_it(day, "iris")
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"


def test_nobody_else_is_the_home_of_a_graph_that_another_node_keeps(day: Scene) -> None:
    """Fails where the first that says so is believed: the graph ends without its child."""
    submitted(day, {"id": DAG, "title": "one", "tasks": {
        "a": {"uid": uid(1), "subject": "a"}}}, home="spark")  # fmt: skip
    day.tells(tasks_move, tasks=[uid(1)], to="iris", yes=True)
    lies(day, {}, graph=lambda asked: {"id": asked["dag"], "state": "running"})
    machine = day.fleet.machines["iris"]
    got = machine.store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    machine.store.apply(Spawn(a_task(70), Parent(got.task.uid, got.n)))
    machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    day.run(GRAPHS)
    assert day.asks("spark", "graph", dag=DAG)["total"] == 2


def test_nobody_else_is_the_home_of_a_graph_that_the_hub_keeps(day: Scene) -> None:
    """Fails where the first that says so is believed: the graph ends without its child."""
    on_its_way(day)
    day.hub.homes.clear()  # as after a restart
    lies(day, {}, graph=lambda asked: {"id": asked["dag"], "state": "running"})
    machine = day.fleet.machines["iris"]
    got = machine.store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    machine.store.apply(Spawn(a_task(70), Parent(got.task.uid, got.n)))
    machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    day.run(GRAPHS)
    assert day.asks("inbox", "graph", dag=DAG)["total"] == 3
