"""Who waits for a file that no queue has is named to a person, with what to type."""

from __future__ import annotations

from agent_node.strict import JsonObject, JsonValue
from arc.operations.page_now import page_now
from arc.operations.status import status
from arc.operations.tasks_change import tasks_cancel
from tests.builders import uid
from tests.sensors.test_artifacts_across import CONTENT, SHA256, apart, day, leaves, shelf
from tests.sensors.test_circles import ten_minutes
from tests.sensors.test_graphs_across import GRAPHS, state
from tests.sensors_stage import Scene, rows

__all__ = ["day"]


def wants(day: Scene, node: str, number: int, sha256: str = SHA256) -> None:
    """A task there that is to be given the file of this hash."""
    refs: list[JsonValue] = [f"artifact:{sha256}"]
    task: JsonObject = {"uid": uid(number), "subject": "x", "context_refs": refs}
    (said,) = rows(day.asks(node, "add", tasks=[task])["results"])
    assert said["outcome"] == "added", said


def named(day: Scene, sha256: str = SHA256) -> list[JsonObject]:
    return [one for one in rows(day.tells(status).data["needs_you"])
            if f"for the file {sha256}" in str(one["text"])]  # fmt: skip


def test_who_waits_for_a_file_that_nobody_has_is_named_after_two_looks(day: Scene) -> None:
    """Fails where only `arc why` tells of it: nobody asks that of a task that waits in silence."""
    wants(day, "iris", 1)
    wants(day, "iris", 2)
    began = day.hub.clock.now()
    day.run(GRAPHS)
    day.run(GRAPHS)
    assert named(day) == []
    ten_minutes(day)
    (line,) = named(day)
    assert (line["node"], line["try"]) == (
        "iris", f"arc tasks cancel {uid(1)} --reason 'nobody has {SHA256}'")
    assert str(line["text"]) == (
        f"{uid(1)} (and 1 more) waits for the file {SHA256}, which no queue of the fleet has; it"
        f" was looked for since {began:%Y-%m-%dT%H:%M:%SZ}, and it waits for ever")
    assert line in rows(day.tells(page_now).data["needs_you"])
    for number in (1, 2):
        day.tells(tasks_cancel, tasks=[uid(number)], reason="nobody has it")
    day.run(GRAPHS)
    assert named(day) == []


def test_a_file_of_a_task_that_its_node_lost_is_named_with_both(day: Scene) -> None:
    apart(day)
    leaves(day, "iris", on_shelf=False)
    ten_minutes(day)
    (line,) = named(day)
    assert line["node"] == "loom"
    assert f"file {SHA256} (task:{uid(1)}:artifact:report.txt), which no" in str(line["text"])
    with shelf(day, "forge").write() as writing:
        writing.add(CONTENT)
        writing.keep()
    day.run(GRAPHS)
    assert (state(day, "loom", 2), named(day)) == ("READY", [])


def test_while_somebody_cannot_be_asked_that_one_is_named_and_nothing_called_lost(
    day: Scene,
) -> None:
    wants(day, "iris", 1)
    day.off("forge")
    ten_minutes(day)
    (line,) = named(day)
    assert "which no queue has that could be asked, and forge could not" in str(line["text"])
    assert "for ever" not in str(line["text"])
    assert line["try"] == "arc doctor --node forge"
    day.fleet.machines["forge"].off = False
    day.run(GRAPHS)
    assert named(day) == []
    ten_minutes(day)
    assert "which no queue of the fleet has" in str(named(day)[0]["text"])


def test_a_store_that_was_silent_for_one_run_is_named_as_before(day: Scene) -> None:
    """Fails where its silence is taken for a word that it waits no more: it began anew."""
    wants(day, "iris", 1)
    day.run(GRAPHS)
    ten_minutes(day)
    before = [one["text"] for one in named(day)]
    day.off("iris")
    day.run(GRAPHS)
    assert [one["text"] for one in named(day)] == before
    day.fleet.machines["iris"].off = False
    day.run(GRAPHS)
    assert ([one["text"] for one in named(day)], len(before)) == (before, 1)


def test_a_file_that_came_after_all_was_looked_for_once_only(day: Scene) -> None:
    """Looks count ten minutes apart: what is written at this moment is not called lost."""
    wants(day, "iris", 1)
    for _ in range(5):
        day.run(GRAPHS)
    assert named(day) == []
    with shelf(day, "loom").write() as writing:
        writing.add(CONTENT)
        writing.keep()
    day.run(GRAPHS)
    assert (state(day, "iris", 1), day.hub.lost_files) == ("READY", {})
