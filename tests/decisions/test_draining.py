"""Draining: what waits on a machine that is to be empty leaves it, balanced over the others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.domains import belongs_to
from arc.decisions.draining import drains, plan_drains
from arc.decisions.explain import StealPlan
from arc.decisions.failing import NodeFactsSeen
from arc.decisions.limits import StealLimits
from arc.decisions.view import FleetView, NodeSeen, Queue, QueuedTask, QueueUnseen
from tests.fleet_builders import (
    DOMAINS,
    ROLES,
    a_node,
    a_queue,
    a_queued,
    a_view,
    an_unseen_node,
    minting,
    queues,
    some_queued,
)

RESEARCH = ("arc-research",)


def a_draining_node(name: str = "iris", pending: int = 3, **fields: Any) -> NodeSeen:
    given: dict[str, Any] = {"state": "draining", "free_slots": 0, "pending_count": pending}
    return a_node(name, **given | fields)


def drain(
    view: FleetView,
    *some: Queue | QueueUnseen,
    facts: dict[str, NodeFactsSeen] | None = None,
    inbox: str | None = "inbox",
) -> StealPlan:
    return plan_drains(view, queues(*some), domains=DOMAINS, limits=StealLimits(),
                       mint=minting(), facts=facts, inbox=inbox)  # fmt: skip


def going(plan: StealPlan) -> list[str]:
    return [steal.idle for steal in plan.steals]


def reasons(plan: StealPlan) -> list[str]:
    return [kept.objection.rule for kept in plan.kept]


def test_waiting_tasks_leave_for_the_owner_then_for_who_also_does_it() -> None:
    view = a_view(a_draining_node("forge"), a_node("iris"), a_node("loom"), a_node("spark"))
    plan = drain(view, a_queue("forge", a_queued(1, skills=("ci",)), a_queued(2, skills=RESEARCH)))

    assert going(plan) == ["loom", "iris"]
    assert {steal.why for steal in plan.steals} == {"drained"}


def test_priority_earlier_steals_busyness_and_caps_do_not_count() -> None:
    """Each of these rules would keep some of them, were this a rebalance."""
    view = a_view(a_draining_node(), a_node("loom", pending_count=40))
    tasks = [a_queued(number, priority=1, hops=1, stolen_from="forge") for number in range(25)]

    assert going(drain(view, a_queue("iris", *tasks))) == ["loom"] * 25


def test_the_receivers_are_balanced_as_the_plan_grows() -> None:
    view = a_view(a_draining_node(), a_node("forge", pending_count=2), a_node("loom"),
                  a_node("spark"))  # fmt: skip

    assert Counter(going(drain(view, a_queue("iris", *some_queued(10))))) == {
        "forge": 2, "loom": 4, "spark": 4,
    }  # fmt: skip


def test_the_owner_comes_first_however_much_it_has() -> None:
    """Its work is its own; a rebalance evens out later what is too much."""
    view = a_view(a_draining_node("forge"), a_node("iris", pending_count=30), a_node("loom"))

    assert going(drain(view, a_queue("forge", a_queued(1, skills=RESEARCH)))) == ["iris"]


def test_what_no_node_may_take_goes_home_to_the_hub() -> None:
    view = a_view(a_draining_node(), a_node("spark"))
    plan = drain(view, a_queue("iris", a_queued(1, skills=("deploy",))))

    assert going(plan) == ["inbox"]
    assert plan.steals[0].because == (
        "nobody may take it now: no node owns infrastructure, and none has it in also"
    )


def test_without_an_inbox_it_stays_with_the_reason() -> None:
    view = a_view(a_draining_node("forge"), a_node("loom", age_s=900.0))
    plan = drain(view, a_queue("forge", a_queued(1, skills=RESEARCH)), inbox=None)

    assert going(plan) == []
    assert reasons(plan) == ["fresh_report"]


@pytest.mark.parametrize(
    ("fields", "rule"), [({"pinned": True}, "not_pinned"), ({"state": "ESCROW"}, "still_ready")]
)
def test_pinned_and_moving_tasks_stay(fields: dict[str, Any], rule: str) -> None:
    plan = drain(a_view(a_draining_node(), a_node("loom")), a_queue("iris", a_queued(1, **fields)))

    assert reasons(plan) == [rule]


def test_a_draining_node_takes_nothing_from_another() -> None:
    view = a_view(a_draining_node("iris"), a_draining_node("loom"))

    assert going(drain(view, a_queue("iris", a_queued(1)))) == ["inbox"]


def test_a_drained_node_with_tasks_left_is_still_emptied() -> None:
    view = a_view(a_draining_node(state="drained"), a_node("loom"))

    assert drains(view, StealLimits()) == ("iris",)
    assert going(drain(view, a_queue("iris", a_queued(1)))) == ["loom"]


def test_a_failing_node_takes_nothing_from_a_draining_one() -> None:
    view = a_view(a_draining_node(), a_node("forge"), a_node("loom", pending_count=9))
    plan = drain(view, a_queue("iris", a_queued(1)), facts={"forge": NodeFactsSeen(streak=5)})

    assert going(plan) == ["loom"]


@pytest.mark.parametrize(
    ("some", "because"),
    [
        ([], "iris: nobody looked into its queue"),
        ([QueueUnseen("iris", "silent", "no answer in 10 s")], "iris: no answer in 10 s"),
    ],
)
def test_a_queue_that_was_not_read_is_a_reason_and_not_an_empty_queue(
    some: list[QueueUnseen], because: str
) -> None:
    plan = drain(a_view(a_draining_node(), a_node("loom")), *some)

    assert plan.steals == ()
    assert [one.objection.because for one in plan.nodes if one.objection] == [because]


def test_where_nobody_drains_nothing_is_asked() -> None:
    assert drain(a_view(a_node("iris"), a_node("loom"))).skipped == "no draining"


@st.composite
def tasks(draw: st.DrawFn, start: int) -> tuple[QueuedTask, ...]:
    skills = st.sampled_from([(), RESEARCH, ("deploy",), ("knitting",), ("clarity",)])
    return tuple(
        a_queued(start + number, skills=draw(skills), priority=draw(st.integers(1, 10)),
                 pinned=draw(st.integers(0, 9)) == 0)
        for number in range(draw(st.integers(0, 12)))
    )  # fmt: skip


@given(
    states=st.lists(st.sampled_from(["active", "draining", "drained", "paused", "unseen"]),
                    min_size=4, max_size=4),
    forge=tasks(100), iris=tasks(200), inbox=st.sampled_from(["inbox", None]),
)  # fmt: skip
def test_every_task_has_a_place_or_a_reason_and_never_is_never(
    states: list[str],
    forge: tuple[QueuedTask, ...],
    iris: tuple[QueuedTask, ...],
    inbox: str | None,
) -> None:
    view = a_view(*(an_unseen_node(name) if state == "unseen" else a_node(name, state=state)
                    for name, state in zip(ROLES, states, strict=True)))  # fmt: skip
    some = (a_queue("forge", *forge, kept={"pinned": 1}), a_queue("iris", *iris))
    plan = drain(view, *some, inbox=inbox)

    assert plan == drain(view, *some, inbox=inbox)
    leaving = [queue for queue in some if queue.node in drains(view, StealLimits())]
    assert sum(queue.total for queue in leaving) == (
        len(plan.steals) + sum(count.count for count in plan.counts)
    )
    moved, stay = [one.task.uid for one in plan.steals], [one.task.uid for one in plan.kept]
    assert sorted(moved + stay) == sorted(task.uid for queue in leaving for task in queue.tasks)
    for steal in plan.steals:
        assert not steal.task.pinned
        if steal.idle != "inbox":
            assert not set(belongs_to(steal.task, DOMAINS).names) & set(ROLES[steal.idle].never)
            assert view.node(steal.idle) in view.seen
            assert steal.idle not in {queue.node for queue in leaving}
