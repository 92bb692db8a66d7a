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
        n = one["after_attempt"]
        where = one["node"] + ("" if n is None else f", after attempt {n}")
        line = f"  {one['what']} by {one['by']} {one['at']} on {where}: {one['reason']}"
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


def cannot_show(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on iris answers with an error of its own where it is asked to show a task."""
    link = desk.hub.links["iris"]
    ask = link.ask

    async def fails(do: str, fields: JsonObject) -> JsonObject:
        if do == "show":
            raise NodeRefused("iris", "disk", "the disk failed to read")
        return await ask(do, fields)

    monkeypatch.setattr(link, "ask", fails)


def test_a_node_that_answers_with_an_error_of_its_own_has_not_been_heard(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when each refusal counts as a word: a disk that fails hides what was decided there."""
    dies(desk, "iris", 1)
    desk.arc("dead", "retry", uid(1), "--reason", "a new key")
    moves_to_loom(desk)
    dies_again(desk, "loom", 2)
    cannot_show(desk, monkeypatch)
    said = desk.arc("dead", "show", uid(1), "--json").envelope
    assert "what was decided on iris is not known: it was not heard" in said["warnings"]


NOBODY = "  nobody has decided anything since it died"


def acted(desk: Desk) -> object:
    """Whether anybody acted since it died, as told; the text has a line where nobody did."""
    text, data = desk.both("dead", "show", uid(1))
    assert (NOBODY in text.lines) == (data["decided_since"] is False), text.out
    return data["decided_since"]


def test_a_task_that_was_cancelled_and_then_retried_tells_of_both(desk: Desk) -> None:
    """Seen to fail: it was READY, and all that was told is who had cancelled it."""
    dies(desk, "iris", 1)
    desk.arc("dead", "cancel", uid(1), "--reason", "no use")
    desk.minutes_pass(1)
    desk.arc("tasks", "retry", uid(1), "--reason", "a new key")
    both = [("cancelled", "human:ada", "iris", "no use"),
            ("retried", "human:ada", "iris", "a new key")]  # fmt: skip
    assert decided(desk) == both
    assert "cancelled by human:ada, now READY" in desk.arc("dead", "list", "--resolved").out
    dies_again(desk, "iris", 2)
    assert decided(desk) == both


def test_a_task_that_was_retried_and_then_cancelled_or_stopped_tells_of_both(desk: Desk) -> None:
    dies(desk, "iris", 1)
    desk.arc("dead", "retry", uid(1), "--reason", "a new key")
    desk.minutes_pass(1)
    desk.arc("tasks", "set", uid(1), "-p", "1", "--reason", "urgent")
    desk.minutes_pass(1)
    assert isinstance(desk.nodes.machines["iris"].store.apply(c.Claim("iris")), c.Claimed)
    desk.arc("tasks", "cancel", uid(1), "--reason", "no use")
    assert [(what, why) for what, _, _, why in decided(desk)] == [
        ("retried", "a new key"), ("edited", "urgent"), ("stopped", "no use")]  # fmt: skip


def test_what_was_done_before_it_died_is_no_decision_about_a_dead_letter(desk: Desk) -> None:
    desk.waits("iris", 1, max_attempts=1)
    desk.arc("tasks", "cancel", uid(1))
    desk.minutes_pass(1)
    desk.arc("tasks", "retry", uid(1))
    dies_again(desk, "iris", 1)
    assert (decided(desk), acted(desk)) == ([], False)


def test_whether_anybody_acted_since_it_died_is_told(desk: Desk) -> None:
    """Seen to fail: what was decided of an earlier death could be taken for it."""
    dies(desk, "iris", 1)
    assert acted(desk) is False
    desk.arc("dead", "retry", uid(1), "--reason", "a new key")
    assert acted(desk) is None  # it lives
    dies_again(desk, "iris", 2)  # in the same second, so no time tells them apart
    assert acted(desk) is False
    desk.arc("dead", "review", uid(1), "--note", "seen")
    assert acted(desk) is True
    desk.nodes.machines["iris"].store._db.execute("DELETE FROM event")
    assert (acted(desk), decided(desk)) == (True, [("reviewed", "human:ada", "iris", "seen")])


def test_a_death_elsewhere_leaves_what_was_decided_before_the_move_behind(desk: Desk) -> None:
    dies(desk, "iris", 1)
    desk.arc("dead", "retry", uid(1), "--reason", "a new key")
    moves_to_loom(desk)
    dies_again(desk, "loom", 2)
    assert acted(desk) is False
    desk.arc("dead", "review", uid(1), "--note", "seen")
    assert acted(desk) is True


def test_nobody_says_that_nobody_acted_where_its_node_was_not_heard(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies(desk, "iris", 1)
    cannot_show(desk, monkeypatch)
    assert acted(desk) is None
