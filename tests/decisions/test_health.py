"""Health: a word for each node and everything that is wrong with it; idle is healthy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.alerts import Alert, edge
from arc.decisions.explain import lasting
from arc.decisions.failing import NodeFactsSeen, attracts_no_work, last_of_each
from arc.decisions.health import Judgement, judge_health
from arc.decisions.limits import HealthLimits
from arc.decisions.view import NodeSeen, NodeUnseen
from tests.fleet_builders import a_busy_node, a_node, a_view, an_agent_report, an_unseen_node

HOUR = 3600.0


def judged(
    node: NodeSeen | NodeUnseen, facts: NodeFactsSeen | None = None, *, version: str = ""
) -> Judgement:
    said = {node.name: facts} if facts else {}
    (only,) = judge_health(a_view(node), said, HealthLimits(), version=version)
    return only


def rules(judgement: Judgement) -> list[str]:
    return [trouble.rule for trouble in judgement.troubles]


# --- Well ----------------------------------------------------------------------------------------


def test_an_idle_node_is_healthy_however_long_it_has_been_idle() -> None:
    """The original called idle machines dead; five fixes in a day did not mend it."""
    found = judged(a_node("loom"), NodeFactsSeen(quiet_s=90 * HOUR))

    assert (found.state, found.troubles, found.idle) == ("idle", (), True)
    assert found.idle_since is not None


@pytest.mark.parametrize("state", ["paused", "draining", "drained"])
def test_a_persons_word_is_no_trouble(state: str) -> None:
    assert judged(a_busy_node("iris", state=state, free_slots=0)).state == state


def test_a_busy_node_is_active() -> None:
    assert judged(a_busy_node("iris", 40, oldest_ready_s=9 * HOUR)).troubles == ()


# --- Not seen ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unseen_s", "alarm", "said"),
    [(599.0, False, "last seen 9m ago"), (600.0, True, "last seen 10m ago"),
     (None, True, "never seen by this hub")],
)  # fmt: skip
def test_a_silent_node_alarms_once_it_has_been_silent_for_long(
    unseen_s: float | None, alarm: bool, said: str
) -> None:
    found = judged(an_unseen_node("iris"), NodeFactsSeen(unseen_s=unseen_s))

    assert found.state == "unseen"
    assert [(t.rule, t.alarm) for t in found.troubles] == [("node_answers", alarm)]
    assert found.troubles[0].because == f"no answer within 10 s; {said}"
    assert (found.idle, found.pending) == (None, None)


def test_another_host_key_alarms_at_once() -> None:
    found = judged(an_unseen_node("iris", rule="host_key"), NodeFactsSeen(unseen_s=1.0))

    assert found.troubles[0].alarm


def test_a_suspended_node_is_no_trouble() -> None:
    assert judged(an_unseen_node("iris", rule="suspended")) == Judgement("iris", "suspended")


def test_of_a_stale_report_nothing_is_believed() -> None:
    """The original believed an idle flag from hours ago."""
    found = judged(a_node("iris", age_s=601.0, dispatcher="stopped", needs_you=("x",)))

    assert (found.state, rules(found), found.idle) == ("stale", ["fresh_report"], None)
    assert judged(a_node("iris", age_s=600.0)).state == "idle"


# --- One rule each -------------------------------------------------------------------------------


def test_110_tasks_on_a_machine_whose_dispatcher_stopped_are_seen() -> None:
    found = judged(a_node("iris", dispatcher="stopped", pending_count=110))

    assert found.state == "stopped"
    assert found.troubles[0].because == "its daemon does not run; 110 tasks wait there"


@pytest.mark.parametrize(
    ("fields", "facts", "stalled"),
    [
        ({"pending_count": 1, "oldest_ready_s": 1801.0}, NodeFactsSeen(), True),
        ({"pending_count": 1, "oldest_ready_s": 1800.0}, NodeFactsSeen(), False),
        ({"pending_count": 0}, NodeFactsSeen(quiet_s=9 * HOUR), False),
        ({"pending_count": 9, "oldest_ready_s": 9 * HOUR}, NodeFactsSeen(quiet_s=60.0), False),
        ({"pending_count": 9, "oldest_ready_s": 60.0}, NodeFactsSeen(quiet_s=9 * HOUR), False),
        ({"pending_count": 9, "oldest_ready_s": 9 * HOUR, "free_slots": 0}, NodeFactsSeen(), False),
    ],
)
def test_stalled_means_that_work_waits_beside_a_free_slot(
    fields: dict[str, Any], facts: NodeFactsSeen, stalled: bool
) -> None:
    found = judged(a_node("iris", **fields), facts)

    assert (found.state == "stalled") is stalled
    assert ("waiting_work_is_started" in rules(found)) is stalled


@pytest.mark.parametrize(("seconds", "found"), [(3600.0, []), (3601.0, ["no_task_runs_too_long"])])
def test_a_task_that_runs_too_long_is_named(seconds: float, found: list[str]) -> None:
    facts = NodeFactsSeen(longest_running_s=seconds, longest_running="01TASK")

    assert rules(judged(a_node("iris", running_count=1), facts)) == found


@pytest.mark.parametrize(
    ("facts", "failing"),
    [
        (NodeFactsSeen(ended=3, failed=3), False),
        (NodeFactsSeen(ended=4, failed=2), False),
        (NodeFactsSeen(ended=4, failed=3), True),
        (NodeFactsSeen(ended=100, failed=4, streak=4), False),
        (NodeFactsSeen(ended=100, failed=5, streak=5), True),
    ],
)
def test_a_node_that_fails_fast_is_failing(facts: NodeFactsSeen, failing: bool) -> None:
    found = judged(a_node("iris"), facts)

    assert (found.state == "failing") is failing
    assert (attracts_no_work(a_node("iris"), facts, HealthLimits()) is not None) is failing


def test_a_node_whose_every_agent_fails_attracts_no_work_until_it_was_quiet_for_a_window() -> None:
    """A gate without a way back closed the original's fleet for 95 minutes."""
    agents = (an_agent_report("a", state="failing"), an_agent_report("b", state="failing"))
    node, limits = a_node("iris", agents=agents), HealthLimits()

    assert attracts_no_work(node, None, limits) is not None
    assert attracts_no_work(node, NodeFactsSeen(ended=1, failed=1), limits) is not None
    assert attracts_no_work(node, NodeFactsSeen(), limits) is None
    half = a_node("iris", agents=(agents[0], an_agent_report("b")))
    assert attracts_no_work(half, None, limits) is None


