"""Policy `swift`: free slots are filled at once, with what gains most, and nothing wanders."""

from __future__ import annotations

from typing import Any

import pytest

from arc.decisions.domains import Role
from arc.decisions.explain import StealPlan
from arc.decisions.limits import StealLimits
from arc.decisions.memory import Memory
from arc.decisions.objections import Objection
from arc.decisions.stealing import asking, busy_to_ask, plan_steals
from arc.decisions.view import FleetView, Queues, QueueUnseen

from ..builders import uid
from ..fleet_builders import (
    DOMAINS,
    a_busy_node,
    a_node,
    a_queue,
    a_queued,
    a_view,
    an_agent_report,
    an_idle_node,
    minting,
    queues,
    some_queued,
)

SWIFT = StealLimits(policy="swift")


def planned(view: FleetView, asked: Queues, memory: Memory | None = None) -> StealPlan:
    return plan_steals(
        view, asked, domains=DOMAINS, limits=SWIFT, mint=minting(), memory=memory
    )


def iris_and(*nodes: Any, waiting: int = 4, **fields: Any) -> tuple[FleetView, Queues]:
    """Iris with one running task and so many waiting ones, most urgent first."""
    view = a_view(a_busy_node("iris", waiting), *nodes)
    return view, queues(a_queue("iris", *some_queued(waiting, **fields)))


def got(plan: StealPlan) -> dict[str, int]:
    names = [steal.idle for steal in plan.steals]
    return {name: names.count(name) for name in sorted(set(names))}


def kept_by(plan: StealPlan) -> dict[str, int]:
    return {count.rule: count.count for count in plan.counts if count.node == "iris"}


def test_a_free_slot_is_filled_without_any_idle_minimum() -> None:
    plan = planned(*iris_and(an_idle_node("loom", idle_s=0), waiting=1))

    assert [(steal.busy, steal.idle) for steal in plan.steals] == [("iris", "loom")]
    assert plan.steals[0].because == "untagged: anyone may do it; starts about 4m sooner there"


def test_priority_has_no_say_in_whether_a_task_may_move() -> None:
    plan = planned(*iris_and(an_idle_node("loom"), waiting=1, priority=1))

    assert len(plan.steals) == 1


def test_a_node_gets_its_free_slots_and_one_more_from_half_of_what_waits() -> None:
    """Guard: without `slot_or_half` loom is given all that would start sooner there."""
    plan = planned(*iris_and(an_idle_node("loom", slots=2), waiting=9))

    assert got(plan) == {"loom": 3}
    assert kept_by(plan) == {"slot_or_half": 6}


def test_the_last_one_waiting_fills_a_slot_but_is_not_put_by() -> None:
    """The second would wait longer behind the first on loom than it does on iris."""
    one, two = (planned(*iris_and(an_idle_node("loom"), waiting=n)) for n in (1, 2))

    assert (got(one), got(two)) == ({"loom": 1}, {"loom": 1})
    crowd = [an_idle_node(name, role=Role()) for name in ("ada", "bob", "cy")]
    assert got(planned(*iris_and(*crowd, waiting=3))) == {"ada": 1, "bob": 1, "cy": 1}


def test_every_empty_node_gets_its_first_before_any_gets_a_second() -> None:
    crowd = [an_idle_node(name, role=Role()) for name in ("ada", "bob", "cy", "dot")]
    plan = planned(*iris_and(*crowd, waiting=14))

    assert [steal.idle for steal in plan.steals[:4]] == ["ada", "bob", "cy", "dot"]


def test_an_empty_node_comes_before_one_that_runs_something_whatever_their_names() -> None:
    """Seen to fail: by name alone ada, which runs one, was given what empty zoe could do."""
    ada = a_node("ada", role=Role(), slots=4, running_count=1)
    plan = planned(*iris_and(ada, an_idle_node("zoe", role=Role()), waiting=1))

    assert got(plan) == {"zoe": 1}


