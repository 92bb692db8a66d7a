"""Graphs go on across the fleet: each end reaches whoever waits for it, whatever breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from agent_node import commands as c
from agent_node.graph_words import Inputs
from agent_node.strict import JsonObject, JsonValue
from arc.errors import NodeRefused, NotFoundYet
from arc.hub import Hub
from arc.journal import Journal
from arc.operations import Told, why_waiting
from arc.operations.dags import dag_list, dag_show
from arc.operations.dags_cancel import dag_cancel
from arc.operations.dags_submit import dag_submit
from arc.operations.finding import Found, find_task
from arc.operations.status import status
from arc.operations.tasks_change import tasks_add, tasks_retry
from arc.operations.tasks_move import tasks_move
from arc.operations.why import why_task
from arc.schedule import Schedule
from tests.builders import uid
from tests.fleet.machines import HubDied
from tests.sensors_stage import Scene, rows, within
from tests.threats.test_lying_nodes import LyingLink

GRAPHS, ROUTER, HEALTH = "fleet-graphs", "fleet-router", "fleet-health"
DAG = uid(900)
End = Literal["completed", "failed", "interrupted"]


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def a_graph(*edges: tuple[str, str] | tuple[str, str, str], **more: Any) -> JsonObject:
    """Tasks a, b, c, … of the research domain, with uids 1, 2, 3, …; edges (child, needs, how)."""
    names = sorted({name for edge in edges for name in edge[:2]} | {"a"})
    tasks: JsonObject = {}
    for number, name in enumerate(names, start=1):
        after: list[JsonValue] = [
            {"task": edge[1], "on_failure": edge[2] if len(edge) == 3 else "fail"}
            for edge in edges if edge[0] == name
        ]  # fmt: skip
        tasks[name] = {"uid": uid(number), "subject": name, "skills": ["arc-research"],
                       "max_attempts": 1, "after": after}  # fmt: skip
    return {"id": DAG, "title": "a graph", "tasks": tasks, **more}


def submitted(day: Scene, graph: JsonObject, *, home: str = "inbox") -> None:
    if home == "inbox":
        assert day.tells(dag_submit, graph=graph, by="human:ann").data["outcome"] == "added"
    else:
        assert day.asks(home, "submit", graph=graph, by="human:ann")["outcome"] == "added"


def state(day: Scene, node: str, number: int) -> str:
    link: Any = day.hub.links[node]
    answers: Any = link._answers if node == "inbox" else day.fleet.machines[node].answers
    store = answers.desk.store
    row = store._db.execute("SELECT state FROM task WHERE uid = ?", (uid(number),)).fetchone()
    return str(row[0]) if row else "-"


def graph_state(day: Scene, home: str = "inbox") -> str:
    return str(day.asks(home, "graph", dag=DAG)["state"])


def runs_it(
    day: Scene, node: str, *, how: End = "completed", output: JsonValue = None,
    cost_usd: str | None = None,
) -> str:  # fmt: skip
    """The node takes its next task, and its program ends so; the uid's number."""
    store = day.fleet.machines[node].store
    got = store.apply(c.Claim(node))
    assert isinstance(got, c.Claimed), got
    store.apply(c.Started(got.task.uid, got.n, 42, 99, day.fleet.machines[node].clock.boot_id()))
    kind = "auth_failure" if how == "failed" else None
    result = c.Result(how, output=output, error_kind=kind, cost_usd=cost_usd)
    store.apply(c.Finish(got.task.uid, got.n, result))
    return got.task.uid


def times_ready(day: Scene, node: str, number: int) -> int:
    """How often it was released by its edges."""
    shown = day.asks(node, "show", uid=uid(number))
    return sum(one.get("event") == "task_ready" for one in rows(shown["events"]))


def hub_restarts(day: Scene, *, journal: str = "kept") -> None:
    day._do(day.hub.close())
    if journal == "lost":
        for file in (day.place / ".arc").glob("journal.db*"):
            file.unlink()
    day.links = dict(day.fleet.links())
    day.hub = day._do(day._open())


def begins_with(day: Scene, node: str, number: int) -> JsonObject:
    """What this task is given of others, as it begins on its node."""
    store = day.fleet.machines[node].store
    assert isinstance(store.apply(c.Claim(node)), c.Claimed)
    given = store.read(Inputs(uid(number)))
    assert given is not None
    return given.context


