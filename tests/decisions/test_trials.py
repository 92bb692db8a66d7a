"""A node that failed proves itself on one task: nothing gives it a second one before that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.changes import Situation
from arc.decisions.draining import plan_drains
from arc.decisions.failing import (
    CLOSED,
    LONGEST,
    Breaker,
    End,
    NodeFactsSeen,
    attracts_no_work,
    breaker_of,
)
from arc.decisions.limits import HealthLimits, RouteLimits, StealLimits
from arc.decisions.memory import Memory
from arc.decisions.retrying import memory_after, plan_retries, tried_after
from arc.decisions.routing import plan_routes
from arc.decisions.stealing import plan_steals
from arc.decisions.why import why_task
from tests.fleet_builders import (
    DOMAINS,
    a_busy_node,
    a_node,
    a_queue,
    a_view,
    an_idle_node,
    minting,
    queues,
    some_queued,
)

HEALTH = HealthLimits()
HOUR = HEALTH.failing_within_s
NIGHT = datetime(2026, 3, 10, 3, tzinfo=UTC)
TRIAL = {"loom": NodeFactsSeen(again_s=-1.0, window_s=HOUR)}
ON_TRIAL = Memory(trials=frozenset({"loom"}))
PLANS = Path(__file__).parent.parent / "plans"
WHY = "loom is on trial: it failed, and gets one task until that has ended well"


def ends(*told: tuple[float, bool]) -> list[End]:
    """Tasks that ended so many hours into the night, each another one."""
    return [End(NIGHT + timedelta(seconds=hours * HOUR), f"task {number}", well)
            for number, (hours, well) in enumerate(told)]  # fmt: skip


def after(*told: tuple[float, bool]) -> tuple[float | None, float]:
    """Until when a node on which five failed at once and then these is open, in windows."""
    known = breaker_of(ends(*[(0.0, False)] * 5, *told), HEALTH)
    if known.until is None:
        return None, 0.0
    return (known.until - NIGHT).total_seconds() / HOUR, known.window_s / HOUR


@pytest.mark.parametrize(
    ("told", "until", "window"),
    [
        ([], 1, 1),
        ([(0.5, False)], 1.5, 1),  # quiet counts from the last of them
        ([(0.5, True)], 1, 1),  # one that ended well leaves too many that failed
        ([(0.5, True)] * 5, None, 0),  # work of its own ended well
        ([(1.0, True)], None, 0),
        ([(1.0, False)], 3, 2),
        ([(1.0, False), (1.5, False)], 3, 2),  # no trial: its quiet is not over yet
        ([(1.0, False), (3.0, False)], 7, 4),
        ([(1.0, False), (3.0, True)], None, 0),
        ([(1.0, False), (3.0, False), (7.0, False), (15.0, False), (23.0, False)], 31, 8),
    ],
)
def test_a_trial_closes_the_breaker_or_doubles_its_window(
    told: list[tuple[float, bool]], until: float | None, window: float
) -> None:
    """Fails when a node that was quiet is trusted again, or never again."""
    assert after(*told) == (until, window)


def test_why_says_that_a_node_is_on_trial() -> None:
    tasks = some_queued(9)
    view = a_view(a_busy_node("iris", 9), an_idle_node("loom"))
    situation = Situation(view, queues(a_queue("iris", *tasks)), DOMAINS, StealLimits(), ON_TRIAL)
    said = [why_task(task, "iris", situation) for task in tasks]

    assert [one.moves is not None for one in said].count(True) == 1
    assert any(WHY in one.result for one in said)


def test_a_few_failures_open_nothing() -> None:
    assert breaker_of(ends(*[(0.0, False)] * 3), HEALTH) == CLOSED
    assert breaker_of(ends(*[(hours, False) for hours in range(0, 40, 2)]), HEALTH) == CLOSED


@given(st.lists(st.tuples(st.floats(0, 3), st.booleans())))
def test_a_wait_is_bounded_and_one_trial_that_ends_well_closes_whatever_was_before(
    gaps: list[tuple[float, bool]],
) -> None:
    """However its history went: no wait is longer than LONGEST windows, and there is a way back."""
    at, told = 0.0, []
    for gap, well in gaps:
        at += gap
        told.append((at, well))
    known: Breaker = breaker_of(ends(*told), HEALTH)
    if known.until is None:
        return
    last = NIGHT + timedelta(seconds=at * HOUR)
    assert HOUR <= known.window_s <= LONGEST * HOUR
    assert known.until <= last + timedelta(seconds=known.window_s)
    assert not all(well for _, well in told)
    trial = max((known.until - NIGHT).total_seconds() / HOUR, at) + 0.001
    assert breaker_of(ends(*told, (trial, True)), HEALTH) == CLOSED
    worse = breaker_of(ends(*told, (trial, False)), HEALTH)
    assert worse.window_s == min(known.window_s * 2, LONGEST * HOUR)


@pytest.mark.parametrize(
    ("facts", "running", "because"),
    [
        (NodeFactsSeen(again_s=600.0, window_s=HOUR), 0,
         "it failed again and again; it is tried with one task in 10m"),
        (NodeFactsSeen(again_s=0.0, window_s=HOUR), 0, None),
        (NodeFactsSeen(again_s=-60.0, window_s=HOUR), 1, None),  # what runs there is its own
        (NodeFactsSeen(again_s=-60.0, window_s=HOUR, given_s=30.0), 0, WHY[len("loom is "):]),
        (NodeFactsSeen(again_s=-9.0, window_s=HOUR, given_s=HOUR), 1, WHY[len("loom is "):]),
        (NodeFactsSeen(again_s=-9.0, window_s=HOUR, given_s=HOUR), 0, None),  # it never ended
    ],
)  # fmt: skip
def test_a_node_gets_its_trial_once_its_quiet_is_over_and_nothing_beside_it(
    facts: NodeFactsSeen, running: int, because: str | None
) -> None:
    said = attracts_no_work(a_node("loom", running_count=running), facts, HEALTH)

    assert (said and said.because) == because


# --- No plan gives a second one ----------------------------------------------------------------


def test_the_router_gives_a_node_on_trial_one_task() -> None:
    """Fails when only the judgement knows of it: one batch of ten goes to a black hole."""
    plan = plan_routes(
        a_view(a_node("loom")), a_queue("inbox", *some_queued(4)), domains=DOMAINS,
        limits=RouteLimits(), mint=minting(), unclaimed={}, facts=TRIAL,
    )  # fmt: skip

    assert [one.idle for one in plan.routes] == ["loom"]
    assert {one.objection.because for one in plan.kept} == {WHY}
    assert {one.objection.rule for one in plan.kept} == {"work_succeeds"}


@pytest.mark.parametrize("policy", ["arc0", "swift"])
def test_a_steal_gives_a_node_on_trial_one_task(policy: str) -> None:
    view = a_view(a_busy_node("iris", 9), an_idle_node("loom", slots=3, free_slots=3))
    plan = plan_steals(
        view, queues(a_queue("iris", *some_queued(9))), domains=DOMAINS,
        limits=StealLimits(policy=policy), mint=minting(), memory=ON_TRIAL,
    )  # fmt: skip

    lines = [f"steal {one.busy} -> {one.idle}: {one.because}" for one in plan.steals]
    lines += [f"kept {one.count} {one.rule}: {one.because}" for one in plan.counts]
    assert "\n".join(lines) + "\n" == (PLANS / f"trial_{policy}.txt").read_text()


def test_a_retry_gives_a_node_on_trial_one_task_and_none_after_a_drain() -> None:
    view = a_view(a_node("iris", retried_count=3, pending_count=3), a_node("loom"))
    queue = queues(a_queue("iris", *some_queued(3)))

    def retried(memory: Memory) -> list[str]:
        plan = plan_retries(view, queue, domains=DOMAINS, limits=StealLimits(), mint=minting(),
                            facts=TRIAL, memory=memory)  # fmt: skip
        assert len(plan.steals) + len(plan.kept) == 3
        assert all(WHY in one.objection.because for one in plan.kept)
        return [one.idle for one in plan.steals]

    assert retried(ON_TRIAL) == ["loom"]
    drain = plan_drains(
        a_view(a_node("iris", state="draining", pending_count=3), a_node("loom")), queue,
        domains=DOMAINS, limits=StealLimits(), mint=minting(), facts=TRIAL,
    )  # fmt: skip
    assert [one.idle for one in drain.steals] == ["loom", "inbox", "inbox"]
    assert drain.steals[1].because == f"nobody may take it now: {WHY}"
    assert retried(tried_after(ON_TRIAL, drain.steals)) == []
    assert memory_after(ON_TRIAL, drain.steals).no_work["loom"].because == WHY