def test_of_empty_nodes_with_several_slots_each_gets_its_first_before_one_gets_a_second() -> None:
    crowd = [an_idle_node(name, role=Role(), slots=2) for name in ("ada", "bob")]
    plan = planned(*iris_and(*crowd, waiting=4))

    assert [steal.idle for steal in plan.steals[:4]] == ["ada", "bob", "ada", "bob"]


def test_the_node_that_would_finish_last_gives_first() -> None:
    view = a_view(a_busy_node("iris", 2), a_busy_node("spark", 3), an_idle_node("loom"))
    long = some_queued(2, expected_s=9000.0)
    short = some_queued(3, 10, expected_s=60.0)

    plan = planned(view, queues(a_queue("iris", *long), a_queue("spark", *short)))

    assert plan.steals[0].busy == "iris"


def test_the_most_urgent_goes_where_all_take_equally_long() -> None:
    view = a_view(a_busy_node("iris", 3), an_idle_node("loom"))
    tasks = [a_queued(n, priority=p) for n, p in ((1, 2), (2, 5), (3, 9))]

    assert planned(view, queues(a_queue("iris", *tasks))).steals[0].task.priority == 2


def test_the_long_task_in_front_of_many_short_ones_gains_most() -> None:
    view = a_view(a_busy_node("iris", 6), an_idle_node("loom"))
    short = some_queued(5, 10, expected_s=400.0)
    tasks = (short[0], a_queued(1, expected_s=4000.0), *short[1:])

    assert planned(view, queues(a_queue("iris", *tasks))).steals[0].task.uid == uid(1)


def test_what_would_start_as_soon_where_it_is_stays() -> None:
    view = a_view(a_busy_node("iris", 1), an_idle_node("loom"))
    memory = Memory(running_left_s={"iris": 20.0})

    plan = planned(view, queues(a_queue("iris", a_queued(1, expected_s=60.0))), memory)

    assert plan.steals == ()
    assert plan.why_kept("iris") == [
        "starts in 20s on iris, in 5s on loom; it has to be 30s sooner"]  # fmt: skip


def test_a_first_task_that_starts_soon_does_not_hide_the_second_that_does_not() -> None:
    view = a_view(a_busy_node("iris", 2), an_idle_node("loom"))
    memory = Memory(running_left_s={"iris": 1.0})

    plan = planned(view, queues(a_queue("iris", *some_queued(2))), memory)

    assert [steal.task.uid for steal in plan.steals] == [uid(2)]


@pytest.mark.parametrize(("ran_s", "steals"), [(0, 0), (10, 0), (11, 0), (12, 1), (23, 2), (40, 3)])
def test_what_runs_for_far_longer_than_usual_is_no_longer_taken_for_what_is_usual(
    ran_s: float, steals: int
) -> None:
    """Three wait behind one that takes longer than any before, beside three idle nodes. Fails when
    it alone is expected to go on, or nothing is: then nobody gets any as long as it runs.
    """
    crowd = [an_idle_node(name, role=Role()) for name in ("ada", "bob", "cy")]
    view, asked = iris_and(*crowd, waiting=3)
    memory = Memory(typical_s={"": 1.0}, runs_for_s={"iris": ran_s})

    assert len(planned(view, asked, memory).steals) == steals


def test_what_says_how_long_it_takes_is_believed_beside_a_run_that_does_not_end() -> None:
    crowd = [an_idle_node(name, role=Role()) for name in ("ada", "bob", "cy")]
    view, asked = iris_and(*crowd, waiting=3, expected_s=1.0)
    memory = Memory(typical_s={"": 1.0}, runs_for_s={"iris": 23.0})

    assert planned(view, asked, memory).steals == ()