def test_an_end_on_a_node_releases_what_waits_for_it_at_the_hub(day: Scene) -> None:
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    assert (state(day, "iris", 1), state(day, "inbox", 2)) == ("READY", "PENDING")
    runs_it(day, "iris", output={"rows": 7})
    report = day.run(GRAPHS)
    assert report.acted == 1
    assert "inbox waits for" in report.summary
    assert state(day, "inbox", 2) == "READY"
    day.run(ROUTER)
    runs_it(day, "iris")
    day.run(GRAPHS)
    assert graph_state(day) == "completed"
    assert day.run(GRAPHS).summary == "no store waits for a task elsewhere"


@pytest.mark.parametrize("journal", ["kept", "lost"])
def test_a_member_that_moved_twice_and_ended_while_the_hub_was_down_unblocks_its_child_once(
    day: Scene, journal: str
) -> None:
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    assert state(day, "loom", 1) == "READY"
    day._do(day.hub.close())
    runs_it(day, "loom")
    if journal == "lost":
        for file in (day.place / ".arc").glob("journal.db*"):
            file.unlink()
    day.hub = day._do(day._open())
    for _ in range(3):
        day.run(GRAPHS)
        day.run(HEALTH)
    assert state(day, "inbox", 2) == "READY"
    assert times_ready(day, "inbox", 2) == 1


@pytest.mark.parametrize(
    ("how", "child", "graph"),
    [("fail", "CANCELLED", "failed"), ("skip", "CANCELLED", "failed"), ("run", "READY", "running")],
)
def test_a_dead_letter_elsewhere_does_to_its_dependents_what_their_edges_say(
    day: Scene, how: str, child: str, graph: str
) -> None:
    submitted(day, a_graph(("b", "a", how)))
    day.run(ROUTER)
    runs_it(day, "iris", how="failed")
    assert state(day, "iris", 1) == "DEAD_LETTERED"
    day.run(GRAPHS)
    assert (state(day, "inbox", 2), graph_state(day)) == (child, graph)


def test_a_dead_letter_that_a_person_cancels_lives_again_for_nobody(day: Scene) -> None:
    """Seen to fail: the cancel was taken for another end, so the graph was opened, and failed once
    more before everybody's eyes.
    """
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    runs_it(day, "iris", how="failed")
    day.run(GRAPHS)
    assert graph_state(day) == "failed"
    day.asks("iris", "cancel", uid=uid(1), reason="no use")
    day.run(HEALTH)
    assert day.hub.journal.outbox.revived() == ()
    day.run(GRAPHS)
    assert graph_state(day) == "failed"


def test_a_member_that_a_person_retries_brings_its_dependents_back(day: Scene) -> None:
    """Without `alive`, the child stays cancelled although its parent completed."""
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    runs_it(day, "iris", how="failed")
    day.run(GRAPHS)
    assert graph_state(day) == "failed"
    assert f'graph {DAG} "a graph" failed' in str(day.tells(status).data["needs_you"])
    day.tells(tasks_retry, tasks=[uid(1)], reason="mended", by="human:ann")
    report = day.run(GRAPHS)
    assert within(report.details, "alive") == 1
    assert (state(day, "inbox", 2), graph_state(day)) == ("PENDING", "running")
    runs_it(day, "iris")
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"


def test_a_node_that_is_away_keeps_no_end_and_no_output_from_being_told(day: Scene) -> None:
    """What the hub heard is passed on. Seen to fail without what the event told: the child would
    wait for half an hour, and then begin without the output.
    """
    tasks: Any = a_graph(("b", "a"))["tasks"]
    tasks["b"]["context"] = ["a"]
    submitted(day, {"id": DAG, "title": "x", "tasks": tasks}, home="forge")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    day.run(GRAPHS)  # from now on it is known who waits for what
    runs_it(day, "loom", output={"rows": 7})
    day.run(HEALTH)
    day.off("loom")
    day.run(GRAPHS)
    assert state(day, "forge", 2) == "READY"
    assert begins_with(day, "forge", 2) == {f"task:{uid(1)}:output": {"rows": 7}}


def test_an_error_of_its_node_is_no_word_that_it_left_nothing(day: Scene) -> None:
    """Seen to fail: a disk that failed at that moment, and the child began with nothing."""

    def fail(do: str, asked: JsonObject, result: JsonObject) -> JsonObject:
        if do == "show":
            raise NodeRefused("loom", "disk_broken", "what is on the disk is not known")
        return result

    tasks: Any = a_graph(("b", "a"))["tasks"]
    tasks["b"]["context"] = ["a"]
    submitted(day, {"id": DAG, "title": "x", "tasks": tasks}, home="forge")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    runs_it(day, "loom", output={"rows": 7})
    link = day.hub.links["loom"]
    day.hub.links["loom"] = LyingLink(link, fail)
    day.run(HEALTH)
    day.run(GRAPHS)
    assert state(day, "forge", 2) == "PENDING"
    day.hub.links["loom"] = link
    day.run(GRAPHS)
    assert state(day, "forge", 2) == "READY"
    assert begins_with(day, "forge", 2) == {f"task:{uid(1)}:output": {"rows": 7}}


