"""A file that a task left on one node reaches the task that reads it on another, once and whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node.artifacts import Shelf
from agent_node.strict import JsonObject, JsonValue
from arc import bringing
from arc.operations.tasks_move import tasks_move
from arc.operations.why import why_task
from tests.builders import uid
from tests.fleet.machines import HubDied
from tests.sensors.test_graphs_across import GRAPHS, ROUTER, hub_restarts, state, submitted
from tests.sensors_stage import Scene, rows

DAG = uid(900)
CONTENT = b"0123456789" * 250  # three pieces of a thousand bytes, in these stories
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FATES = ("lost", "unheard", "late", "doubled", "hub_dies_before", "hub_dies_after",
         "node_dies_before", "node_dies_after")  # fmt: skip


@pytest.fixture
def day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(bringing, "PIECE", 1000)
    made = Scene(tmp_path)
    yield made
    made.close()


def shelf(day: Scene, node: str) -> Shelf:
    return Shelf(day.fleet.machines[node].place / "artifacts")


def leaves(
    day: Scene, node: str, content: bytes | None = CONTENT, *, on_shelf: bool = True
) -> None:
    """The node's next task ends well and leaves `report.txt`; None: it left nothing of the kind."""
    machine = day.fleet.machines[node]
    got = machine.store.apply(c.Claim(node))
    assert isinstance(got, c.Claimed), got
    left: list[JsonValue] = []
    if content is not None:
        sha256 = hashlib.sha256(content).hexdigest()
        left.append({"name": "report.txt", "sha256": sha256, "size": len(content)})
    if content is not None and on_shelf:
        with shelf(day, node).write() as writing:
            writing.add(content)
            writing.keep()
    machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))
    machine.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed", artifacts=left)))


def a_pair() -> JsonObject:
    """`a` leaves a report, and `b` reads it."""
    tasks: JsonObject = {
        "a": {"uid": uid(1), "subject": "a", "skills": ["arc-research"]},
        "b": {"uid": uid(2), "subject": "b", "skills": ["arc-research"],
              "context": ["a.artifact:report.txt"]},
    }  # fmt: skip
    return {"id": DAG, "title": "a pair", "tasks": tasks}


def apart(day: Scene) -> None:
    """`b` waits on loom for the file that `a` will leave on iris."""
    submitted(day, a_pair(), home="loom")
    day.tells(tasks_move, tasks=[uid(1)], to="iris", yes=True)
    assert (state(day, "iris", 1), state(day, "loom", 2)) == ("READY", "PENDING")


def given(day: Scene, node: str) -> JsonValue:
    from agent_node.graph_words import Inputs

    found = day.fleet.machines[node].store.read(Inputs(uid(2)))
    assert found is not None
    return found.context[f"task:{uid(1)}:artifact:report.txt"]


def test_a_file_from_one_node_is_there_when_its_reader_starts_on_another(day: Scene) -> None:
    apart(day)
    leaves(day, "iris")
    report = day.run(GRAPHS)
    assert "1 artifact brought" in report.summary
    assert state(day, "loom", 2) == "READY"
    assert shelf(day, "loom").path_of(SHA256).read_bytes() == CONTENT
    assert given(day, "loom") == {"name": "report.txt", "sha256": SHA256, "size": len(CONTENT)}
    assert day.run(GRAPHS).summary == "no store waits for a task elsewhere"


