"""`arc nodes drain --watch` names the pinned tasks that it waits for, and how each wait ends."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from arc.errors import NodeUnreachable
from arc.operations import Told
from arc.text.nodes import ways_out
from tests.builders import uid
from tests.hub.cli.desk import Desk, Ran

REBALANCE = ("sensors", "run", "fleet-rebalance")
TRIES = 5


def watched(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, then: Callable[[], object], *words: str
) -> Ran:
    """A watch in whose first pauses `then` is done; it has to end within a few looks."""
    looks: list[None] = []

    def pause(seconds: float) -> None:
        looks.append(None)
        assert len(looks) < TRIES, "it would be watched for a day"
        if len(looks) == 1:
            then()

    monkeypatch.setattr("arc.cli.draining.time.sleep", pause)
    return desk.arc("nodes", "drain", "loom", "--watch", *words)


@pytest.mark.parametrize("way", [0, 1, 2], ids=["move", "unpin", "cancel"])
def test_a_pinned_task_is_named_and_each_way_out_that_is_told_ends_the_wait(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, way: int
) -> None:
    """Seen to fail: the watch said `1 waiting`, and nothing of what it waited for."""
    desk.waits("loom", 1, priority=3, pinned=True)
    desk.waits("loom", 2, priority=9)
    typed = ways_out(uid(1))[way]

    def follows() -> None:
        words = typed.replace("NODE", "iris").split()[1:]
        assert desk.arc(*words).code == 0, typed
        assert desk.arc(*REBALANCE).code == 0

    said = watched(desk, monkeypatch, follows)
    assert said.code == 0
    at = said.lines.index("loom drained: 0 running, 1 waiting")
    assert said.lines[at + 1 : at + 7] == [
        "  no drain moves what is pinned: 1 waiting task", f"    {uid(1)}  P3",
        "  it ends by one of these for each:", f"    arc tasks move {uid(1)} --to NODE --yes",
        f"    arc tasks set {uid(1)} pinned=false", f"    arc tasks cancel {uid(1)}",
    ]  # fmt: skip
    assert said.lines[-1] == "loom drained: 0 running, 0 waiting"
    assert uid(2) not in said.out


def test_machines_are_told_whom_it_waits_for_on_every_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.waits("loom", 1, 2, pinned=True)
    cancels = ("tasks", "cancel", uid(1), uid(2), "--yes")
    said = watched(desk, monkeypatch, lambda: desk.arc(*cancels), "--json")
    first, *lines = [json.loads(line)["data"] for line in said.lines]
    assert first["node"] == "loom"
    assert [one["uid"] for one in lines[0]["waits_for"]] == [uid(1), uid(2)]
    assert lines[0]["waits_for"][1]["ways_out"] == [*ways_out(uid(2))]
    assert (lines[0]["pinned"], lines[0]["pending"]) == (2, 2)
    assert (lines[-1]["pinned"], lines[-1]["waits_for"]) == (0, [])


def test_several_are_named_with_one_line_for_each_way(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.waits("loom", *range(1, 31), pinned=True)
    cancels = ("tasks", "cancel", *map(uid, range(1, 31)), "--yes")
    said = watched(desk, monkeypatch, lambda: desk.arc(*cancels))
    assert "  no drain moves what is pinned: 30 waiting tasks" in said.lines
    assert "    … and 10 more: arc tasks list --node loom" in said.lines
    assert "    arc tasks move UID --to NODE --yes" in said.lines
    assert said.out.count("arc tasks cancel") == 1


def test_tasks_that_cannot_be_read_are_not_said_to_be_none(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.waits("loom", 1, pinned=True)
    ask = desk.ask

    def silent(around: object, op: str, *args: object, **more: object) -> Told:
        if op == "tasks.list":
            raise NodeUnreachable("loom", "no route to it")
        return ask(around, op, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(desk, "ask", silent)
    cancel = ("tasks", "cancel", uid(1))
    said = watched(desk, monkeypatch, lambda: desk.arc(*cancel), "--json")
    assert json.loads(said.lines[1])["data"]["waits_for"] is None
    desk.arc("nodes", "resume", "loom")
    desk.waits("loom", 2, pinned=True)
    cancel = ("tasks", "cancel", uid(2))
    said = watched(desk, monkeypatch, lambda: desk.arc(*cancel))
    assert "which could not be read: arc tasks list --node loom" in said.out