def test_what_a_task_cost_does_not_stand_for_what_it_left(day: Scene) -> None:
    """Its node went away before anybody asked for its output, and the hub knows the cost alone.
    Fails where that counts as what it left: whoever is given it begins at once, with nothing.
    """
    tasks: Any = a_graph(("b", "a"))["tasks"]
    tasks["b"]["context"] = ["a"]
    submitted(day, {"id": DAG, "title": "x", "tasks": tasks}, home="forge")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    runs_it(day, "loom", output={"rows": 7}, cost_usd="0.25")
    day.run(HEALTH)
    day.off("loom")
    day.run(GRAPHS)
    assert state(day, "forge", 2) == "PENDING"
    day.passes(1801)
    day.run(GRAPHS)
    assert state(day, "forge", 2) == "PENDING"


def test_what_was_stopped_elsewhere_is_told_with_its_cost_though_its_node_is_away(
    day: Scene,
) -> None:
    """Seen to fail: the hub kept what attempts cost that failed or were put back, and not of those
    that a person stopped, so that a node took that out of all budgets as it went away.
    """
    submitted(day, a_graph(("b", "a")), home="forge")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    store = day.fleet.machines["loom"].store
    got = store.apply(c.Claim("loom"))
    assert isinstance(got, c.Claimed)
    day.asks("loom", "cancel", uids=[uid(1)], reason="enough", by="human:ann")
    store.apply(c.Finish(uid(1), got.n, c.Result("interrupted", cost_usd="0.4")))
    day.run(HEALTH)
    day.off("loom")
    day.run(GRAPHS)
    told = day.fleet.machines["forge"].store._db.execute("SELECT state, cost_usd FROM told")
    assert [tuple(row) for row in told] == [("CANCELLED", "0.4")]


def away_with_it(day: Scene) -> None:
    """Task 1 ended on loom, which went away before anybody asked what it left; 2 is given that on
    forge, and 3 only waits for the end.
    """
    tasks: Any = a_graph(("b", "a"), ("c", "a"))["tasks"]
    tasks["b"]["context"] = ["a"]
    submitted(day, {"id": DAG, "title": "x", "tasks": tasks}, home="forge")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    runs_it(day, "loom", output={"rows": 7})
    day.run(HEALTH)
    day.off("loom")
    day.passes(1801)
    for _ in range(2):
        day.run(GRAPHS)


def held_by(day: Scene, number: int) -> str:
    (held,) = rows(day.asks("forge", "show", uid=uid(number)), "task", "blocked_by")
    return f"{held['rule']}: {held['text']}"


def test_who_is_given_an_output_waits_for_a_node_that_is_away_with_it(day: Scene) -> None:
    """Seen to fail: after half an hour it began with nothing, as if nothing had been left. Who is
    not given it goes on; who is says what it waits for, to whoever asks and under NEEDS YOU.
    """
    away_with_it(day)
    assert (state(day, "forge", 2), state(day, "forge", 3)) == ("PENDING", "READY")
    assert held_by(day, 2) == (
        f"inputs_missing: the output of {uid(1)} that it is to be given was not heard:"
        " loom is away; it waits for that"
    )
    said = day.tells(why_task, task=uid(2)).data
    assert str(rows(said["waits_for"])[0]["says"]).startswith("done on loom at ")
    assert within(said, "by_hand") == [f"arc tasks cancel {uid(2)} --reason '…'"]
    (line,) = [one for one in rows(day.tells(status).data["needs_you"]) if uid(1) in str(one)]
    assert line["text"] == (
        f'loom was last heard 30m ago: graph {DAG} "x" on forge waits for {uid(1)}, which is there'
    )
    day.fleet.machines["loom"].off = False
    day.run(GRAPHS)
    assert state(day, "forge", 2) == "READY"
    day.run(GRAPHS)
    assert not [one for one in rows(day.tells(status).data["needs_you"]) if uid(1) in str(one)]
    store = day.fleet.machines["forge"].store
    given = store.read(Inputs(uid(2)))
    assert given is not None
    assert given.context == {f"task:{uid(1)}:output": {"rows": 7}}


