"""`arc doubts` shows every transfer that is not over, and ends what can be ended."""

from __future__ import annotations

from arc.custody import fences_of, last_holder
from tests.builders import uid
from tests.hub.cli.desk import Desk


def in_doubt(desk: Desk) -> None:
    """A task whose transfer from iris to loom was cut off after the commit."""
    desk.waits("iris", 1)
    desk.nodes.will("", "", "", "lost")
    moved = desk.arc("tasks", "move", uid(1), "--to", "loom")
    assert moved.code == 3, moved
    assert moved.out.startswith("in_doubt")


def test_without_doubts_it_says_so(desk: Desk) -> None:
    text, data = desk.both("doubts")
    assert text.code == 0
    assert text.out == "no doubts: every transfer is over at both ends\n"
    assert data["doubts"] == []


def test_no_doubts_is_not_said_of_nodes_that_were_not_asked(desk: Desk) -> None:
    desk.nodes.switch_off("loom")
    text = desk.arc("doubts")
    assert text.code == 3
    assert text.out == "no doubts on the nodes that answered; not asked: loom\n"


def test_each_end_tells_its_side_of_a_transfer_that_is_not_over(desk: Desk) -> None:
    in_doubt(desk)
    text, data = desk.both("doubts", "list")
    assert {(one["node"], one["side"], one["state"]) for one in data["doubts"]} == {
        ("iris", "giver", "MOVED"), ("loom", "taker", "HELD")}
    assert text.out.count(uid(1)[-4:].lower()) == 2


def test_settling_ends_it_and_the_task_runs_where_it_was_moved_to(desk: Desk) -> None:
    in_doubt(desk)
    assert desk.nodes.states(1)["loom"] == "HELD"
    settled = desk.arc("doubts", "settle")
    assert settled.code == 0
    assert settled.out.startswith("settled")
    assert desk.nodes.states(1) == {"loom": "READY"}
    assert desk.arc("doubts", "settle").out == "nothing was in doubt\n"


def test_a_dry_run_says_of_each_doubt_what_would_become_of_it(desk: Desk) -> None:
    """Seen to fail: it was the list of doubts, of another shape, and told of nothing to come."""
    in_doubt(desk)
    words = ("doubts", "settle")
    stores = [machine.store._db for machine in desk.nodes.machines.values()]
    before = ["\n".join(store.iterdump()) for store in stores]
    text, dry = desk.arc(*words, "--dry-run"), desk.arc(*words, "--dry-run", "--json")
    assert (text.code, text.out) == (0, "would be settled 0001 iris -> loom: iris gave it up\n")
    assert ["\n".join(store.iterdump()) for store in stores] == before
    assert desk.nodes.states(1)["loom"] == "HELD"
    assert not [one for one in desk.arc("log", "--json").data["lines"]
                if one["event"] == "task_settled"]  # fmt: skip
    done = desk.arc(*words, "--json")
    assert (done.code, dry.data) == (dry.code, {**done.data, "dry_run": True})
    assert desk.nodes.states(1) == {"loom": "READY"}
    assert desk.arc(*words, "--dry-run").out == "nothing was in doubt\n"


def test_who_has_a_task_since_it_was_settled_by_hand_is_written_down(desk: Desk) -> None:
    """Seen to fail: the journal's only move was in doubt, so whoever had it before had it still."""
    in_doubt(desk)
    runs, (giver, taker) = desk.hub.journal.runs, ("iris", "loom")
    assert runs.moved([uid(1)]) == ()
    desk.arc("doubts", "settle", "--reason", "not to wait")
    (moved,) = runs.moved([uid(1)])
    assert (moved.outcome, moved.rule) == ("settled", "taker_has_it")
    assert (moved.busy, moved.idle) == (giver, taker)
    lives = tuple(desk.nodes.machines[name].incarnation() for name in (giver, taker))
    assert (moved.busy_incarnation, moved.idle_incarnation) == lives
    assert last_holder([moved], fences_of(desk.hub)) == taker
    (line,) = desk.arc("log", "--json", "--event", "task_settled").data["lines"]
    assert (line["task"], line["node"]) == (uid(1), taker)
    assert line["fields"] == {"from": giver, "to": taker, "rule": "taker_has_it",
                              "because": "iris gave it up", "by": "human:ada",
                              "reason": "not to wait"}  # fmt: skip


def test_what_stayed_in_doubt_is_not_written_down_as_settled(desk: Desk) -> None:
    in_doubt(desk)
    desk.nodes.weather.aimed["activate"] = "lost"
    assert desk.arc("doubts", "settle").out.startswith("left 0001")
    assert desk.hub.journal.runs.moved([uid(1)]) == ()
    assert desk.arc("log", "--json", "--event", "task_settled").data["lines"] == []


def test_to_own_a_task_again_takes_a_persons_word(desk: Desk) -> None:
    desk.waits("iris", 1)
    text, error = desk.both("doubts", "settle", uid(1))
    assert text.code == 7
    assert error["code"] == "ARC-NEEDS-YES"
    assert desk.arc("tasks", "resolve", uid(1), "--as", "ready").code == 7


def test_a_task_is_not_owned_again_while_a_node_cannot_say_that_it_lets_go(desk: Desk) -> None:
    desk.waits("iris", 1)
    desk.nodes.switch_off("loom")
    text = desk.arc("doubts", "settle", uid(1), "--yes")
    assert text.code == 3
    assert "loom could not be asked" in text.out


def silent(desk: Desk, *words: str) -> tuple[int, bool, list[str]]:
    """How it ended, and whom `partial` names, each with a code and a message."""
    said = desk.arc(*words, "--json")
    partial = said.envelope["partial"]
    assert all(one["error"]["code"] and one["error"]["message"] for one in partial), partial
    return said.code, said.envelope["ok"], [one["node"] for one in partial]


def test_who_said_nothing_while_a_doubt_was_ended_is_named(desk: Desk) -> None:
    """It ended with 3 and an empty `partial`: each node had answered the look before."""
    in_doubt(desk)
    desk.nodes.weather.aimed["activate"] = "lost"
    assert silent(desk, "doubts", "settle") == (3, True, ["loom"])
    assert silent(desk, "doubts", "settle") == (0, True, [])


def test_who_could_not_be_asked_to_let_go_of_a_task_is_named(desk: Desk) -> None:
    """The sentence named them, and `partial` was empty. Seen to fail with 1, as of a node's no:
    that they were not asked leaves the task undecided, and another try may do it.
    """
    desk.waits("iris", 1)
    words = ("doubts", "settle", uid(1), "--yes")
    assert silent(desk, *words) == (0, True, [])
    desk.nodes.switch_off("loom")
    assert desk.arc("nodes", "suspend", "spark").code == 0
    assert silent(desk, *words) == (3, True, ["loom", "spark"])
    assert silent(desk, *words, "--dry-run") == (3, True, ["loom", "spark"])
    assert desk.arc("doubts", "settle", uid(1), "--yes").out.startswith("refused")


def test_settling_without_a_suspended_node_says_so(desk: Desk) -> None:
    assert desk.arc("nodes", "suspend", "spark").code == 0
    assert desk.arc("doubts", "settle").err == (
        "warning: spark is suspended, so it was not asked\n")
