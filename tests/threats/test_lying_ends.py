"""What a node that lies learns of tasks that it never had, and what its word on their end does."""

from __future__ import annotations

from typing import Any

import pytest

from agent_node import commands as c
from agent_node.graph_words import Inputs
from agent_node.strict import JsonObject
from arc.decisions.outbox import JoinHeard
from arc.errors import NodeRefused
from arc.journal_ends import TaskEnd
from arc.journal_outbox import BIRTHS_MAX, DOUBTED_MAX, OF_A_NODE_MAX
from arc.operations.status import status
from arc.operations.tasks_change import tasks_add
from arc.operations.tasks_move import tasks_move
from arc.sensor import Moved
from tests.builders import a_task, uid, xfer
from tests.sensors.test_graphs_across import DAG, GRAPHS, ROUTER, day, runs_it, state, submitted
from tests.sensors_stage import Scene, rows
from tests.threats.test_lying_graphs import lies, on_its_way, routed
from tests.threats.test_lying_nodes import LIAR

__all__ = ["day"]
SECRET = "what only iris and its heirs may know"


def waits_for(day: Scene, *uids: str) -> list[JsonObject]:
    """The liar says that it waits for these; whatever it is then told of ends."""
    told: list[JsonObject] = []

    def ended(asked: JsonObject) -> JsonObject:
        told.extend(rows(asked["tasks"]))
        return {"results": [{"uid": one["uid"], "outcome": "noted"} for one in told]}

    lies(day, {}, waits=True, awaits=lambda asked: {"uids": [*uids], "next": None}, ended=ended)
    return told


def test_a_node_is_not_told_what_a_task_left_that_nothing_given_to_it_refers_to(day: Scene) -> None:
    """That it ended is told to whoever asks: nobody waits for ever. Fails where all is told."""
    on_its_way(day)
    told = waits_for(day, uid(1))
    runs_it(day, "iris", output=SECRET)
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"
    assert [one["state"] for one in told] == ["COMPLETED"]
    assert SECRET not in str(told)
    assert "withheld" in str(told[0]["because"])


def test_not_even_while_the_node_that_knows_is_away(day: Scene) -> None:
    """What the hub kept of its event is withheld as well, and so is the moment at first."""
    on_its_way(day)
    told = waits_for(day, uid(1))
    day.run(GRAPHS)
    runs_it(day, "iris", output=SECRET)
    day.run("fleet-health")
    day.off("iris")
    day.run(GRAPHS)
    assert (state(day, "inbox", 2), told) == ("READY", [])
    day.passes(1801)
    day.run(GRAPHS)
    assert [one["state"] for one in told] == ["COMPLETED"]
    assert SECRET not in str(told)


def test_who_is_given_a_task_that_refers_to_another_is_told_what_that_left(day: Scene) -> None:
    """Fails where only the nodes that had the other task are told."""
    first: JsonObject = {"uid": uid(1), "subject": "a", "skills": ["arc-research"]}
    second: JsonObject = {"uid": uid(2), "subject": "b", "context_refs": [f"task:{uid(1)}:output"]}
    day.tells(tasks_add, tasks=[first])
    routed(day)
    runs_it(day, "iris", output={"rows": 7})
    day.tells(tasks_add, tasks=[second])
    day.run(GRAPHS)
    day.tells(tasks_move, tasks=[uid(2)], to="forge", yes=True)
    day.run(GRAPHS)
    store = day.fleet.machines["forge"].store
    assert isinstance(store.apply(c.Claim("forge")), c.Claimed)
    given = store.read(Inputs(uid(2)))
    assert given is not None
    assert given.context == {f"task:{uid(1)}:output": {"rows": 7}}


def test_a_task_that_a_node_wrote_itself_ties_it_to_nothing(day: Scene) -> None:
    """It comes back from another node, and refers to what its own writer would like to know."""
    on_its_way(day)
    own = a_task(60, context_refs=[f"task:{uid(1)}:output"], dag=DAG)
    day.hub.journal.runs.add_moves((Moved(xfer(1), own.uid, LIAR, "forge", "moved"),))
    from arc.entitling import may_be_told, tying

    given: JsonObject = {"uid": own.uid, "context_refs": [*own.context_refs], "dag": DAG}
    tying(day.hub)(LIAR, [given])
    assert not may_be_told(day.hub, LIAR, uid(1), dag=DAG)
    tying(day.hub)("spark", [given])
    assert may_be_told(day.hub, "spark", uid(1))


@pytest.mark.parametrize("how", ["COMPLETED", "CANCELLED"])
def test_a_lie_about_an_end_keeps_no_task_of_the_hub_from_being_started(
    day: Scene, how: str
) -> None:
    """Fails where any node's word keeps the task: it would wait until a person looked."""
    task: JsonObject = {"uid": uid(1), "subject": "a", "skills": ["arc-research"]}
    day.hub.journal.ends.note([TaskEnd(LIAR, uid(1), how, day.hub.clock.now())])
    day.tells(tasks_add, tasks=[task])
    day.run(ROUTER)
    assert state(day, "iris", 1) == "READY"


def test_the_end_told_by_whom_the_hub_gave_a_task_to_keeps_a_copy_of_it(day: Scene) -> None:
    task: JsonObject = {"uid": uid(1), "subject": "a", "skills": ["arc-research"]}
    day.hub.journal.runs.add_moves((Moved(xfer(1), uid(1), "inbox", "iris", "moved"),))
    day.hub.journal.ends.note([TaskEnd("iris", uid(1), "COMPLETED", day.hub.clock.now())])
    day.tells(tasks_add, tasks=[task])
    day.run(ROUTER)
    assert state(day, "inbox", 1) == "READY"