def test_what_a_person_said_to_be_done_is_waited_for_as_well_while_its_node_is_away(
    day: Scene,
) -> None:
    """Seen to fail: with a person's reason the end was told as one that had left nothing, and who
    is given what was parked there began with null.
    """
    tasks: Any = a_graph(("b", "a"), ("c", "a"))["tasks"]
    tasks["b"]["context"] = ["a"]
    submitted(day, {"id": DAG, "title": "x", "tasks": tasks}, home="forge")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    store = day.fleet.machines["loom"].store
    got = store.apply(c.Claim("loom"))
    assert isinstance(got, c.Claimed)
    store.apply(c.Finish(uid(1), got.n, c.Result("unvalidated", output={"rows": 7})))
    word: Any = {"uids": [uid(1)], "as": "done", "reason": "it is good", "by": "human:ann"}
    day.asks("loom", "resolve", **word)
    day.run(HEALTH)
    day.off("loom")
    day.passes(1801)
    for _ in range(2):
        day.run(GRAPHS)
    assert (state(day, "forge", 2), state(day, "forge", 3)) == ("PENDING", "READY")
    assert "loom is away" in held_by(day, 2)
    day.fleet.machines["loom"].off = False
    day.run(GRAPHS)
    given = day.fleet.machines["forge"].store.read(Inputs(uid(2)))
    assert given is not None
    assert (state(day, "forge", 2), given.context) == (
        "READY", {f"task:{uid(1)}:output": {"rows": 7}})


@pytest.mark.parametrize("way", ["removed", "let go"])
def test_who_waits_for_an_output_goes_on_without_it_where_nobody_can_tell_it_any_more(
    day: Scene, way: str
) -> None:
    """Fails where the first word that was told of the end is the last: it waits for ever."""

    def forgot(do: str, asked: JsonObject, result: JsonObject) -> JsonObject:
        if do == "show":
            raise NodeRefused("loom", "not_found", f"loom has no task {uid(1)}")
        return result

    away_with_it(day)
    if way == "removed":
        day.hub.settings = replace(day.hub.settings, nodes=tuple(
            one for one in day.hub.settings.nodes if one.name != "loom"))  # fmt: skip
        day.hub.last_view = None
        del day.hub.links["loom"]
    else:
        day.fleet.machines["loom"].off = False
        day.hub.links["loom"] = LyingLink(day.hub.links["loom"], forgot)
    day.run(GRAPHS)
    assert state(day, "forge", 2) == "READY"
    given = day.fleet.machines["forge"].store.read(Inputs(uid(2)))
    assert given is not None
    assert given.context == {f"task:{uid(1)}:output": None}


def test_a_later_task_waits_for_what_nobody_has_heard_yet_as_the_first_one_does(day: Scene) -> None:
    """Fails where only whoever waited as the end was told is held, and a later one begins."""
    away_with_it(day)
    day.asks("iris", "add", tasks=[{"uid": uid(9), "subject": "late", "skills": ["arc-research"],
                                    "context_refs": [f"task:{uid(1)}:output"]}])  # fmt: skip
    for _ in range(2):
        day.run(GRAPHS)
    day.asks("iris", "add", tasks=[{"uid": uid(10), "subject": "later", "skills": ["arc-research"],
                                    "context_refs": [f"task:{uid(1)}:output"]}])  # fmt: skip
    assert (state(day, "iris", 9), state(day, "iris", 10)) == ("PENDING", "PENDING")
    day.fleet.machines["loom"].off = False
    day.run(GRAPHS)
    assert (state(day, "iris", 9), state(day, "iris", 10)) == ("READY", "READY")


def test_an_end_that_its_node_cannot_tell_whole_is_told_without_what_it_left(day: Scene) -> None:
    """As deep as this nothing travels, and a node with an older program takes it from its tasks.
    Fails where such an answer counts as one that may be better the next time.
    """
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    runs_it(day, "iris", output=[[[[[[[[["deep"]]]]]]]]])
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "PENDING"
    day.passes(1801)
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"


def test_a_graph_on_a_node_is_told_of_ends_on_others(day: Scene) -> None:
    submitted(day, a_graph(("b", "a")), home="iris")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    runs_it(day, "loom")
    day.run(GRAPHS)
    assert state(day, "iris", 2) == "READY"
    assert times_ready(day, "iris", 2) == 1