@pytest.mark.parametrize(("hops", "steals"), [(2, 1), (3, 0)])
def test_a_task_does_not_wander_for_ever(hops: int, steals: int) -> None:
    plan = planned(*iris_and(an_idle_node("loom"), waiting=1, hops=hops, stolen_from="forge"))

    assert len(plan.steals) == steals
    assert steals or kept_by(plan) == {"few_enough_hops": 1}


def test_what_its_own_free_slot_would_start_at_once_stays() -> None:
    view = a_view(a_busy_node("iris", 1, slots=2), an_idle_node("loom"))

    assert planned(view, queues(a_queue("iris", a_queued(1)))).skipped == "no busy"


def test_where_nothing_starts_everything_gains() -> None:
    stopped = a_node("iris", pending_count=2, dispatcher="stopped")
    plan = planned(a_view(stopped, an_idle_node("loom")),
                   queues(a_queue("iris", *some_queued(2))))  # fmt: skip

    assert got(plan) == {"loom": 2}


def test_a_node_that_starts_nothing_now_is_relieved_and_given_nothing() -> None:
    """As one below its floor of disk says it: its slots are empty, and none of them is free."""
    full = a_node("iris", pending_count=2, slots=2, free_slots=0)
    plan = planned(a_view(full, an_idle_node("loom")),
                   queues(a_queue("iris", *some_queued(2))))  # fmt: skip

    assert got(plan) == {"loom": 2}


def test_a_node_with_work_of_its_own_waiting_is_given_none() -> None:
    view = a_view(a_busy_node("iris", 4), a_busy_node("loom", 1, slots=2))

    assert busy_to_ask(view, SWIFT) == ()


def test_fault_a_node_that_fails_fast_drew_all_the_work_in() -> None:
    failing = an_idle_node("loom", agents=(an_agent_report("loom", state="failing"),))
    judged = Memory(no_work={"loom": Objection("work_succeeds", "the last 5 attempts failed")})

    assert planned(*iris_and(failing)).skipped == "no idle"
    assert planned(*iris_and(an_idle_node("loom")), judged).skipped == "no idle"


def test_a_refusal_is_not_asked_again_for_a_while() -> None:
    view, asked = iris_and(an_idle_node("loom"), waiting=1)

    plan = planned(view, asked, Memory(refused_s={(uid(1), "loom"): 30.0}))

    assert plan.why_kept("iris") == ["loom refused it 30s ago; we ask again in 9m"]


def test_nodes_are_asked_for_their_most_urgent_without_a_threshold() -> None:
    asked = asking(a_view(an_idle_node("loom"), a_busy_node("iris")), SWIFT, DOMAINS)

    assert asked["order"] == "most_urgent"
    assert "steal_from" not in asked
    assert asked["for"][0]["untagged_from"] == 1  # type: ignore[index,call-overload]
    assert asked["for"][0]["hops_max"] == 2  # type: ignore[index,call-overload]


# --- What no agent on its node can run ----------------------------------------------------------

def gpu_node() -> Any:
    return an_idle_node("loom", idle_s=0, agents=(an_agent_report("loom", skills=("gpu",)),))


def test_a_task_that_nobody_on_its_node_can_run_is_taken_though_a_slot_is_free_there() -> None:
    """Taken away once: with `unmet_count` left out of `free_slots_of`, iris has no surplus."""
    view = a_view(a_node("iris", pending_count=1, unmet_count=1, slots=2), gpu_node())

    plan = planned(view, queues(a_queue("iris", a_queued(1, needs=("gpu",)))))

    assert got(plan) == {"loom": 1}
    assert plan.steals[0].because == "untagged: anyone may do it; no agent on iris can run it"


def test_it_goes_before_what_its_node_starts_by_itself() -> None:
    """Taken away once: without `unfit` in `Line.here_s` nothing is worth the move."""
    view = a_view(a_node("iris", pending_count=3, unmet_count=1, slots=2), gpu_node())
    asked = queues(a_queue("iris", a_queued(1), a_queued(2), a_queued(3, needs=("gpu",))))

    assert [steal.task.uid for steal in planned(view, asked).steals] == [uid(3)]