@pytest.mark.parametrize(
    ("free", "total", "found"),
    [(20, 100, []), (19, 100, ["disk_has_room"]), (1, None, []), (0, 0, [])],
)
def test_a_full_disk_is_told_and_an_unknown_one_is_not_judged(
    free: int, total: int | None, found: list[str]
) -> None:
    assert rules(judged(a_node("iris", disk_free_bytes=free, disk_total_bytes=total))) == found


@pytest.mark.parametrize(("off", "found"), [(30.0, []), (-30.5, ["clock_is_right"]), (None, [])])
def test_a_clock_far_off_is_told(off: float | None, found: list[str]) -> None:
    assert rules(judged(a_node("iris", clock_off_s=off))) == found


@pytest.mark.parametrize(
    ("theirs", "found"),
    [("0.9.9", ["version_is_current"]), ("0.10.0", []), ("0.11.0", []), ("odd", [])],
)
def test_a_node_behind_the_hub_is_told(theirs: str, found: list[str]) -> None:
    """0.9 is older than 0.10, which is not how texts compare."""
    assert rules(judged(a_node("iris", version=theirs), version="0.10.0")) == found


def test_what_waits_for_a_person_is_passed_on() -> None:
    found = judged(a_node("iris", needs_you=("1 PARKED: did it publish?",)))

    assert found.needs_you == ("1 PARKED: did it publish?",)
    assert found.troubles[0].because == "1 PARKED: did it publish?"
    assert found.state == "idle"


def test_the_worst_is_the_word_and_every_trouble_is_listed() -> None:
    found = judged(a_node("iris", state="quarantined", reason="a restored database",
                          dispatcher="stopped", clock_off_s=99.0))  # fmt: skip

    assert found.state == "quarantined"
    assert rules(found) == ["not_quarantined", "dispatcher_runs", "clock_is_right"]


def test_every_node_of_the_view_is_judged_by_name() -> None:
    view = a_view(a_node("loom"), an_unseen_node("iris"), a_node("arc"))

    assert [found.node for found in judge_health(view, {}, HealthLimits())] == [
        "arc", "iris", "loom",
    ]  # fmt: skip


