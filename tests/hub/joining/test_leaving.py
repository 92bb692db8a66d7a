"""Holds what is asked and said when a node leaves: of one that answers, and of one out of reach."""

from __future__ import annotations

import pytest

from agent_node.strict import JsonObject
from arc.cli.joining_words import step_line
from arc.decisions.domains import Role
from arc.errors import NotFound
from arc.joining.errors import LeftUndone
from arc.joining.left_behind import what_stays
from arc.joining.removing import Leaving, Ways, check_work, hold
from arc.joining.steps import Step, Steps
from arc.operations import Told

SILENT: JsonObject = {"seen": False, "state": "unseen", "reason": "no route to it", "last_open": {
    "count": 3, "at": "2026-03-10T03:00:00Z", "age_s": 120.0}}  # fmt: skip
FENCE: JsonObject = {"refused": "", "tasks": [{"uid": "01A", "outcome": "reowned"},
                                              {"uid": "01B", "outcome": "ended"}]}  # fmt: skip


def ways(told: JsonObject, fence: JsonObject | None = None) -> Ways:
    def would_fence() -> Told:
        if fence is None:
            raise NotFound("iris was never met")
        return Told(fence)

    return Ways(shown=lambda: Told(told), would_fence=would_fence, held=lambda: Told(told),
                given_again=lambda: Told({}))  # fmt: skip


def here(state: str = "working", **counts: int) -> JsonObject:
    return {"seen": True, "state": state, "counts": dict(counts)}


def refused(leaving: Leaving, said: Ways) -> LeftUndone:
    with pytest.raises(LeftUndone) as left:
        check_work(leaving, Steps(lambda step: None), said)
    return left.value


def test_a_node_out_of_reach_is_forgotten_only_with_a_word_and_a_reason() -> None:
    """Guarded by the word asked for in `check_work`: without it open tasks are lost from sight."""
    said = ways(SILENT, FENCE)
    for leaving in (Leaving("iris", forget=True), Leaving("iris", forget=True, yes=True),
                    Leaving("iris", forget=True, reason="sold")):  # fmt: skip
        error = refused(leaving, said)
        assert error.exit_code == 7
        assert "3 open tasks there when it was last heard, 2m ago" in str(error)
        assert "back only by a fence while iris is in the fleet: 01A;" in str(error)
        assert "arc nodes fence iris --yes-it-is-off" in error.hint
    steps = Steps(lambda step: None)
    check_work(Leaving("iris", forget=True, yes=True, reason="sold"), steps, said)
    assert steps.done[0].text.endswith("all the same, because: sold")


def test_what_nobody_can_know_of_it_is_said_as_such() -> None:
    error = refused(Leaving("iris", forget=True), ways({**SILENT, "last_open": None}))
    assert error.exit_code == 7
    assert "what it has was never heard here" in str(error)
    assert "what had been moved to it is not known: iris was never met" in str(error)


def test_without_forget_it_stays() -> None:
    error = refused(Leaving("iris", yes=True, reason="sold"), ways(SILENT, FENCE))
    assert error.exit_code == 3
    assert "--forget" in error.hint


def test_a_node_that_is_suspended_is_judged_by_how_it_is_once_it_was_asked() -> None:
    """It may be suspended by a removal that failed half-way, or by a person; either asks again."""
    steps = Steps(lambda step: None)
    check_work(Leaving("iris"), steps, ways({**SILENT, "state": "suspended"}))
    assert "asked all the same" in steps.done[0].text
    held = Holding({**here(READY=1), "was_suspended": True})
    with pytest.raises(LeftUndone, match="has 1 open task"):
        hold(Leaving("iris"), steps, held.ways)
    assert held.given_again == 0, "it stays suspended, as a person had said"


class Holding:
    """A hub that is told to give a node nothing, and counts how often that was taken back."""

    def __init__(self, told: JsonObject, *, deaf: bool = False) -> None:
        self.given_again, self.deaf = 0, deaf
        self.ways = Ways(shown=lambda: Told(here()), would_fence=lambda: Told(FENCE),
                         held=lambda: Told({"until": "2026-03-10T03:10:00Z", **told}),
                         given_again=self._again)  # fmt: skip

    def _again(self) -> Told:
        if self.deaf:
            raise NotFound("the hub is gone")
        self.given_again += 1
        return Told({})