FATES = ("lost", "unheard", "late", "doubled", "node_dies_before", "node_dies_after",
         "hub_dies_before", "hub_dies_after")  # fmt: skip


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_the_word_the_child_is_released_once(day: Scene, fate: str) -> None:
    """Each cell of the crash table: the word is lost, late or doubled, or either end dies before
    or after it. Seen to fail where a run marks an end as told before it was.
    """
    submitted(day, a_graph(("b", "a")), home="iris")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    runs_it(day, "loom")
    day.fleet.weather.aimed = {"ended": fate}
    try:
        day.run(GRAPHS)
    except HubDied:
        hub_restarts(day)
    assert fate in day.fleet.weather.happened, day.fleet.weather.happened
    day.run(GRAPHS)
    while day.fleet.weather.bag:
        day.fleet.weather.deliver_late()
    day.run(GRAPHS)
    assert state(day, "iris", 2) == "READY"
    assert times_ready(day, "iris", 2) == 1


def stormy_round(day: Scene, do: str, fate: str) -> None:
    """A round in which this becomes of the word `do`, and what is left of it arrives afterwards."""
    day.fleet.weather.aimed = {do: fate}
    try:
        day.run(GRAPHS)
    except HubDied:
        hub_restarts(day)
    assert day.fleet.weather.happened[fate] == 1
    day.run(GRAPHS)
    while day.fleet.weather.bag:
        day.fleet.weather.deliver_late()
    day.run(GRAPHS)


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_the_word_a_retried_member_brings_its_child_back(
    day: Scene, fate: str
) -> None:
    submitted(day, a_graph(("b", "a")), home="iris")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    runs_it(day, "loom", how="failed")
    day.run(GRAPHS)
    assert state(day, "iris", 2) == "CANCELLED"
    day.tells(tasks_retry, tasks=[uid(1)], reason="mended", by="human:ann")
    stormy_round(day, "alive", fate)
    assert state(day, "iris", 2) == "PENDING"
    runs_it(day, "loom")
    day.run(GRAPHS)
    assert (state(day, "iris", 2), times_ready(day, "iris", 2)) == ("READY", 1)


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_the_word_a_child_joins_its_graph_once(day: Scene, fate: str) -> None:
    graph: JsonObject = {"id": DAG, "title": "one", "tasks": {
        "a": {"uid": uid(1), "subject": "a"}}}  # fmt: skip
    submitted(day, graph, home="iris")
    day.tells(tasks_move, tasks=[uid(1)], to="loom", yes=True)
    machine = day.fleet.machines["loom"]
    got = machine.store.apply(c.Claim("loom"))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    born(day, "loom", got, 7)
    machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    stormy_round(day, "joined", fate)
    assert graph_state(day, "iris") == "running"
    runs_it(day, "loom")
    day.run(GRAPHS)
    events = rows(day.asks("iris", "events", after_seq=0, limit=1000)["events"])
    assert [one["event"] for one in events if str(one["event"]).startswith("dag_")] == [
        "dag_submitted", "dag_completed"]  # fmt: skip
    assert day.hub.journal.outbox.births() == ()


def test_a_child_that_a_member_made_elsewhere_keeps_its_graph_open(day: Scene) -> None:
    """Told of its parent's end first, the graph would be over without it."""
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    store = day.fleet.machines["iris"].store
    got = store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    store.apply(c.Started(got.task.uid, got.n, 42, 99, day.fleet.machines["iris"].clock.boot_id()))
    born(day, "iris", got, 7)
    store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    report = day.run(GRAPHS)
    assert within(report.details, "joined") == 1
    shown = day.asks("inbox", "graph", dag=DAG)
    assert {one["uid"] for one in rows(shown["tasks"])} == {uid(1), uid(2), uid(7)}
    day.run(ROUTER)
    runs_it(day, "iris")
    runs_it(day, "iris")
    day.run(GRAPHS)
    assert graph_state(day) == "completed"


def test_a_graph_ends_once_although_its_last_task_made_another(day: Scene) -> None:
    """Seen to fail where ends are told before births: it ends, is opened again, and ends twice."""
    submitted(day, {"id": DAG, "title": "one", "tasks": {
        "a": {"uid": uid(1), "subject": "a", "skills": ["arc-research"]}}})  # fmt: skip
    day.run(ROUTER)
    machine = day.fleet.machines["iris"]
    got = machine.store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    born(day, "iris", got, 7)
    machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    day.run(GRAPHS)
    assert graph_state(day) == "running"
    runs_it(day, "iris")
    day.run(GRAPHS)
    events = rows(day.asks("inbox", "events", after_seq=0, limit=1000)["events"])
    assert [one["event"] for one in events if str(one["event"]).startswith("dag_")] == [
        "dag_submitted", "dag_completed"]  # fmt: skip