# --- What is new ---------------------------------------------------------------------------------


def looks(*nodes: NodeSeen | NodeUnseen, unseen_s: float = 900.0) -> tuple[Judgement, ...]:
    facts = {"iris": NodeFactsSeen(unseen_s=unseen_s)}
    return judge_health(a_view(*nodes), facts, HealthLimits())


def test_a_trouble_is_told_when_it_begins_and_when_it_ends_and_not_between() -> None:
    bad, good = looks(a_node("iris", dispatcher="stopped")), looks(a_node("iris"))
    first = edge((), bad)
    second = edge(first.standing, bad)
    third = edge(second.standing, good)

    assert [alert.rule for alert in first.began] == ["dispatcher_runs"]
    assert (second.began, second.ended) == ((), ())
    assert [alert.rule for alert in third.ended] == ["dispatcher_runs"]
    assert third.standing == ()


def test_a_trouble_stands_while_its_node_cannot_be_seen() -> None:
    """Otherwise every missed answer would end all alarms and the next look would raise them."""
    first = edge((), looks(a_node("iris", dispatcher="stopped")))
    silent = edge(first.standing, looks(an_unseen_node("iris")))
    back = edge(silent.standing, looks(a_node("iris", dispatcher="stopped")))

    assert ([a.rule for a in silent.began], silent.ended) == (["node_answers"], ())
    assert (back.began, [a.rule for a in back.ended]) == ((), ["node_answers"])


def test_one_missed_answer_is_not_told() -> None:
    found = edge((), looks(an_unseen_node("iris"), unseen_s=5.0))

    assert (found.began, found.standing) == ((), ())


def test_a_node_that_left_the_fleet_leaves_no_trouble_behind() -> None:
    first = edge((), looks(a_node("iris", dispatcher="stopped")))

    assert edge(first.standing, ()).ended == first.standing


@given(st.lists(st.lists(st.sampled_from(["ok", "stopped", "silent", "full"]), min_size=2,
                         max_size=2), max_size=8))  # fmt: skip
def test_whatever_happens_each_beginning_has_at_most_one_end(looked: list[list[str]]) -> None:
    kinds: dict[str, Callable[[str], NodeSeen | NodeUnseen]] = {
        "ok": a_node,
        "stopped": lambda name: a_node(name, dispatcher="stopped"),
        "silent": an_unseen_node,
        "full": lambda name: a_node(name, disk_free_bytes=1, disk_total_bytes=100),
    }
    standing: tuple[Alert, ...] = ()
    open_now: set[tuple[str, str]] = set()
    for pair in looked:
        now = looks(*(kinds[kind](name) for name, kind in zip(("iris", "loom"), pair, strict=True)))
        found = edge(standing, now)
        for alert in found.began:
            assert (alert.node, alert.rule) not in open_now
            open_now.add((alert.node, alert.rule))
        for alert in found.ended:
            open_now.remove((alert.node, alert.rule))
        standing = found.standing
        assert {(alert.node, alert.rule) for alert in standing} == open_now


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h 0m"), (90_000, "1d 1h")],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert lasting(seconds) == text


# --- A task that fails is not a node that fails --------------------------------------------------


def breaker(ends: list[tuple[str, bool]]) -> bool:
    """Whether a node on which these tasks ended so is given no more work."""
    well = last_of_each(ends)
    streak = next((n for n, good in enumerate(reversed(well)) if good), len(well))
    facts = NodeFactsSeen(ended=len(well), failed=well.count(False), streak=streak)
    return attracts_no_work(a_node("iris"), facts, HealthLimits()) is not None


def test_one_task_that_fails_again_and_again_does_not_trip_a_nodes_breaker() -> None:
    """Fails when attempts are counted: a poisoned task takes its node down with it."""
    assert not breaker([("poison", False)] * 9)
    assert breaker([(f"task {number}", False) for number in range(5)])


def test_a_task_counts_by_how_it_ended_last() -> None:
    assert last_of_each([("a", False), ("b", False), ("a", True)]) == [False, True]
    assert last_of_each([]) == []


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_three_tasks_trip_no_breaker_that_asks_for_more(ends: list[tuple[str, bool]]) -> None:
    assert len(last_of_each(ends)) == len({uid for uid, _ in ends})
    assert not breaker(ends)