def loom_with(*, unmet: int = 1, **fields: Any) -> Any:
    """Two free slots, and all that waits there is what no agent there can run."""
    return a_node("loom", pending_count=unmet, unmet_count=unmet, slots=2, **fields)


def part_of(plan: StealPlan, name: str) -> str:
    return {one.name: one.part for one in plan.nodes}[name]


def test_a_task_that_nobody_there_can_run_does_not_keep_work_away_from_free_slots() -> None:
    """It failed so once: nine waited on iris, loom had two free slots, and `skipped: no idle`."""
    waits = some_queued(9)
    view = a_view(a_busy_node("iris", 9), loom_with())

    plan = planned(view, queues(a_queue("iris", *waits)))

    assert got(plan) == {"loom": 3}
    assert part_of(plan, "loom") == "both"


def test_a_node_short_of_work_gives_what_it_cannot_run_and_takes_what_it_can() -> None:
    """Taken away once: where one part is all that a node has, the task for the GPU waits on."""
    gpu = an_idle_node("spark", idle_s=0, agents=(an_agent_report("spark", skills=("gpu",)),))
    view = a_view(a_busy_node("iris", 9), loom_with(), gpu)
    research = some_queued(9, skills=("arc-research",))
    asked = queues(a_queue("iris", *research), a_queue("loom", a_queued(50, needs=("gpu",))))

    plan = planned(view, asked)

    assert [(steal.task.uid, steal.busy, steal.idle) for steal in plan.steals
            if steal.busy == "loom"] == [(uid(50), "loom", "spark")]  # fmt: skip
    assert got(plan) == {"loom": 3, "spark": 1}
    assert [one.name for one in busy_to_ask(view, SWIFT)] == ["iris", "loom"]


def test_a_node_is_never_given_its_own_work() -> None:
    """What came there after its report is its own to start. Guard: `Givers._heap` without the name
    gives loom its own task.
    """
    late = a_queued(51, expected_s=5000.0)
    view = a_view(loom_with(running_count=1), an_idle_node("spark", idle_s=0))
    asked = queues(a_queue("loom", a_queued(50, needs=("gpu",)), *some_queued(9, priority=9), late))

    plan = planned(view, asked)

    assert {steal.idle for steal in plan.steals} == {"spark"}


def test_alone_it_is_not_asked_for_what_nobody_else_could_take() -> None:
    view = a_view(loom_with(), a_node("spark", running_count=1))

    plan = planned(view, {})

    assert (plan.skipped, part_of(plan, "loom")) == ("no busy", "both")
    assert [(one.node, one.rule, one.because) for one in plan.counts] == [
        ("loom", "somebody_is_idle", "no other node is idle")]  # fmt: skip
    assert busy_to_ask(view, SWIFT) == ()


def test_of_a_node_that_is_both_an_unread_queue_keeps_its_tasks_and_not_its_slots() -> None:
    view = a_view(a_busy_node("iris", 9), loom_with(), an_idle_node("spark", idle_s=0))
    unread = QueueUnseen("loom", "silent", "no answer within 10 s", "ARC-SILENT")

    plan = planned(view, {**queues(a_queue("iris", *some_queued(9))), "loom": unread})

    assert ("loom" in got(plan), part_of(plan, "loom")) == (True, "idle")
    assert [(one.rule, one.count) for one in plan.counts if one.node == "loom"] == [
        ("queue_was_read", 1)]  # fmt: skip


def test_where_one_of_its_own_waits_too_it_is_short_of_nothing() -> None:
    view = a_view(a_busy_node("iris", 9), a_node("loom", pending_count=2, unmet_count=1, slots=2))

    assert part_of(planned(view, queues(a_queue("iris", *some_queued(9)))), "loom") == "busy"
