"""Why a blocked task waits: edge by edge, and what a person may type."""

from __future__ import annotations

import pytest

from arc.decisions.why_waiting import Hold, Needed, why_it_waits


def needed(state: str, on_failure: str = "fail") -> Needed:
    return Needed("B", on_failure, state, "iris")


def test_a_task_that_waits_for_its_time_alone_has_no_edges_to_tell() -> None:
    assert why_it_waits("A", (), ()) is None


@pytest.mark.parametrize(
    ("state", "verdict", "command"),
    [
        ("RUNNING", "WAIT", "arc why B"),
        ("READY", "WAIT", "arc why B"),
        ("PARKED", "ESCALATE", "arc tasks resolve B --as done"),
        ("nowhere", "CHANGE", "arc tasks cancel A --reason '…'"),
        ("unseen", "WAIT", "arc tasks cancel A --reason '…'"),
        ("DEAD_LETTERED", "WAIT", "arc tasks retry B"),
    ],
)
def test_each_state_of_what_is_waited_for_has_its_verdict_and_its_command(
    state: str, verdict: str, command: str
) -> None:
    answer = why_it_waits("A", [needed(state)], ())
    assert answer is not None
    assert answer.verdict == verdict
    assert command in answer.verbs


@pytest.mark.parametrize(
    ("on_failure", "says"),
    [("fail", "will be cancelled"), ("skip", "is left out"), ("run", "runs all the same")],
)
def test_what_a_bad_end_does_is_said_per_edge(on_failure: str, says: str) -> None:
    answer = why_it_waits("A", [needed("CANCELLED", on_failure)], ())
    assert answer is not None
    assert says in answer.edges[0][1]
    assert "all that it waited for has ended" in answer.says


def test_holds_are_told_beside_edges() -> None:
    answer = why_it_waits("A", [needed("RUNNING")], [Hold("over_budget", "5.00 of 5.00 spent")])
    assert answer is not None
    assert answer.says == "it waits for 1 of 1 tasks to end; over_budget: 5.00 of 5.00 spent"


@pytest.mark.parametrize(("rule", "untold"), [("waits_for", True), ("inputs_missing", False)])
def test_a_queue_that_names_another_hold_knows_that_all_has_ended(rule: str, untold: bool) -> None:
    """Seen to fail: it was to be told what it knew, whatever it waited for by then."""
    answer = why_it_waits("A", [needed("COMPLETED")], [Hold(rule, "so")])
    assert answer is not None
    assert ("its queue is told in the next run" in answer.says) == untold
    assert answer.says.startswith("all that it waited for has ended; ")


def test_an_end_is_told_with_its_moment() -> None:
    ended = Needed("B", "fail", "FAILED", "iris", ended_at="2026-03-10T03:45:00.000Z")
    answer = why_it_waits("A", [ended], ())
    assert answer is not None
    assert answer.edges[0][1] == (
        "FAILED on iris at 2026-03-10T03:45:00.000Z, so this one will be cancelled")
