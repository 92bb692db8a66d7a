"""`arc nodes drain --dry-run` names what would move and where to, and what would stay and why."""

from __future__ import annotations

import asyncio

import pytest

from arc.decisions.draining import PINNED
from arc.errors import NodeUnreachable
from tests.builders import uid
from tests.hub.cli.desk import Desk

DRY = ("nodes", "drain", "loom", "--dry-run")


def test_each_waiting_task_is_named_with_where_it_would_go_or_why_it_would_stay(
    desk: Desk
) -> None:
    """Seen to fail: `loom would be drained`, and not a word of its tasks."""
    desk.waits("loom", 1, priority=9, skills=["arc-research"])
    desk.waits("loom", 2, needs=["gpu"])
    desk.waits("loom", 3, pinned=True)
    text, data = desk.both(*DRY)
    assert text.code == 0
    assert text.lines[0] == "loom would be draining (dry run: nothing was changed)"
    assert text.lines[1] == "  2 waiting tasks would move"
    (first,) = [line for line in text.lines if '"work 1"' in line]
    assert uid(1)[-4:] in first
    assert "P9 -> iris: " in first
    (second,) = [line for line in text.lines if '"work 2"' in line]
    assert "-> the hub's queue: nobody may take it now: " in second
    assert "  1 waiting task would stay" in text.lines
    assert text.lines[-1].endswith(f'0003 "work 3" P5: not_pinned: {PINNED}')
    drain = data["drain"]
    assert [(one["uid"], one["to"]) for one in drain["moves"]] == [
        (uid(2), "inbox"), (uid(1), "iris")]  # fmt: skip
    assert [(one["uid"], one["rule"]) for one in drain["stays"]] == [(uid(3), "not_pinned")]
    assert sum(one["count"] for one in drain["counts"]) == 1
    assert desk.nodes.states(1) == {"loom": "READY"}, "and nothing was moved"
    desk.arc("nodes", "drain", "loom")
    assert "iris" in desk.nodes.states(1), "and it is as it was told"


def test_many_tasks_are_bounded_for_people_and_whole_for_machines(desk: Desk) -> None:
    """More than one page of the queue."""
    desk.waits("loom", *range(1, 251), skills=["arc-research"])
    text, data = desk.both(*DRY)
    assert "  250 waiting tasks would move" in text.lines
    assert "    … and 230 more: --json has them all" in text.lines
    assert len(text.lines) < 30
    assert len({one["uid"] for one in data["drain"]["moves"]}) == 250


def test_a_node_without_waiting_tasks_is_said_to_have_none(desk: Desk) -> None:
    text, data = desk.both(*DRY)
    assert text.lines[1] == "  0 waiting tasks would move"
    assert (data["drain"]["known"], data["drain"]["moves"]) == (True, [])


@pytest.mark.parametrize("unheard", ["candidates", "status"])
def test_a_queue_that_could_not_be_read_is_not_said_to_be_empty(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, unheard: str
) -> None:
    """Seen to fail without the care for each: 0 tasks would move, as of an empty one; and with 0,
    as if every node had been read.
    """
    desk.waits("loom", 1, skills=["arc-research"])
    link = desk.hub.links["loom"]
    ask = link.ask

    async def ask_all_but(do: str, *args: object, **more: object) -> object:
        if do == unheard:
            raise NodeUnreachable("loom", "the line broke")
        return await ask(do, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(link, "ask", ask_all_but)
    text, data = desk.both(*DRY)
    assert "  what would move is not known: " in text.out
    assert (data["drain"]["known"], "moves" in data["drain"]) == (False, False)
    assert (text.code, partial(desk)) == (3, ["loom"])


def partial(desk: Desk) -> list[str]:
    """Who is said not to have been read."""
    return [one["node"] for one in desk.arc(*DRY, "--json").envelope["partial"]]


def test_who_might_take_something_and_was_not_seen_is_named(desk: Desk) -> None:
    """Seen to fail: its tasks would go to the hub's queue, and nobody was said to be away."""
    desk.waits("loom", 1, skills=["arc-research"])
    desk.nodes.switch_off("iris")
    assert (desk.arc(*DRY).code, partial(desk)) == (3, ["iris"])


def test_a_drain_of_one_agent_moves_no_task_and_names_none(desk: Desk) -> None:
    desk.waits("loom", 1, skills=["arc-research"])
    assert "drain" not in desk.arc(*DRY, "--agent", "loom", "--json").data


def test_while_the_fleet_is_paused_the_trial_says_that_nothing_moves(desk: Desk) -> None:
    desk.waits("loom", 1, skills=["arc-research"])
    desk.arc("pause", "--reason", "x")
    assert "  nothing moves while the fleet is paused" in desk.arc(*DRY).lines
    moved = desk.arc("nodes", "drain", "loom", "--yes")
    assert desk.nodes.states(1) == {"loom": "READY"}, moved.out


def test_what_no_page_had_is_not_said_to_stay(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to fail: `100 waiting tasks would stay`, of tasks that the drain moves afterwards."""
    monkeypatch.setattr("arc.planning.PAGES_MAX", 2)
    desk.waits("loom", *range(1, 501), skills=["arc-research"])
    text, data = desk.both(*DRY)
    assert "  400 waiting tasks would move" in text.lines
    assert text.lines[-1] == (
        "  100 waiting tasks not looked at: beyond the 400 tasks that were read")  # fmt: skip
    assert "would stay" not in text.out
    assert data["drain"]["moves_count"] == len(data["drain"]["moves"]) == 400


@pytest.mark.parametrize("pinned", [False, True], ids=["moves", "stays"])
def test_more_tasks_than_an_answer_has_room_for_are_counted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, *, pinned: bool
) -> None:
    """Seen to fail with 10,000 pinned tasks of long subjects: the hub could not answer at all."""
    monkeypatch.setattr("arc.operations.nodes_steer.ROOM", 30_000)
    desk.waits("loom", *range(1, 101), pinned=pinned, subject="\u0416" * 490)
    text, data = desk.both(*DRY)
    told = data["drain"]["stays" if pinned else "moves"]
    assert 20 < len(told) < 30
    assert f"  100 waiting tasks would {'stay' if pinned else 'move'}" in text.lines
    assert "    … and 80 more" in text.lines
    assert len(text.out.encode()) < 60_000


def test_a_queue_that_takes_too_long_keeps_no_move_of_the_fleet_waiting(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: each page may take ten seconds, and 25 of them kept every move waiting."""
    monkeypatch.setattr("arc.operations.nodes_steer.TRIAL_S", 0.01)
    desk.waits("loom", 1, skills=["arc-research"])
    ask = desk.hub.links["loom"].ask

    async def ask_slowly(do: str, *args: object, **more: object) -> object:
        if do == "candidates":
            await asyncio.Event().wait()
        return await ask(do, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(desk.hub.links["loom"], "ask", ask_slowly)
    text, data = desk.both(*DRY)
    assert "  what would move is not known: loom: its queue was not read in 0.01 s" in text.lines
    assert (data["drain"]["known"], data["drain"]["rule"]) == (False, "silent")
    assert not desk.hub.moving.locked()