def test_births_that_nobody_believes_push_no_others_out(day: Scene) -> None:
    """Fails where the oldest ten thousand are looked at, whoever told them."""
    outbox = day.hub.journal.outbox
    outbox.note_births([JoinHeard(uid(10**6 + n), DAG, LIAR, n, uid(5)) for n in range(30_000)])
    outbox.note_births([JoinHeard(uid(77), DAG, "iris", 1, uid(1))])
    births = outbox.births()
    assert len(births) == BIRTHS_MAX
    assert births[1].uid == uid(77) or births[0].uid == uid(77)
    (count,) = day.hub.journal._rows.read("SELECT count(*) AS n FROM birth WHERE node = ?", [LIAR])
    assert count["n"] == OF_A_NODE_MAX
    outbox.doubted([one for one in births if one.node == LIAR])
    (count,) = day.hub.journal._rows.read("SELECT count(*) AS n FROM birth WHERE doubts > 0")
    assert count["n"] == DOUBTED_MAX
    assert all(one.uid > uid(10**6) for one in outbox.births() if one.node == LIAR)


def test_of_two_nodes_that_had_a_task_the_one_to_which_it_was_moved_last_knows_its_end(
    day: Scene,
) -> None:
    """Fails where done is done whoever says so: what should be left out begins."""
    on_its_way(day)
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    day.tells(tasks_move, tasks=[uid(1)], to="forge", yes=True)
    lies(day, {"event": "task_completed", "uid": uid(1), "state": "COMPLETED", "was": "RUNNING"})
    runs_it(day, "forge", how="failed")
    for _ in range(2):
        day.run(GRAPHS)
    assert state(day, "inbox", 2) == "CANCELLED"


def test_two_ends_of_a_task_that_nobody_moved_are_left_to_a_person(day: Scene) -> None:
    """Fails where the good end wins: one of two nodes lies, and the hub cannot know which."""
    day.fleet.machines["iris"].store.apply(c.Add((a_task(60, max_attempts=1),)))
    submitted(day, {"id": uid(901), "title": "one", "tasks": {
        "x": {"uid": uid(50), "subject": "x", "after": [uid(60)]}}})  # fmt: skip
    shown: Any = day.asks("iris", "show", uid=uid(60))
    lie = {**shown, "task": {**shown["task"], "state": "COMPLETED", "output": "a lie"}}
    lies(day, {"event": "task_completed", "uid": uid(60), "state": "COMPLETED", "was": "RUNNING"},
         show=lambda asked: lie)  # fmt: skip
    runs_it(day, "iris", how="failed")
    day.run(GRAPHS)
    assert (state(day, "inbox", 50), _doubts(day)) == ("PENDING", [])
    day.passes(400)
    day.run(GRAPHS)
    assert state(day, "inbox", 50) == "PENDING"
    (line,) = _doubts(day)
    assert uid(60) in line
    assert LIAR in line
    day.hub.links.pop(LIAR)  # as when a person suspends it
    day.hub.journal.ends.take_back(LIAR, [uid(60)])
    day.run(GRAPHS)
    assert state(day, "inbox", 50) == "CANCELLED"


def _doubts(day: Scene) -> list[str]:
    return [str(one["text"]) for one in rows(day.tells(status).data["needs_you"])
            if "speaks against" in str(one["text"])]  # fmt: skip


def test_what_every_attempt_cost_is_told_though_its_node_is_gone(day: Scene) -> None:
    """Fails where the last event alone is passed on: 0.25 of 0.75."""
    day.tells(tasks_add, tasks=[{"uid": uid(1), "subject": "a", "skills": ["arc-research"],
                                 "max_attempts": 3, "max_cost_usd": "9"}])  # fmt: skip
    submitted(day, {"id": DAG, "title": "one", "tasks": {
        "x": {"uid": uid(50), "subject": "x", "after": [uid(1)],
              "context": [f"task:{uid(1)}:outcome"]}}})  # fmt: skip
    routed(day)
    day.run(GRAPHS)
    store = day.fleet.machines["iris"].store
    clock = day.fleet.machines["iris"].clock
    for how, cost in (("failed", "0.5"), ("completed", "0.25")):
        got = store.apply(c.Claim("iris"))
        assert isinstance(got, c.Claimed)
        store.apply(c.Started(got.task.uid, got.n, 42, 99, clock.boot_id()))
        kind = "crash" if how == "failed" else None
        store.apply(c.Finish(got.task.uid, got.n, c.Result(
            how, error_kind=kind, cost_usd=cost)))  # type: ignore[arg-type]
        day.passes(60)
        store.apply(c.Wake())
    day.run("fleet-health")
    day.off("iris")
    day.run(GRAPHS)
    told = _db(day).execute("SELECT cost_usd FROM told WHERE uid = ?", (uid(1),)).fetchone()
    assert told == ("0.75",)


def _db(day: Scene) -> Any:
    link: Any = day.hub.links["inbox"]
    return link._answers.desk.store._db


def test_a_refusal_of_the_liar_changes_nothing_of_this(day: Scene) -> None:
    """It can have been asked for nothing more than others."""
    on_its_way(day)

    def refuses(asked: JsonObject) -> JsonObject:
        raise NodeRefused(LIAR, "not_found", "no such task")

    lies(day, {}, waits=True, awaits=refuses)
    runs_it(day, "iris")
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"