def test_a_reader_in_the_hubs_own_queue_gets_it_wherever_it_is_sent(day: Scene) -> None:
    submitted(day, a_pair())
    day.run(ROUTER)
    leaves(day, "iris")
    day.run(GRAPHS)
    assert state(day, "inbox", 2) == "READY"
    day.run(ROUTER)
    assert state(day, "iris", 2) == "READY"
    day.tells(tasks_move, tasks=[uid(2)], to="loom", yes=True)
    assert state(day, "loom", 2) == "PENDING"
    day.run(GRAPHS)
    assert state(day, "loom", 2) == "READY"


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("do", ["artifact", "artifact_put"])
@pytest.mark.parametrize("after", range(4))
def test_whatever_is_cut_off_where_the_file_comes_whole_in_the_end(
    day: Scene, do: str, fate: str, after: int
) -> None:
    """Every request that carries it meets with this once: the first, the second, and so on."""
    apart(day)
    leaves(day, "iris")
    weather = day.fleet.weather
    seen = 0
    told = type(weather).fate

    def at_that_one(word: str) -> str:
        nonlocal seen
        if word == do:
            if seen == after:
                weather.aimed = {do: fate}
            seen += 1
        return told(weather, word)

    weather.fate = at_that_one  # type: ignore[method-assign, assignment]
    for _ in range(4):
        try:
            day.run(GRAPHS)
        except HubDied:
            hub_restarts(day)
        while weather.bag:
            weather.deliver_late()
    if not (do == "artifact" and after == 3):  # three pieces are fetched
        assert weather.happened[fate] == 1
    assert state(day, "loom", 2) == "READY"
    assert shelf(day, "loom").path_of(SHA256).read_bytes() == CONTENT


def test_a_file_that_its_node_lost_is_named_with_who_was_asked(day: Scene) -> None:
    apart(day)
    leaves(day, "iris", on_shelf=False)
    report = day.run(GRAPHS)
    day.hub.journal.runs.add(report, began=day.hub.clock.now(), because="a test")
    failed = report.details["artifacts_failed"]
    assert isinstance(failed, dict)
    why = str(failed[f"loom {SHA256}"])
    assert "found nowhere" in why
    assert "iris: not_found" in why
    assert state(day, "loom", 2) == "PENDING"
    answer = day.tells(why_task, task=uid(2)).data
    (file,) = rows(answer["files"])
    assert "on iris" in str(file["says"])
    assert "found nowhere" in str(file["says"])


def test_one_file_that_cannot_come_keeps_no_other_from_coming(day: Scene) -> None:
    apart(day)
    tasks: JsonObject = {"c": {"uid": uid(3), "subject": "c", "context": [f"artifact:{'0' * 64}"]}}
    day.asks("loom", "submit", graph={"id": uid(901), "title": "other", "tasks": tasks}, by="ann")
    leaves(day, "iris")
    report = day.run(GRAPHS)
    assert report.details["artifacts"] == [f"loom {SHA256}"]
    assert (state(day, "loom", 2), state(day, "loom", 3)) == ("READY", "PENDING")


def test_a_reader_of_a_file_that_was_never_left_is_told_so_and_starts(day: Scene) -> None:
    apart(day)
    leaves(day, "iris", None)
    day.run(GRAPHS)
    assert state(day, "loom", 2) == "READY"
    said = given(day, "loom")
    assert said == {"name": "report.txt", "because": f"{uid(1)} left no artifact of this name"}


def test_while_its_node_is_away_the_reader_waits_for_what_it_left(day: Scene) -> None:
    """An end that was heard before, without what the task left, is no word on its files."""
    apart(day)
    at = day.hub.clock.now().strftime("%Y-%m-%dT%H:%M:%S.000Z")
    end: JsonObject = {"uid": uid(1), "state": "COMPLETED", "node": "iris", "at": at}
    day.asks("loom", "ended", tasks=[end])
    assert state(day, "loom", 2) == "PENDING"
    leaves(day, "iris")
    day.run(GRAPHS)
    assert state(day, "loom", 2) == "READY"


def test_a_run_carries_no_more_than_its_share_and_the_next_goes_on(
    day: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bringing, "BYTES_MAX", 1500)
    apart(day)
    leaves(day, "iris")
    report = day.run(GRAPHS)
    assert report.details["artifacts_left"] == 1
    assert "1 artifact on the way" in report.summary
    for _ in range(3):
        day.run(GRAPHS)
    assert state(day, "loom", 2) == "READY"
    assert (day.place / ".arc" / "artifacts" / SHA256[:2] / SHA256).read_bytes() == CONTENT
