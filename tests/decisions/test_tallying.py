"""What events add to the counts: each once, in whole millionths, whatever a node writes in them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.clock import iso
from agent_node.strict import JsonObject
from arc.decisions.tallying import (
    ENDLESS,
    UNIT,
    WAITING_MAX,
    WAITS_S,
    WORDS_MAX,
    Waited,
    Words,
    bucket_of,
    note_given,
    quantile,
    tally_events,
    tally_run,
)

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def event(name: str, uid: str = "T1", *, after_s: float = 0.0, **said: Any) -> dict[str, Any]:
    return {"event": name, "uid": uid, "at": iso(NOON + timedelta(seconds=after_s)), **said}


def count(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


def test_an_attempt_that_completed_counts_with_its_money_and_its_time() -> None:
    found = tally_events("iris", [
        event("task_completed", n=1, by="coder", state="COMPLETED",
              data={"cost_usd": "0.1", "duration_s": 2.5}),
        event("task_completed", n=1, by="coder", state="COMPLETED", data={"cost_usd": "0.2"}),
    ], {})  # fmt: skip
    coder = {"node": "iris", "agent": "coder"}
    assert found[count("tasks_completed_total", **coder)] == 2 * UNIT
    assert found[count("task_cost_usd_total", **coder)] == 300_000  # not 0.30000000000000004
    assert found[count("agent_busy_seconds_total", **coder)] == 2_500_000


@pytest.mark.parametrize("name", [
    "task_parked", "task_interrupted", "task_waiting", "task_cancelled"])
def test_an_attempt_that_ended_no_task_counts_with_its_money_and_its_time(name: str) -> None:
    """Seen to fail: what is parked as not judged, put back or stopped had cost nothing, of the day
    that `arc budget` and the page tell, too.
    """
    data: JsonObject = {"cost_usd": "0.1", "duration_s": 2.5}
    found = tally_events("iris", [event(name, n=1, by="coder", data=data),
                                  event(name, by="human:ada", data={})], {})  # fmt: skip
    coder = {"node": "iris", "agent": "coder"}
    assert found[count("task_cost_usd_total", **coder)] == 100_000
    assert found[count("agent_busy_seconds_total", **coder)] == 2_500_000
    assert not found[count("tasks_completed_total", **coder)]
    assert not [key for key in found if key[0] == "tasks_failed_total"]


def test_a_failed_attempt_counts_by_its_kind_and_what_a_person_says_is_none() -> None:
    found = tally_events("iris", [
        event("task_failed", n=1, by="coder", data={"error_kind": "rate_limit"}),
        event("task_failed", n=2, by="coder", data={"error_kind": "made up by a node " * 9}),
        event("task_failed", n=3, by="coder", data={}),
        event("task_failed", by="human:ada", because="resolved: gone"),
        event("task_dead_lettered", n=3, by="coder", data={"error_kind": "timeout"}),
        event("task_dead_lettered", "T2", n=3, by="coder", data={"error_kind": ["no", "kind"]}),
        event("task_dead_lettered", "T3", n=3, by="coder"),  # of a node that does not tell yet
    ], {})  # fmt: skip
    by_reason = {
        dict(labels)["reason"]: value // UNIT
        for (name, labels), value in found.items() if name == "tasks_failed_total"
    }  # fmt: skip
    assert by_reason == {"rate_limit": 1, "other": 1, "crash": 1}
    dead = "tasks_dead_lettered_total"
    assert found[count(dead, node="iris", reason="timeout")] == UNIT
    assert found[count(dead, node="iris", reason="other")] == 2 * UNIT
    assert sum(value for (name, _), value in found.items() if name == dead) == 3 * UNIT


def test_a_wait_counts_from_ready_to_claimed_also_over_two_pages() -> None:
    waiting: dict[str, datetime] = {}
    first = tally_events("iris", [event("task_added", state="READY")], waiting)
    assert not any(name.startswith("task_queue_wait") for name, _ in first)
    then = tally_events("iris", [event("task_claimed", by="a", state="CLAIMED", after_s=90)],
                        waiting)  # fmt: skip
    assert then[count("task_queue_wait_seconds", node="iris", le="120")] == UNIT
    assert then[count("task_queue_wait_seconds_sum", node="iris")] == 90 * UNIT
    assert waiting == {}


def ready(after_s: float) -> JsonObject:
    """The task as its giver has it, READY there since then."""
    return {"uid": "T1", "ready_at": iso(NOON + timedelta(seconds=after_s))}


def waits_of(events: list[dict[str, Any]], gone: dict[str, Waited]) -> float:
    found = tally_events("loom", events, {}, None, gone)
    return found[count("task_queue_wait_seconds_sum", node="loom")] / UNIT


def test_a_wait_goes_on_where_the_task_is_given_to_another_node() -> None:
    """By two moves, the first of which was tried twice. Seen to fail where each node counts its own
    part alone, and where what was given in vain counts twice.
    """
    gone: dict[str, Waited] = {}
    for at in (60, 100):
        note_given(gone, [ready(0)], NOON + timedelta(seconds=at))
    note_given(gone, [ready(101)], NOON + timedelta(seconds=111))
    comes = [event("task_arrived", state="READY", after_s=112),
             event("task_claimed", by="a", state="CLAIMED", after_s=117)]  # fmt: skip
    assert waits_of(comes, gone) == 100 + 10 + 5
    assert gone == {}
    assert waits_of(comes, gone) == 5, "a task that is tried again waits anew"


def test_what_was_given_back_has_waited_all_the_time() -> None:
    gone: dict[str, Waited] = {}
    note_given(gone, [ready(0)], NOON + timedelta(seconds=60))
    back = [event("task_given_back", state="READY", after_s=61),
            event("task_claimed", by="a", state="CLAIMED", after_s=71)]  # fmt: skip
    assert waits_of(back, gone) == 70


def test_what_is_remembered_of_tasks_that_were_given_has_a_limit() -> None:
    gone: dict[str, Waited] = {}
    odd: list[JsonObject] = [{"uid": "T0", "ready_at": "soon"}, {"uid": "T0"}]
    many = [{**ready(0), "uid": f"T{n}"} for n in range(WAITING_MAX + 5)]
    note_given(gone, [*odd, *many], NOON)
    assert len(gone) == WAITING_MAX
    assert "T0" not in gone


def test_a_wait_whose_beginning_nobody_heard_is_not_counted() -> None:
    found = tally_events("iris", [event("task_claimed", by="a", state="CLAIMED")], {})
    assert {name for name, _ in found} == {"agent_claims_total"}


def test_a_task_that_was_cancelled_while_it_waited_is_forgotten() -> None:
    waiting: dict[str, datetime] = {}
    tally_events("iris", [event("task_added", state="READY"),
                          event("task_cancelled", state="CANCELLED")], waiting)  # fmt: skip
    assert waiting == {}


def test_what_is_remembered_of_a_node_has_a_limit() -> None:
    waiting: dict[str, datetime] = {}
    tally_events("iris", (event("task_added", f"T{i}", state="READY")
                          for i in range(WAITING_MAX + 5)), waiting)  # fmt: skip
    assert len(waiting) == WAITING_MAX
    assert "T0" not in waiting


@pytest.mark.parametrize("cost", ["-1", "NaN", "Infinity", "1e999999", "9" * 50, "x", 0.1, None,
                                  True, [], "1000001"])  # fmt: skip
def test_money_that_is_none_is_not_counted(cost: Any) -> None:
    found = tally_events("iris", [event("task_completed", n=1, by="a", data={"cost_usd": cost})],
                         {})  # fmt: skip
    assert found[count("task_cost_usd_total", node="iris", agent="a")] == 0


@given(st.lists(st.dictionaries(
    st.sampled_from(["event", "uid", "at", "state", "by", "n", "data", "because"]),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(
        ["task_completed", "task_failed", "task_claimed", "READY", "CLAIMED", iso(NOON)])
    | st.dictionaries(st.sampled_from(["cost_usd", "duration_s", "error_kind"]),
                      st.none() | st.floats() | st.text() | st.integers()),
)))  # fmt: skip
def test_whatever_a_node_writes_counts_never_fall_and_rows_stay_few(events: Any) -> None:
    found = tally_events("iris", events, {})
    assert all(type(value) is int for value in found.values())
    assert min(found.values(), default=0) >= 0
    for _, labels in found:
        assert all(len(value) <= 64 for _, value in labels)


@given(st.lists(st.floats(0.001, 86_400), min_size=1), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_lies_in_the_bucket_of_the_exact_one(waits: list[float], share: float) -> None:
    buckets = Counter(map(bucket_of, waits))
    exact = sorted(waits)[max(0, -int(-share * len(waits) // 1) - 1)]
    told = quantile(dict(buckets), share)
    assert told is not None
    at = float(bucket_of(exact))
    low = max((bound for bound in WAITS_S if bound < at), default=0.0)
    assert low <= told <= at


def test_no_waits_have_no_quantile_and_endless_ones_are_told_as_the_last_bound() -> None:
    assert quantile({}, 0.5) is None
    assert bucket_of(10**9) == ENDLESS
    assert quantile({ENDLESS: 3}, 0.5) == WAITS_S[-1]


def test_a_run_counts_itself_its_rules_and_its_moves() -> None:
    found = tally_run("fleet-rebalance", "done", 0.25, [("urgent", 4), ("pinned", 1)],
                      [("stolen", "moved"), ("stolen", "moved"), ("stolen", "kept")])  # fmt: skip
    assert found[count("fleet_refusals_total", rule="urgent", sensor="fleet-rebalance")] == 4 * UNIT
    assert found[count("fleet_moves_total", why="stolen", outcome="moved")] == 2 * UNIT
    assert found[count("sensor_runs_total", sensor="fleet-rebalance", outcome="done")] == UNIT


def test_types_and_models_have_labels_of_their_own_where_they_are_said() -> None:
    data: JsonObject = {"cost_usd": "0.5", "model": "opus-4.1"}
    ended = {**event("task_completed", n=1, by="coder", data=data), "type": "review"}
    found = tally_events("iris", [ended], {})
    assert found[count("tasks_completed_total", agent="coder", node="iris", type="review")] == UNIT
    whole = {"agent": "coder", "model": "opus-4.1", "node": "iris", "type": "review"}
    assert found[count("task_cost_usd_total", **whole)] == UNIT // 2


def test_a_node_makes_no_more_labels_than_a_few() -> None:
    """Fails where each word is a row: one node would use up the counts of the whole fleet."""
    words: Words = {}
    for number in range(WORDS_MAX + 20):
        ended = {**event("task_completed", n=1, by="a"), "type": f"kind-{number}"}
        found = tally_events("iris", [ended], {}, words)
    assert len(words["type"]) == WORDS_MAX
    assert found[count("tasks_completed_total", agent="a", node="iris", type="other")] == UNIT
    strange = {**event("task_completed", n=1, by="a"), "type": 'x" 1\n'}
    found = tally_events("iris", [strange], {}, words)
    assert found[count("tasks_completed_total", agent="a", node="iris", type="other")] == UNIT
