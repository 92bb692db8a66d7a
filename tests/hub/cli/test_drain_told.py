"""`arc nodes drain`, and NEEDS YOU, say what a drain leaves on its node, and how that ends."""

from __future__ import annotations

from typing import Any

import pytest

from agent_node.strict import JsonObject
from arc import planning
from arc.decisions.draining import PINNED
from arc.errors import NodeUnreachable
from arc.operations import nodes_steer
from arc.text.nodes import ways_out
from tests.builders import uid
from tests.hub.cli.desk import Desk

DRAIN = ("nodes", "drain", "loom", "--reason", "new disk")
STAYS = "there and will: no drain moves what is pinned, and loom starts nothing"


def test_the_answer_names_what_is_pinned_there_and_each_way_out(desk: Desk) -> None:
    """Seen to fail: `2 planned, 2 moved`, and not a word of what stays."""
    desk.waits("loom", 1, 2, priority=9)
    desk.waits("loom", 3, pinned=True)
    told = desk.arc(*DRAIN)
    assert told.code == 0
    assert told.lines[1] == "the run for it: 2 planned, 2 moved"
    assert told.lines[2] == f"1 task still waits {STAYS}"
    assert told.lines[3].endswith('0003 "work 3" P5')
    assert told.lines[4] == "it ends by one of these for each:"
    assert told.lines[5:] == [f"  {way}" for way in ways_out(uid(3))]


def test_machines_are_told_the_same(desk: Desk) -> None:
    desk.waits("loom", 1, 2, pinned=True)
    desk.waits("loom", 3, priority=9)
    data = desk.arc(*DRAIN, "--json").data
    assert data["planned"] == 1
    left = data["left"]
    assert (left["known"], left["pending"], left["pinned"], left["running"]) == (True, 2, 2, 0)
    assert [(one["uid"], one["rule"]) for one in left["stays"]] == [
        (uid(1), "not_pinned"), (uid(2), "not_pinned")]  # fmt: skip


def test_many_are_bounded_for_people(desk: Desk) -> None:
    desk.waits("loom", *range(1, 31), pinned=True)
    told = desk.arc(*DRAIN)
    assert told.lines[2] == f"30 tasks still wait {STAYS}"
    assert "  … and 10 more: --json has them all" in told.lines
    assert told.lines[-3:] == [f"  {way}" for way in ways_out("UID")]


def test_where_nothing_had_to_move_no_skipped_run_is_told(desk: Desk) -> None:
    """Seen to fail: `the run for it: skipped: no busy`, which reads as if the drain had failed."""
    assert desk.arc(*DRAIN).lines[1:] == ["nothing waits there, so nothing had to move"]
    desk.arc("nodes", "resume", "loom")
    desk.waits("loom", 1, pinned=True)
    assert desk.arc(*DRAIN).lines[1] == (
        "nothing waits there that a drain moves, so nothing had to move")  # fmt: skip
    desk.arc("nodes", "resume", "loom")
    assert desk.arc(*DRAIN, "--agent", "loom").lines[1:] == [
        "no waiting task leaves a node for one agent of it"]  # fmt: skip


def test_while_the_fleet_is_paused_it_says_that_nothing_moves(desk: Desk) -> None:
    desk.waits("loom", 1)
    desk.arc("pause", "--reason", "x")
    told = desk.arc(*DRAIN, "--yes")
    assert "nothing moves while the fleet is paused: arc resume" in told.lines
    assert told.lines[-1] == "1 task still waits there for the next run: arc plan"


def test_a_node_that_does_not_say_what_is_left_is_not_said_to_be_empty(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.waits("loom", 1, pinned=True)
    link, drained = desk.hub.links["loom"], False
    ask = link.ask

    async def until_drained(do: str, *args: object, **more: object) -> object:
        nonlocal drained
        drained = drained or do == "drain"
        if drained and do == "status":
            raise NodeUnreachable("loom", "the line broke")
        return await ask(do, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(link, "ask", until_drained)
    told = desk.arc(*DRAIN)
    assert told.lines[-1] == (
        "what still waits there is not known: the line broke: arc nodes show loom")  # fmt: skip
    assert "nothing had to move" not in told.out
    assert desk.arc(*DRAIN, "--json").data["left"]["known"] is False


def test_the_names_of_what_stays_have_one_limit_for_all_pages(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: ten pages had ten seconds each, and who typed it waits for two minutes."""
    desk.waits("loom", 1, 2, 3, pinned=True)
    monkeypatch.setattr(nodes_steer, "PAGE", 1)
    monkeypatch.setattr(nodes_steer, "NAMES_S", 3.0)
    link, limits = desk.hub.links["loom"], list[float | None]()
    ask = link.ask

    async def noted(
        do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> object:
        if do == "list":
            limits.append(timeout_s)
        return await ask(do, fields, timeout_s=timeout_s)

    monkeypatch.setattr(link, "ask", noted)
    assert len(desk.arc(*DRAIN, "--json").data["left"]["stays"]) == 3
    assert len(limits) >= 3
    assert all(limit is not None and limit <= 3.0 for limit in limits)
    assert limits == sorted(limits, key=lambda limit: -(limit or 0.0))


class Forgetful(dict[int, Any]):
    """As where no daemon runs: each request is answered by a process that remembers no other."""

    def __setitem__(self, number: int, end: Any) -> None:
        pass


@pytest.mark.parametrize("daemon", [True, False])
def test_a_node_that_tells_its_first_page_again_is_asked_no_further(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, daemon: bool
) -> None:
    """Seen to fail: it was asked for the same page 25 times."""
    desk.waits("loom", *range(1, 9), priority=9)
    monkeypatch.setattr(planning, "PAGE", 3)
    if not daemon:
        desk.nodes.machines["loom"].store.live.pages = Forgetful()
    link, asked = desk.hub.links["loom"], list[str]()
    ask = link.ask

    async def noted(do: str, *args: Any, **more: Any) -> object:
        asked.append(do)
        return await ask(do, *args, **more)

    monkeypatch.setattr(link, "ask", noted)
    trial = desk.arc(*DRAIN, "--dry-run", "--json").data["drain"]
    beyond = [one["count"] for one in trial["counts"] if one["rule"] == "not_looked_at"]
    assert (asked.count("candidates"), beyond) == ((3, []) if daemon else (2, [5]))


def test_a_drain_that_cannot_end_by_itself_needs_somebody(desk: Desk) -> None:
    """Seen to fail: no drain that waits for a person stood under NEEDS YOU, and the list said
    `takes_new_work` of a task that a pin holds.
    """
    desk.waits("loom", 1, 2, pinned=True)
    assert needs(desk) == []
    desk.arc(*DRAIN)
    says = ("it is drained, and 2 waiting tasks pinned there neither start nor leave: "
            "move, unpin or cancel them")  # fmt: skip
    assert needs(desk) == [(says, "arc tasks list --node loom")]
    listed = desk.arc("tasks", "list", "--node", "loom", "--json").data["tasks"]
    assert {(one["rule"], one["because"]) for one in listed} == {
        ("not_pinned", f"loom is drained and starts nothing; {PINNED}")}
    desk.arc("tasks", "cancel", uid(1), "--yes")
    assert "1 waiting task pinned there neither starts nor leaves" in needs(desk)[0][0]
    desk.arc("nodes", "resume", "loom")
    assert needs(desk) == []


def needs(desk: Desk) -> list[tuple[str, str]]:
    said = desk.arc("status", "--json").data["needs_you"]
    return [(one["text"], one["try"]) for one in said if one["node"] == "loom"]
