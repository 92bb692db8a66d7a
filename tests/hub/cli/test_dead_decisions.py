"""Every decision about a dead letter is told, wherever the task lay when it was taken."""

from __future__ import annotations

import pytest

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.errors import NodeRefused
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub.cli.test_dead import dies


def dies_again(desk: Desk, node: str, n: int) -> None:
    """Its attempt of this number, on this node, fails for good."""
    store = desk.nodes.machines[node].store
    got = store.apply(c.Claim(node))
    assert isinstance(got, c.Claimed), got
    assert (got.task.uid, got.n) == (uid(1), n)
    ended = store.apply(c.Finish(uid(1), n, c.Result("failed", error_kind="timeout")))
    assert ended.state == "DEAD_LETTERED"


def decided(desk: Desk) -> list[tuple[str, str, str, str]]:
    """What, by whom, where and why, as told; each is in the text, too."""
    text, data = desk.both("dead", "show", uid(1))
    for one in data["decisions"]:
        line = f"  {one['what']} by {one['by']} {one['at']} on {one['node']}: {one['reason']}"
        assert line in text.lines, text.out
    return [(one["what"], one["by"], one["node"], one["reason"]) for one in data["decisions"]]


def moves_to_loom(desk: Desk) -> None:
    moved = desk.arc("tasks", "move", uid(1), "--to", "loom", "--yes")
    assert moved.code == 0, moved


def test_what_was_decided_before_it_moved_and_died_again_is_told(desk: Desk) -> None:
    """Seen to fail with the record of its last death alone: iris' decisions were in no answer."""
    dies(desk, "iris", 1)
    desk.arc("dead", "review", uid(1), "--note", "the key had expired")
    desk.minutes_pass(1)
    desk.arc("dead", "retry", uid(1), "--reason", "a new key")
    first = [("reviewed", "human:ada", "iris", "the key had expired"),
             ("retried", "human:ada", "iris", "a new key")]  # fmt: skip
    assert decided(desk) == first
    desk.minutes_pass(1)
    moves_to_loom(desk)
    dies_again(desk, "loom", 2)
    assert decided(desk) == first
    desk.minutes_pass(1)
    desk.arc("dead", "cancel", uid(1), "--reason", "no longer wanted")
    last = ("cancelled", "human:ada", "loom", "no longer wanted")
    assert decided(desk) == [*first, last]


def test_what_was_decided_of_an_earlier_death_here_is_told(desk: Desk) -> None:
    dies(desk, "iris", 1)
    desk.arc("dead", "edit", uid(1), "priority=2", "--reason", "more urgent")
    dies_again(desk, "iris", 2)
    desk.arc("dead", "review", uid(1), "--note", "seen")
    assert [(what, why) for what, _, _, why in decided(desk)] == [
        ("edited", "more urgent"), ("retried", "more urgent"), ("reviewed", "seen")]  # fmt: skip


def test_what_moved_after_it_was_retried_is_found_where_it_went(desk: Desk) -> None:
    """Its node knows of no death, and the node where it died has it no more."""
    dies(desk, "iris", 1)
    desk.arc("dead", "retry", uid(1), "--reason", "a new key")
    moves_to_loom(desk)
    assert decided(desk) == [("retried", "human:ada", "iris", "a new key")]
    text, data = desk.both("dead", "show", uid(1))
    assert (data["node"], data["state"]) == ("loom", "READY")
    assert "  was a dead letter, is READY now" in text.lines


def test_a_decision_whose_event_was_let_go_is_told_from_the_record(desk: Desk) -> None:
    dies(desk, "iris", 1)
    desk.arc("dead", "review", uid(1), "--note", "seen")
    desk.nodes.machines["iris"].store._db.execute("DELETE FROM event")
    assert decided(desk) == [("reviewed", "human:ada", "iris", "seen")]


def test_who_could_not_be_asked_for_decisions_is_named(desk: Desk) -> None:
    dies(desk, "iris", 1)
    desk.arc("dead", "retry", uid(1), "--reason", "a new key")
    moves_to_loom(desk)
    dies_again(desk, "loom", 2)
    desk.nodes.switch_off("iris")
    said = desk.arc("dead", "show", uid(1), "--json").envelope
    assert said["data"]["decisions"] == []
    assert "what was decided on iris is not known: it was not heard" in said["warnings"]


def test_a_node_that_answers_with_an_error_of_its_own_has_not_been_heard(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when each refusal counts as a word: a disk that fails hides what was decided there."""
    dies(desk, "iris", 1)
    desk.arc("dead", "retry", uid(1), "--reason", "a new key")
    moves_to_loom(desk)
    dies_again(desk, "loom", 2)
    link = desk.hub.links["iris"]
    ask = link.ask

    async def fails(do: str, fields: JsonObject) -> JsonObject:
        if do == "show":
            raise NodeRefused("iris", "disk", "the disk failed to read")
        return await ask(do, fields)

    monkeypatch.setattr(link, "ask", fails)
    said = desk.arc("dead", "show", uid(1), "--json").envelope
    assert "what was decided on iris is not known: it was not heard" in said["warnings"]
