"""`arc nodes logs` of a task that never ran on that node says where it ran, or that it did not."""

from __future__ import annotations

from agent_node import commands as c
from agent_node.strict import JsonObject
from tests.builders import uid
from tests.hub.cli.desk import Desk
from tests.hub_nodes import twisted


def said(desk: Desk, *words: str) -> tuple[int, str, str]:
    text, error = desk.both("nodes", "logs", *words)
    return text.code, error["message"], error["hint"]


def fails(desk: Desk, node: str, number: int) -> None:
    """One attempt there that left its log, and another try to come."""
    task = desk.runs(node, number)
    folder = desk.nodes.machines[node].place / "tasks" / task / "1"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_bytes(b"tried\n")
    store = desk.nodes.machines[node].store
    store.apply(c.Finish(task, 1, c.Result("failed", error_kind="crash")))
    desk.minutes_pass(60)
    store.apply(c.Wake())


def test_a_task_that_has_not_run_yet_says_so_and_where_it_is(desk: Desk) -> None:
    """Seen to fail: `not_found: no attempt of this task has run here`, and nothing to type."""
    desk.waits("loom", 1)
    for node in ("iris", "loom"):
        assert said(desk, node, uid(1)) == (
            1, f"{node}: not_found: {uid(1)} never ran on {node}; it is READY on loom",
            f"arc why {uid(1)}")  # fmt: skip


def test_a_task_that_ran_elsewhere_says_where_and_how_its_log_is_read(desk: Desk) -> None:
    fails(desk, "loom", 1)
    code, message, hint = said(desk, "iris", uid(1))
    assert code == 1
    assert message == (
        f"iris: not_found: {uid(1)} never ran on iris; it ran on loom; it is READY on loom")
    assert hint == f"arc nodes logs loom {uid(1)} --attempt 1"
    assert desk.arc(*hint.split()[1:]).out == "tried\n"
    assert desk.arc("tasks", "move", uid(1), "--to", "iris").code == 0
    code, message, hint = said(desk, "iris", uid(1))
    assert message.endswith("it ran on loom; it is READY on iris")
    assert desk.arc(*hint.split()[1:]).out == "tried\n"
    assert f"attempt 1 of {uid(1)} did not run on iris" in said(
        desk, "iris", uid(1), "--attempt", "1")[1]


def test_an_attempt_that_never_was_is_told_those_that_were(desk: Desk) -> None:
    """Fails when it only says where the task is: which numbers there are is not to be guessed."""
    fails(desk, "loom", 1)
    assert said(desk, "loom", uid(1), "--attempt", "9") == (
        1, f"loom: not_found: attempt 9 of {uid(1)} did not run on loom; its attempts are 1",
        f"arc tasks show {uid(1)}")  # fmt: skip


def test_what_a_node_says_of_others_is_no_word_of_the_command_to_paste(desk: Desk) -> None:
    """Seen to fail: `arc nodes logs y … --attempt $(x)`."""
    fails(desk, "loom", 1)
    desk.arc("status")

    def lies(do: str, result: JsonObject) -> JsonObject:
        if do != "show":
            return result
        return {**result, "attempts": [{"n": 1, "node": "x; reboot"}, {"n": "$(x)", "node": "y"}]}

    desk.hub.links["loom"] = twisted(desk.hub.links["loom"], lies)
    code, message, hint = said(desk, "iris", uid(1))
    assert (code, hint) == (1, f"arc why {uid(1)}")
    assert "reboot" not in message


def test_a_log_that_is_gone_where_the_task_ran_is_not_said_never_to_have_been(desk: Desk) -> None:
    desk.runs("iris", 1)
    code, message, hint = said(desk, "iris", uid(1))
    assert (code, hint) == (1, f"arc tasks show {uid(1)}")
    assert "never ran" not in message


def test_a_task_that_went_to_a_silent_node_is_not_said_to_have_run_nowhere(desk: Desk) -> None:
    desk.waits("iris", 1)
    assert desk.arc("tasks", "move", uid(1), "--to", "loom").code == 0
    desk.nodes.switch_off("loom")
    code, message, hint = said(desk, "iris", uid(1))
    assert code == 3
    assert f"{uid(1)} never ran on iris; iris gave it to another node; loom did not" in message
    assert hint == "arc doctor --node loom"