def born(
    day: Scene, node: str, got: c.Claimed, number: int, *, waits: bool = False, **more: Any
) -> None:
    """A running task makes another one in its own graph, as `agent-node spawn` does."""
    from agent_node.graph_words import Parent, Spawn
    from tests.builders import a_task

    child = a_task(number, parent=got.task.uid, dag=got.task.dag, skills=["arc-research"], **more)
    parent = Parent(got.task.uid, got.n, waits=waits)
    said = day.fleet.machines[node].store.apply(Spawn(child, parent))
    assert said.outcome == "added"


def test_cancelling_a_graph_reaches_members_on_a_node_that_was_away(day: Scene) -> None:
    """Also where the hub was started anew meanwhile: what is owed lies in its journal."""
    submitted(day, a_graph(("b", "a"), ("c", "b")))
    day.run(ROUTER)
    day.off("iris")
    assert day.tells(dag_cancel, dag=DAG, dry_run=True).data["cancelled"] == 2
    assert graph_state(day) == "running"
    told = day.tells(dag_cancel, dag=DAG, reason="wrong", by="human:ann")
    assert told.exit == 3
    assert told.data["owed"] == [uid(1)]
    assert [one["node"] for one in told.partial] == ["iris"]
    hub_restarts(day)
    day.fleet.machines["iris"].off = False
    day.run(GRAPHS)
    assert state(day, "iris", 1) == "CANCELLED"
    assert day.hub.journal.outbox.owed_cancels() == ()
    assert day.tells(dag_cancel, dag=DAG, reason="wrong", by="human:ann").exit == 0


def test_a_child_that_is_born_into_a_cancelled_graph_is_cancelled(day: Scene) -> None:
    """Its node was away when a person cancelled the graph, so the word came after the birth. Fails
    where the home lets it join, and where the hub leaves it alone once the home has refused it.
    """
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    machine = day.fleet.machines["iris"]
    got = machine.store.apply(c.Claim("iris"))
    assert isinstance(got, c.Claimed)
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    day.off("iris")
    day.tells(dag_cancel, dag=DAG, reason="wrong", by="human:ann")
    born(day, "iris", got, 7)
    machine.off = False
    assert state(day, "iris", 7) == "READY"
    day.run(GRAPHS)
    assert [one.uid for one in day.hub.journal.outbox.owed_cancels()] == [uid(7)]
    day.run(GRAPHS)
    assert state(day, "iris", 7) == "CANCELLED"
    why = day.asks("iris", "show", uid=uid(7))
    assert "its graph was cancelled" in str(why["events"])
    assert graph_state(day) == "cancelled"
    assert (day.hub.journal.outbox.births(), day.hub.journal.outbox.owed_cancels()) == ((), ())


def test_a_graph_is_cancelled_only_with_a_word_why(day: Scene) -> None:
    submitted(day, a_graph(("b", "a")))
    with pytest.raises(Exception, match="takes a word why"):
        day.tells(dag_cancel, dag=DAG)


def test_list_and_show_tell_of_graphs_of_the_hub_and_of_nodes(day: Scene) -> None:
    assert day.tells(dag_list).data["dags"] == []
    submitted(day, a_graph(("b", "a")))
    other = {**a_graph(("b", "a")), "id": uid(901)}
    other["tasks"] = {"x": {"uid": uid(77), "subject": "x"}}
    day.asks("loom", "submit", graph=other, by="human:ann")
    homes = {one["id"]: one["home"] for one in rows(day.tells(dag_list).data["dags"])}
    assert homes == {DAG: "inbox", uid(901): "loom"}
    day.run(ROUTER)
    shown = day.tells(dag_show, dag=DAG[-4:]).data
    tasks = {str(one["name"]): one for one in rows(shown["tasks"])}
    assert (tasks["a"]["node"], tasks["a"]["state"], tasks["a"]["level"]) == ("iris", "READY", 1)
    assert (tasks["b"]["state"], tasks["b"]["level"]) == ("PENDING", 2)
    assert shown["critical_path"] == [uid(1), uid(2)]
    assert day.tells(dag_show, dag=uid(2)).data["id"] == DAG
    assert within(day.tells(status).data, "graphs", "running") == 2


def test_a_task_in_no_graph_is_shown_as_a_graph_of_one(day: Scene) -> None:
    day.asks("loom", "add", tasks=[{"uid": uid(5), "subject": "alone"}])
    shown = day.tells(dag_show, dag=uid(5)).data
    assert shown["alone"] is True
    assert [one["uid"] for one in rows(shown["tasks"])] == [uid(5)]


