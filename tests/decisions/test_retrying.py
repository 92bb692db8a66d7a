"""Retrying elsewhere: what everybody on a node has failed goes once to who has not tried it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.changes import Situation
from arc.decisions.domains import belongs_to
from arc.decisions.explain import StealPlan
from arc.decisions.failing import NodeFactsSeen
from arc.decisions.limits import StealLimits
from arc.decisions.memory import Memory
from arc.decisions.retrying import (
    memory_after,
    plan_retries,
    queues_after,
    retries,
    view_after,
)
from arc.decisions.stealing import plan_steals
from arc.decisions.view import FleetView, NodeSeen, Queue, QueuedTask, QueueUnseen
from arc.decisions.why import why_task
from tests.builders import uid
from tests.fleet_builders import (
    DOMAINS,
    ROLES,
    a_busy_node,
    a_node,
    a_queue,
    a_queued,
    a_view,
    an_agent_report,
    an_idle_node,
    an_unseen_node,
    minting,
    queues,
    some_queued,
)

RESEARCH = ("arc-research",)
PAUSED = an_agent_report("loom", paused=True)
SWIFT = StealLimits(policy="swift")
FAILED_HERE = "everybody on iris who can run it has failed it; "


def a_giver(name: str = "iris", **fields: Any) -> NodeSeen:
    given: dict[str, Any] = {"retried_count": 1, "pending_count": 1, "free_slots": 0,
                             "running_count": 1}  # fmt: skip
    return a_node(name, **given | fields)


def retry(
    view: FleetView,
    *some: Queue | QueueUnseen,
    limits: StealLimits | None = None,
    **known: Any,
) -> StealPlan:
    return plan_retries(view, queues(*some), domains=DOMAINS, limits=limits or StealLimits(),
                        mint=minting(), **known)  # fmt: skip


def going(plan: StealPlan) -> list[str]:
    return [steal.idle for steal in plan.steals]


def reason(plan: StealPlan) -> str:
    (kept,) = plan.kept
    assert kept.objection.rule == "retry_elsewhere"
    assert kept.objection.because.startswith(FAILED_HERE)
    return kept.objection.because.removeprefix(FAILED_HERE)


def test_it_goes_to_whose_work_it_is_and_says_why() -> None:
    view = a_view(a_node("forge"), a_giver("iris"), a_node("loom"), a_node("spark"))
    plan = retry(view, a_queue("iris", a_queued(1, skills=RESEARCH, priority=1, hops=3)))

    assert going(plan) == ["loom"]
    (step,) = plan.steals
    assert step.why == "retried"
    assert step.because == f"{FAILED_HERE}loom also does research (skills)"


def test_only_nodes_that_say_that_they_have_some_are_asked() -> None:
    """Fails when a cycle asks every node, which is a request for each of them and for nothing."""
    assert retries(a_view(a_node("iris", pending_count=9), a_node("loom")), StealLimits()) == ()
    assert retries(a_view(a_giver("iris"), a_node("loom")), StealLimits()) == ("iris",)
    assert retry(a_view(a_node("iris"))).skipped == "no retry"


@pytest.mark.parametrize(
    "fields",
    [{"state": "paused"}, {"state": "draining"}, {"state": "quarantined"}, {"age_s": 900.0}],
)
def test_who_gives_nothing_away_is_not_asked(fields: dict[str, Any]) -> None:
    """A draining node has its drain; what a stale report counted says nothing of now."""
    assert retries(a_view(a_giver(**fields)), StealLimits()) == ()


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"state": "paused"}, "takes_new_work: loom: paused"),
        ({"state": "draining"}, "takes_new_work: loom: draining"),
        ({"dispatcher": "stopped"}, "dispatcher_runs: loom: its daemon does not run"),
        ({"age_s": 900.0}, "fresh_report: loom: its report is 15m old; we use one for 10m"),
        ({"agents": (PAUSED,)}, "has_an_agent: loom: no agent there takes work"),
    ],
)
def test_who_may_not_be_given_work_is_given_none(fields: dict[str, Any], rule: str) -> None:
    plan = retry(a_view(a_giver(), a_node("loom", **fields)), a_queue("iris", a_queued(1)))

    assert reason(plan) == rule


def test_a_failing_node_an_unseen_one_and_a_forbidden_one_take_nothing() -> None:
    view = a_view(a_giver(), a_node("loom"), an_unseen_node("forge"), a_node("spark"))
    work = a_queue("iris", a_queued(1, skills=("deploy",)))

    assert reason(retry(view, work)).startswith("node_answers: forge: no answer within 10 s")
    failing = {"loom": NodeFactsSeen(streak=5)}
    plan = retry(a_view(a_giver(), a_node("loom")), a_queue("iris", a_queued(1)), facts=failing)
    assert reason(plan).startswith("work_succeeds: loom: ")


def test_it_never_goes_back_to_where_it_failed() -> None:
    """Fails when a task goes to the owner of its work though it has failed there before."""
    view = a_view(a_giver(), a_node("loom"), a_node("spark", pending_count=5))
    one = a_queued(1, failed_on=("iris", "loom"))

    assert going(retry(view, a_queue("iris", one))) == ["spark"]
    plan = retry(a_view(a_giver(), a_node("loom")), a_queue("iris", one))
    assert reason(plan) == "not_failed_there: loom has failed it already"


def test_a_free_slot_goes_before_the_owner_and_then_fewest_waiting() -> None:
    work = a_queue("forge", a_queued(1, skills=RESEARCH))
    full: dict[str, Any] = {"pending_count": 2, "running_count": 1}
    forge = a_giver("forge")

    assert going(retry(a_view(forge, a_node("iris", **full), a_node("loom")), work)) == ["loom"]
    assert going(retry(a_view(forge, a_node("iris"), a_node("loom")), work)) == ["iris"]
    anyone = a_queue("forge", a_queued(1))
    view = a_view(forge, a_node("iris", **full), a_node("loom", **full | {"pending_count": 1}))
    assert going(retry(view, anyone)) == ["loom"]


def test_the_caps_of_a_cycle_count() -> None:
    """Fails when a broken node of a hundred tasks floods the only other one."""
    view, some = a_view(a_giver(), a_node("loom")), a_queue("iris", *some_queued(5))
    plan = retry(view, some)
    assert going(plan) == ["loom"] * 3
    assert {kept.objection.because for kept in plan.kept} == {
        f"{FAILED_HERE}receiver_has_room: loom gets 3 already; 3 a node and cycle"}

    plan = retry(view, some, limits=StealLimits(per_cycle=2))
    assert going(plan) == ["loom"] * 2
    plan = retry(view, some, memory=Memory(taken={"loom": 2}))
    assert going(plan) == ["loom"]


def test_who_refused_it_lately_is_not_asked_at_once() -> None:
    refused = Memory(refused_s={(uid(1), "loom"): 60.0})
    view = a_view(a_giver(), a_node("loom"))
    plan = retry(view, a_queue("iris", a_queued(1)), memory=refused)

    assert reason(plan).startswith("not_refused_lately: loom refused it 1m ago")


@pytest.mark.parametrize(
    ("fields", "rule"), [({"pinned": True}, "not_pinned"), ({"state": "ESCROW"}, "still_ready")]
)
def test_pinned_and_moving_tasks_stay(fields: dict[str, Any], rule: str) -> None:
    plan = retry(a_view(a_giver(), a_node("loom")), a_queue("iris", a_queued(1, **fields)))

    assert reason(plan).startswith(rule)


@pytest.mark.parametrize("some", [[], [QueueUnseen("iris", "silent", "no answer in 10 s")]])
def test_a_queue_that_was_not_read_is_a_reason(some: list[QueueUnseen]) -> None:
    plan = retry(a_view(a_giver(), a_node("loom")), *some)

    assert [one.objection.rule for one in plan.nodes if one.objection] == ["queue_was_read"]


@pytest.mark.parametrize("limits", [StealLimits(), SWIFT])
def test_no_task_is_in_two_plans_of_a_cycle_and_no_node_gets_more_than_its_share(
    limits: StealLimits,
) -> None:
    """Fails when the steals of a cycle do not know of its retries."""
    view = a_view(a_busy_node("iris", 9, retried_count=2), an_idle_node("loom"))
    whole = a_queue("iris", *some_queued(9))
    first = retry(view, a_queue("iris", *some_queued(2, start=8)), limits=limits)
    assert going(first) == ["loom", "loom"]

    then = plan_steals(
        view_after(view, first.steals, limits), queues_after(queues(whole), first.steals),
        domains=DOMAINS, limits=limits, mint=minting(), memory=memory_after(Memory(), first.steals),
    )  # fmt: skip
    both = [one.task.uid for one in (*first.steals, *then.steals)]
    assert len(both) == len(set(both))
    assert going(then) == ([] if limits.swift else ["loom"])
    assert len(then.steals) + sum(count.count for count in then.counts) == 7


def a_situation(view: FleetView, *some: Queue) -> Situation:
    return Situation(view, queues(*some), DOMAINS, StealLimits(), Memory())


def test_why_says_where_it_goes_or_what_keeps_it() -> None:
    """Fails when `arc why` speaks of stealing alone, which such a task has no part in."""
    one = a_queued(1, skills=RESEARCH, priority=1)
    view, queue = a_view(a_giver(), a_node("loom")), a_queue("iris", one)
    answer = why_task(one, "iris", a_situation(view, queue), drains=retry(view, queue))
    assert answer.verdict == "WAIT"
    assert answer.result.startswith("the next cycle moves it to loom: retry_elsewhere: everybody")

    view = a_view(a_giver(), a_node("spark"))
    answer = why_task(one, "iris", a_situation(view, queue), drains=retry(view, queue))
    assert answer.moves is None
    assert f"; retry_elsewhere: {FAILED_HERE}may_do_this_work: " in answer.result


@st.composite
def tasks(draw: st.DrawFn, start: int) -> tuple[QueuedTask, ...]:
    skills = st.sampled_from([(), RESEARCH, ("deploy",), ("knitting",), ("clarity",)])
    return tuple(
        a_queued(start + number, skills=draw(skills), priority=draw(st.integers(1, 10)),
                 failed_on=tuple(draw(st.sets(st.sampled_from([*ROLES]), max_size=2))),
                 pinned=draw(st.integers(0, 9)) == 0)
        for number in range(draw(st.integers(0, 12)))
    )  # fmt: skip


@given(
    states=st.lists(st.sampled_from(["active", "draining", "paused", "unseen"]),
                    min_size=4, max_size=4),
    waiting=st.lists(st.integers(0, 5), min_size=4, max_size=4),
    forge=tasks(100), iris=tasks(200),
    limits=st.builds(StealLimits, policy=st.sampled_from(["arc0", "swift"]),
                     per_node=st.integers(1, 4), per_cycle=st.integers(1, 9)),
)  # fmt: skip
def test_every_task_has_a_place_or_a_reason_within_all_bounds(
    states: list[str],
    waiting: list[int],
    forge: tuple[QueuedTask, ...],
    iris: tuple[QueuedTask, ...],
    limits: StealLimits,
) -> None:
    view = a_view(*(
        an_unseen_node(name) if state == "unseen"
        else a_node(name, state=state, pending_count=count, retried_count=count)
        for name, state, count in zip(ROLES, states, waiting, strict=True)
    ))  # fmt: skip
    some = (a_queue("forge", *forge), a_queue("iris", *iris))
    plan = retry(view, *some, limits=limits)

    assert plan == retry(view, *some, limits=limits)
    asked = [queue for queue in some if queue.node in retries(view, limits)]
    moved, stay = [one.task.uid for one in plan.steals], [one.task.uid for one in plan.kept]
    assert sorted(moved + stay) == sorted(task.uid for queue in asked for task in queue.tasks)
    assert len(moved) <= limits.per_cycle
    for step in plan.steals:
        taker = view.node(step.idle)
        assert isinstance(taker, NodeSeen)
        assert taker.report.state == "active"
        assert going(plan).count(step.idle) <= limits.per_node
        assert step.idle not in {step.busy, *step.task.failed_on}
        assert not set(belongs_to(step.task, DOMAINS).names) & set(taker.role.never)
        assert not step.task.pinned