def test_work_that_came_after_the_first_look_keeps_the_node_and_nothing_stays_changed() -> None:
    """Seen to fail without the second look: what a cycle under way gave is lost from sight."""
    steps, held = Steps(lambda step: None), Holding(here(READY=1))
    check_work(Leaving("iris"), steps, held.ways)
    with pytest.raises(LeftUndone) as left:
        hold(Leaving("iris"), steps, held.ways)
    assert left.value.exit_code == 7
    assert "has 1 open task" in str(left.value)
    assert "nothing was changed" in str(left.value)
    assert held.given_again == 1


def test_a_hub_that_cannot_take_it_back_leaves_the_node_suspended_and_that_is_said() -> None:
    with pytest.raises(LeftUndone, match="iris is suspended until 2026-03-10T03:10:00Z"):
        hold(Leaving("iris"), Steps(lambda step: None), Holding(here(READY=1), deaf=True).ways)


def test_what_is_changed_by_holding_is_told_when_a_later_step_fails() -> None:
    steps = Steps(lambda step: None)
    told = hold(Leaving("iris"), steps, Holding(here(COMPLETED=3)).ways)
    assert told["seen"] is True
    with pytest.raises(LeftUndone) as left, steps.step("hub key"):
        raise NotFound("no such key")
    assert "changed so far: iris is suspended until 2026" in str(left.value)
    assert "run the same command again" in str(left.value)


@pytest.mark.parametrize("state", ["PENDING", "RETRYING", "PARKED", "READY", "RUNNING", "HELD"])
def test_what_only_waits_is_open_too_also_after_a_drain(state: str) -> None:
    told = here("drained", **{state: 1, "COMPLETED": 9})
    error = refused(Leaving("iris"), ways(told))
    assert error.exit_code == 7
    assert "has 1 open task, although it is drained" in str(error)
    assert "arc tasks list --node iris" in error.hint


@pytest.mark.parametrize(("counts", "said"), [
    ({"DEAD_LETTERED": 2}, "has 2 dead letters, which nobody would see any more"),
    ({"DEAD_LETTERED": 1, "READY": 1}, "has 1 open task and 1 dead letter, which nobody"),
])  # fmt: skip
def test_dead_letters_that_nobody_decided_about_keep_their_node(
    counts: dict[str, int], said: str
) -> None:
    """Seen to fail: the node left, and with it every dead letter, without a word."""
    error = refused(Leaving("iris"), ways(here("working", **counts)))
    assert error.exit_code == 7
    assert said in str(error)
    assert "arc dead list --node iris" in error.hint
    assert ("arc nodes drain iris" in error.hint) == ("READY" in counts)


def test_a_node_without_open_tasks_just_leaves() -> None:
    steps = Steps(lambda step: None)
    check_work(Leaving("iris"), steps, ways(here("drained", COMPLETED=9, MOVED=2)))
    assert steps.done[0].text == "it has none"


def test_a_dry_run_says_that_a_word_is_missing_and_goes_on() -> None:
    for told, leaving in ((here(READY=2), Leaving("iris")), (SILENT, Leaving("iris", forget=True))):
        steps = Steps(lambda step: None, dry_run=True)
        check_work(leaving, steps, ways(told, FENCE))
        assert steps.done[0].text.endswith("this takes --yes with a --reason")


@pytest.mark.parametrize(("told", "says"), [
    (here("working", READY=2), ("iris works on", "2 open tasks stay", "agent-node list")),
    (here("idle"), ("iris works on with its own queue; to stop it",)),
    (here("drained", PENDING=1), ("iris is drained and starts nothing", "open task stays")),
    (here("stopped"), ("does not run",)),
    (SILENT, ("whether iris still runs is not known",)),
])  # fmt: skip
def test_what_goes_on_there_is_said_by_its_state(told: JsonObject, says: tuple[str, ...]) -> None:
    said = what_stays("iris", told, Role())
    assert all(word in said for word in says), said
    assert "works on" not in said or told["state"] in {"working", "idle"}


def test_the_line_of_a_step_is_folded_and_long_words_stay_whole() -> None:
    key = "SHA256:" + "k" * 43
    line = step_line(Step("host key", f"ssh-ed25519 {key}, confirmed by its fingerprint"), 80)
    assert key in line
    assert max(map(len, line.splitlines())) < 80
    assert step_line(Step("clock", "+0.0 s"), 80) == "  clock            +0.0 s  0.00 s\n"


def test_where_no_terminal_reads_along_a_step_is_one_line() -> None:
    text = "word " * 60
    line = step_line(Step("host key", text.strip()), None)
    assert line.count("\n") == 1
    assert text.strip() in line
