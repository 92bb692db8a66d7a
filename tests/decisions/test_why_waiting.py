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