def test_a_new_task_may_wait_for_one_on_a_node_also_if_that_ended_long_ago(day: Scene) -> None:
    """Seen to fail where only events tell ends: this one was heard and forgotten before."""
    day.asks("loom", "add", tasks=[{"uid": uid(5), "subject": "first"}])
    runs_it(day, "loom")
    day.run(HEALTH)
    day.hub.journal._rows.write("DELETE FROM task_end")
    waits = {"uid": uid(6), "subject": "second", "depends_on": [{"uid": uid(5)[-6:]}]}
    assert rows(day.tells(tasks_add, tasks=[waits]).data["results"])[0]["outcome"] == "added"
    assert state(day, "inbox", 6) == "PENDING"
    day.run(GRAPHS)
    assert state(day, "inbox", 6) == "READY"


def test_a_new_task_that_waits_for_one_elsewhere_is_looked_after_at_once(
    day: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: nothing ran before the next minute, and a round for an end that came meanwhile
    did not know yet that its node waits.
    """
    day.asks("loom", "add", tasks=[{"uid": uid(5), "subject": "first"}])
    day.run(GRAPHS)
    runs_it(day, "loom")
    soon: list[tuple[str, frozenset[str]]] = []
    schedule = Schedule(day.hub)
    monkeypatch.setattr(schedule, "soon", lambda name, why, woken: soon.append((name, woken)))
    monkeypatch.setattr(day.hub, "schedule", schedule)
    waits = {"uid": uid(6), "subject": "second", "depends_on": [{"uid": uid(5)}]}
    day.tells(tasks_add, tasks=[waits], to="iris", dry_run=True)
    assert soon == []
    day.tells(tasks_add, tasks=[waits], to="iris")
    assert soon == [(GRAPHS, frozenset({"inbox", "iris"}))]
    assert state(day, "iris", 6) == "PENDING"
    assert day.run(GRAPHS, woken=frozenset({"loom"})).outcome == "done"
    assert state(day, "iris", 6) == "READY"


def test_an_end_that_no_event_tells_any_more_is_looked_up(day: Scene) -> None:
    """Without that, whatever waits for it waits for ever: its node let go of its events, or the
    journal was lost after they were heard.
    """
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    runs_it(day, "iris")
    day.run(HEALTH)
    day.hub.journal._rows.write("DELETE FROM task_end")
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "PENDING"
    day.passes(601)
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"


def test_nothing_is_added_that_would_wait_for_ever(day: Scene) -> None:
    waits = {"uid": uid(6), "subject": "x", "depends_on": [{"uid": uid(404)}]}
    with pytest.raises(Exception, match="wait for ever"):
        day.tells(tasks_add, tasks=[waits])
    graph = a_graph(("b", "a"))
    graph["tasks"]["b"]["after"] = [uid(404)]  # type: ignore[index,call-overload]
    with pytest.raises(Exception, match="wait for ever"):
        day.tells(dag_submit, graph=graph, by="human:ann")
    assert rows(day.tells(dag_list, all=True).data["dags"]) == []


def test_why_names_what_a_blocked_task_waits_for_and_where_that_is(day: Scene) -> None:
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    said = day.tells(why_task, task=uid(2)).data
    (edge,) = rows(said["waits_for"])
    assert (edge["uid"], edge["node"], edge["state"]) == (uid(1), "iris", "READY")
    assert "it waits for 1 of 1 tasks to end" in str(said["result"])
    assert f"arc why {uid(1)}" in str(said["by_hand"])


@pytest.mark.parametrize(("how", "became"), [
    ("completed", ("COMPLETED", "DONE", None)),
    ("failed", ("CANCELLED", "CHANGE", f"dependency_failed: {uid(1)} ended badly")),
])  # fmt: skip
def test_why_of_a_task_whose_graph_ends_while_it_is_asked_tells_that_end(
    day: Scene, how: End, became: tuple[str, str, str | None]
) -> None:
    """Seen to fail: the task was read before the end and what it waited for behind it, so its queue
    was said to be told in the next run.
    """
    submitted(day, a_graph(("b", "a")), home="iris")

    async def meanwhile() -> Told:
        async with day.hub.moving:
            asked = asyncio.create_task(why_task(day.hub, {"task": uid(2)}))
            await asyncio.sleep(1)  # of the virtual clock: by then it has found the task and waits
            runs_it(day, "iris", how=how)
            if how == "completed":
                runs_it(day, "iris")
        return await asked

    said = day._do(meanwhile()).data
    assert (said["state"], said["verdict"], said["failure_reason"]) == became
    assert said["ended_at"]
    assert "waits_for" not in said


def test_why_says_when_that_ended_which_a_task_waited_for(day: Scene) -> None:
    """Seen to fail: `done on iris` alone."""
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    runs_it(day, "iris")
    said = day.tells(why_task, task=uid(2)).data
    (edge,) = rows(said["waits_for"])
    assert edge["ended_at"]
    assert edge["says"] == f"done on iris at {edge['ended_at']}"
    assert "its queue is told in the next run of fleet-graphs" in str(said["result"])


def test_why_of_a_task_whose_node_falls_silent_meanwhile_tells_what_it_found(
    day: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: `ARC-NOT-FOUND-YET` in the place of an answer that was there."""
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    runs_it(day, "iris")

    async def found_no_more(hub: Hub, part: str) -> Found:
        if part == uid(2):
            raise NotFoundYet(f"{part}: no node that answered has such a task")
        return await find_task(hub, part)

    monkeypatch.setattr(why_waiting, "find_task", found_no_more)
    said = day.tells(why_task, task=uid(2)).data
    assert said["state"] == "PENDING"
    assert len(rows(said["waits_for"])) == 1


def test_a_woken_round_that_has_nothing_to_tell_is_not_written_down(day: Scene) -> None:
    """Every task that finishes may start one: they would push all other runs out of the journal."""
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    assert day.run(GRAPHS, woken=frozenset({"loom"})).outcome == "skipped"
    runs_it(day, "iris")
    assert day.run(GRAPHS, woken=frozenset({"iris"})).outcome == "done"
    assert state(day, "inbox", 2) == "READY"
    assert day.hub.awaiting


def test_a_fleet_without_graphs_is_asked_for_nothing_but_its_reports(day: Scene) -> None:
    day.has("loom", 3)
    assert day.run(GRAPHS).requests == len(day.fleet.machines)


def test_the_status_asks_only_stores_that_have_graphs_for_them(day: Scene) -> None:
    """Fails where every store is asked each time: a request a node for nothing."""
    day.run(GRAPHS)
    before = {name: link.requests for name, link in day.hub.links.items()}
    submitted(day, a_graph(("b", "a")), home="iris")
    day.tells(status)
    asked = {name: link.requests - before[name] for name, link in day.hub.links.items()}
    assert asked.pop("iris") == asked.pop("inbox") + 2  # one more for the graphs, and the submit
    assert set(asked.values()) == {1}


def test_nobody_is_asked_for_files_who_waits_for_none(day: Scene) -> None:
    """Fails where every store that waits for an end is asked in each round."""
    submitted(day, a_graph(("b", "a")))
    day.run(ROUTER)
    asked: list[str] = []
    inbox: Any = day.hub.links["inbox"]
    real = inbox.ask

    async def ask(do: str, *more: Any, **named: Any) -> Any:
        asked.append(do)
        return await real(do, *more, **named)

    inbox.ask = ask
    day.run(GRAPHS)
    assert "awaits" in asked
    assert "artifacts_missing" not in asked


def test_the_journal_keeps_an_end_for_as_long_as_somebody_was_told_of_it(day: Scene) -> None:
    """Seen to fail without the condition: the end is pruned first, and the task is told to live."""
    from datetime import timedelta

    from arc.decisions.outbox import EndHeard
    from arc.journal_ends import TaskEnd

    journal: Journal = day.hub.journal
    old = day.hub.clock.now() - timedelta(days=31)
    journal.ends.note([TaskEnd("iris", uid(1), "CANCELLED", old)])
    journal.outbox.telling("inbox", [EndHeard(uid(1), "iris", "CANCELLED", "")])
    journal.prune()
    assert journal.outbox.revived() == ()


def test_an_end_that_an_older_hub_told_is_not_taken_back_for_want_of_its_number(
    day: Scene,
) -> None:
    """Fails where a number that was never written down differs from every other one."""
    from arc.decisions.outbox import EndHeard
    from arc.journal_ends import TaskEnd

    journal: Journal = day.hub.journal
    journal.ends.note([TaskEnd("iris", uid(1), "FAILED", day.hub.clock.now(), seq=7)])
    journal.outbox.telling("inbox", [EndHeard(uid(1), "iris", "FAILED", "", seq=7)])
    assert journal.outbox.revived() == ()
    journal._rows.write("UPDATE end_told SET seq = NULL")
    assert journal.outbox.revived() == ()
    journal.outbox.telling("inbox", [EndHeard(uid(1), "iris", "FAILED", "", seq=3)])
    assert journal.outbox.revived() == (("inbox", uid(1)),)
