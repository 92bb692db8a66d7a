"""Routing: the hub's own tasks go to whose work they are, and each that stays has one reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc.decisions.domains import Domain, Role, belongs_to
from arc.decisions.explain import RoutePlan
from arc.decisions.failing import NodeFactsSeen
from arc.decisions.limits import RouteLimits
from arc.decisions.routing import plan_routes
from arc.decisions.view import FleetView, NodeSeen, NodeUnseen, Queue, QueuedTask, QueueUnseen
from tests.fleet_builders import (
    DOMAINS,
    ROLES,
    a_busy_node,
    a_node,
    a_queue,
    a_queued,
    a_view,
    an_agent_report,
    an_unseen_node,
    minting,
    some_queued,
)

PROTOCOL, RESEARCH = ("clarity",), ("arc-research",)


def routes_of(
    view: FleetView,
    *tasks: QueuedTask,
    unclaimed: dict[str, int] | None = None,
    facts: dict[str, NodeFactsSeen] | None = None,
    **limits: Any,
) -> RoutePlan:
    return plan_routes(
        view, a_queue("inbox", *tasks), domains=DOMAINS,
        limits=RouteLimits(**limits), mint=minting(), unclaimed=unclaimed or {}, facts=facts,
    )  # fmt: skip


def going(plan: RoutePlan) -> list[str]:
    return [route.idle for route in plan.routes]


def reasons(plan: RoutePlan) -> list[str]:
    return [kept.objection.rule for kept in plan.kept]


def everybody() -> FleetView:
    return a_view(*map(a_node, ROLES))


# --- Whose work it is ---------------------------------------------------------------------------


def test_work_goes_to_the_owner_of_its_domain() -> None:
    plan = routes_of(everybody(), a_queued(1, skills=PROTOCOL), a_queued(2, domain="research"))

    assert going(plan) == ["spark", "iris"]
    assert plan.routes[0].because == "spark owns protocol (skills)"
    assert (plan.routes[0].busy, plan.routes[0].why) == ("inbox", "routed")


def test_a_guessed_domain_sends_work_to_its_owner() -> None:
    assert going(routes_of(everybody(), a_queued(1, subject="Ops: rotate the logs"))) == ["forge"]


def test_without_the_owner_it_goes_to_who_also_does_it() -> None:
    view = a_view(a_node("loom"), a_node("spark"), an_unseen_node("iris"))

    assert going(routes_of(view, a_queued(1, skills=RESEARCH))) == ["loom"]


def test_untagged_work_goes_to_the_least_loaded_whatever_its_priority() -> None:
    view = a_view(a_busy_node("iris", 3), a_busy_node("forge", 1), a_busy_node("loom", 2))

    assert going(routes_of(view, a_queued(1, priority=3))) == ["forge"]


def test_what_is_running_and_what_is_held_counts_as_load() -> None:
    """The owner's waiting tasks alone would make all three look alike."""
    view = a_view(a_node("forge", running_count=1, slots=2),
                  a_node("iris", counts={"HELD": 1}), a_node("loom"))  # fmt: skip

    assert going(routes_of(view, *some_queued(2))) == ["loom", "forge"]


def test_a_node_never_gets_what_it_never_does_not_even_as_the_fallback() -> None:
    view = a_view(a_node("spark"))
    plan = routes_of(view, a_queued(1, skills=("deploy",)), unclaimed={a_queued(1).uid: 9},
                     fallback="spark")  # fmt: skip

    assert going(plan) == []
    assert plan.kept[0].objection.rule == "never_this_domain"


def test_needs_are_met_by_the_receiver() -> None:
    view = a_view(a_node("iris"), a_node("loom", capabilities=("gpu",), pending_count=7))
    plan = routes_of(view, a_queued(1, needs=("gpu",)), a_queued(2, needs=("tpu",)))

    assert going(plan) == ["loom"]
    assert reasons(plan) == ["needs_are_met"]


def test_skills_that_no_domain_names_are_nobodys_work_and_said_so() -> None:
    """The original's prefix table matched nothing of what there was; nothing said so."""
    plan = routes_of(everybody(), a_queued(1, skills=("knitting",)))

    assert plan.kept[0].objection.because == (
        "no domain of fleet.yaml has one of its skills: knitting"
    )


# --- How full a node may get ---------------------------------------------------------------------


def test_an_empty_node_is_not_read_as_full() -> None:
    """The original read a count of 0 as 999: an empty machine never got anything."""
    view = a_view(a_node("iris", pending_count=0), a_busy_node("loom", 1))
    plan = routes_of(view, *some_queued(2))

    assert going(plan) == ["iris", "iris"]


@pytest.mark.parametrize("unmet", [0, 19])
@pytest.mark.parametrize(("load", "goes"), [(19, ["iris"]), (20, [])])
def test_at_its_hard_load_a_node_gets_nothing(load: int, goes: Any, unmet: int) -> None:
    """Also where nobody there can run what waits: whoever keeps it keeps a queue of that length."""
    view = a_view(a_node("iris", pending_count=load, unmet_count=unmet))
    plan = routes_of(view, a_queued(1))

    assert going(plan) == goes
    assert reasons(plan) == ([] if goes else ["load_below_hard"])


@pytest.mark.parametrize(("load", "goes"), [(11, "iris"), (12, "loom")])
def test_at_its_soft_load_the_owner_is_spared_while_somebody_else_may(load: int, goes: Any) -> None:
    view = a_view(a_node("iris", pending_count=load), a_node("loom", pending_count=3))

    assert going(routes_of(view, a_queued(1, skills=RESEARCH))) == [goes]


def test_above_their_soft_load_the_owner_still_comes_first() -> None:
    view = a_view(a_node("iris", pending_count=15), a_node("loom", pending_count=13))

    assert going(routes_of(view, a_queued(1, skills=RESEARCH))) == ["iris"]


def test_what_the_plan_gives_counts_at_once() -> None:
    view = a_view(a_node("iris", pending_count=18))
    plan = routes_of(view, *some_queued(5))

    assert going(plan) == ["iris", "iris"]
    assert reasons(plan) == ["load_below_hard"] * 3


def test_a_full_batch_leaves_the_rest_for_the_next_cycle() -> None:
    plan = routes_of(everybody(), *some_queued(5), batch=3)

    assert len(plan.routes) == 3
    assert reasons(plan) == ["batch_has_room"] * 2
    assert plan.unclaimed == {}


def test_who_nobody_may_take_says_so_though_the_batch_is_full() -> None:
    tasks = (*some_queued(2), a_queued(3, skills=("knitting",)))

    assert reasons(routes_of(everybody(), *tasks, batch=1)) == [
        "batch_has_room", "may_do_this_work",
    ]  # fmt: skip


# --- What never leaves, and who gets nothing -----------------------------------------------------


@pytest.mark.parametrize(
    ("task", "rule"),
    [
        (a_queued(1, priority=1), "not_kept_at_the_hub"),
        (a_queued(1, pinned=True), "not_pinned"),
        (a_queued(1, state="ESCROW"), "still_ready"),
    ],
)
def test_what_stays_at_the_hub_stays_by_its_own_rule(task: QueuedTask, rule: str) -> None:
    assert reasons(routes_of(everybody(), task, keep=(1, 2))) == [rule]


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"age_s": 600.5}, "fresh_report"),
        ({"dispatcher": "stopped"}, "dispatcher_runs"),
        ({"state": "paused"}, "takes_new_work"),
        ({"state": "draining"}, "takes_new_work"),
        ({"state": "drained"}, "takes_new_work"),
        ({"state": "quarantined"}, "takes_new_work"),
        ({"slots": 0}, "has_an_agent"),
        ({"agents": (an_agent_report("iris", paused=True),)}, "has_an_agent"),
        ({"agents": (an_agent_report("iris", paused=True, missing="there is no program x here"),)},
         "has_an_agent"),
    ],
)
def test_a_node_that_cannot_work_gets_nothing(fields: dict[str, Any], rule: str) -> None:
    """The original pushed 110 tasks to machines that answered while their dispatcher was stopped.

    Each guard was taken out of `node_is_out` once; the case of that guard failed.
    """
    plan = routes_of(a_view(a_node("iris", **fields)), a_queued(1), a_queued(2, skills=RESEARCH))

    assert going(plan) == []
    assert reasons(plan) == [rule, rule]


def test_a_node_that_fails_fast_attracts_no_work() -> None:
    """It is always free; without this rule it draws everything and breaks everything."""
    facts = {"iris": NodeFactsSeen(ended=4, failed=3)}
    plan = routes_of(a_view(a_node("iris"), a_busy_node("loom", 5)), a_queued(1), facts=facts)

    assert going(plan) == ["loom"]
    assert [(one.name, one.part) for one in plan.nodes] == [("iris", "out"), ("loom", "takes")]


def test_a_node_that_was_not_seen_is_no_empty_node() -> None:
    plan = routes_of(a_view(an_unseen_node("iris")), a_queued(1))

    assert plan.kept[0].objection.because == "iris: no answer within 10 s"
    assert plan.nodes[0].pending is None


def test_a_reason_that_a_link_gave_names_its_node_once() -> None:
    """Errors of links begin with their node; plans put the name in front of what has none."""
    unseen = an_unseen_node("iris", because="iris: nobody listens at iris.lan:22")
    plan = routes_of(a_view(unseen), a_queued(1))

    assert plan.kept[0].objection.because == "iris: nobody listens at iris.lan:22"


def test_one_suspended_node_stops_only_itself() -> None:
    """In the original one suspended machine switched every fleet sensor off."""
    view = a_view(an_unseen_node("iris", rule="suspended"), a_node("loom"))

    assert going(routes_of(view, a_queued(1))) == ["loom"]


def test_the_reason_is_that_of_the_node_nearest_to_the_work() -> None:
    view = a_view(a_node("spark", dispatcher="stopped"), a_node("iris"), a_node("loom"))
    plan = routes_of(view, a_queued(1, skills=PROTOCOL))

    assert plan.kept[0].objection.because == "spark: its daemon does not run"


# --- Unclaimed work ------------------------------------------------------------------------------


def test_after_two_cycles_that_nobody_wanted_it_the_fallback_takes_a_task() -> None:
    view, task = a_view(a_node("forge"), a_node("spark")), a_queued(1, skills=RESEARCH)
    unclaimed: dict[str, int] = {}
    gone: list[list[str]] = []
    for _ in range(3):
        plan = routes_of(view, task, unclaimed=unclaimed, fallback="forge")
        unclaimed = plan.unclaimed
        gone.append(going(plan))

    assert gone == [[], [], ["forge"]]
    assert unclaimed == {}


def test_waiting_for_a_turn_is_not_being_unwanted() -> None:
    tasks = some_queued(2)
    plan = routes_of(everybody(), *tasks, batch=1, unclaimed={tasks[1].uid: 1})

    assert plan.unclaimed == {tasks[1].uid: 1}


def test_a_queue_that_cannot_be_read_is_not_an_empty_queue() -> None:
    """The original discarded the error of its query and took the queue for empty."""
    plan = plan_routes(
        everybody(), QueueUnseen("inbox", "silent", "no answer in 10 s"), domains=DOMAINS,
        limits=RouteLimits(), mint=minting(), unclaimed={"x": 1},
    )  # fmt: skip

    assert plan.nodes[0].name == "inbox"
    assert plan.nodes[0].objection is not None
    assert plan.nodes[0].objection.rule == "silent"
    assert plan.unclaimed == {"x": 1}


# --- Late binding --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({"slots": 2}, 3),
        ({"slots": 2, "running_count": 2}, 1),
        ({"slots": 2, "running_count": 2, "pending_count": 1}, 0),
        ({"slots": 2, "running_count": 1, "counts": {"HELD": 1}}, 1),
        ({"slots": 2, "pending_count": 2, "unmet_count": 2}, 3),  # what nobody there can run
    ],
)
def test_under_swift_a_node_gets_what_it_can_start_and_one_to_follow(
    fields: dict[str, Any], number: int
) -> None:
    plan = routes_of(a_view(a_node("iris", **fields)), *some_queued(5), policy="swift")

    assert len(plan.routes) == number
    assert reasons(plan) == ["late_binding"] * (5 - number)
    assert plan.unclaimed == {}


def test_under_swift_a_slot_that_is_free_goes_before_the_owner() -> None:
    view = a_view(a_node("iris", running_count=1), a_node("loom"))

    assert going(routes_of(view, a_queued(1, skills=RESEARCH), policy="swift")) == ["loom"]
    assert going(routes_of(view, a_queued(1, skills=RESEARCH), policy="arc0")) == ["iris"]


# --- Whatever the fleet looks like ---------------------------------------------------------------

ODD: dict[int, dict[str, Any]] = {
    1: {"age_s": 700.0}, 2: {"state": "paused"}, 3: {"dispatcher": "stopped"},
}  # fmt: skip
SKILLS = st.sampled_from([(), PROTOCOL, RESEARCH, ("deploy",), ("knitting",), ("clarity", "ci")])


@st.composite
def fleets(draw: st.DrawFn) -> FleetView:
    nodes: list[NodeSeen | NodeUnseen] = []
    for name in ROLES:
        kind = draw(st.integers(0, 9))
        if kind == 0:
            nodes.append(an_unseen_node(name))
            continue
        slots = draw(st.integers(0, 3))
        running = draw(st.integers(0, slots))
        nodes.append(a_node(name, slots=slots, running_count=running, **ODD.get(kind, {}),
                            pending_count=draw(st.integers(0, 22))))  # fmt: skip
    return a_view(*nodes)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[QueuedTask, ...]:
    return tuple(
        a_queued(
            number, skills=draw(SKILLS), priority=draw(st.integers(1, 10)),
            pinned=draw(st.integers(0, 3)) == 0,
            subject=draw(st.sampled_from(["work", "Research: x", "Ops: y"])),
        )
        for number in range(draw(st.integers(0, 25)))
    )


LIMITS = st.builds(
    RouteLimits, policy=st.sampled_from(["arc0", "swift"]), batch=st.integers(0, 12),
    soft=st.integers(0, 12), hard=st.integers(12, 20), keep=st.sampled_from([(), (1, 2)]),
    fallback=st.sampled_from([None, "iris", "nobody"]),
)  # fmt: skip


@given(view=fleets(), some=tasks(), limits=LIMITS, behind=st.integers(0, 5))
def test_no_plan_breaks_a_limit_and_every_task_has_one_reason(
    view: FleetView, some: tuple[QueuedTask, ...], limits: RouteLimits, behind: int
) -> None:
    queue = Queue("inbox", some, {"pinned": 2}, len(some) + behind, len(some) + behind + 2)
    unclaimed = {task.uid: 2 for task in some[::3]}
    plan, again = (
        plan_routes(view, queue, domains=DOMAINS, limits=limits, mint=minting(),
                    unclaimed=unclaimed) for _ in range(2)
    )  # fmt: skip

    assert plan == again
    assert len(plan.routes) <= limits.batch
    moved, stay = [one.task.uid for one in plan.routes], [one.task.uid for one in plan.kept]
    assert sorted(moved + stay) == [task.uid for task in some]
    assert sum(count.count for count in plan.counts) + len(moved) == queue.total
    given_to = Counter(going(plan))
    for name, number in given_to.items():
        node = view.node(name)
        assert isinstance(node, NodeSeen)
        report = node.report
        assert report.state == "active"
        assert report.dispatcher == "running"
        assert report.slots
        assert node.age_s <= limits.stale_after_s
        assert report.pending_count + report.running_count + number <= limits.hard
        if limits.policy == "swift":
            assert report.pending_count + number <= report.free_slots + 1
    for route in plan.routes:
        names = belongs_to(route.task, DOMAINS).names
        assert not set(names) & set(ROLES[route.idle].never)
        assert route.task.priority not in limits.keep
        assert not route.task.pinned


@given(view=fleets(), policy=st.sampled_from(["arc0", "swift"]))
def test_an_empty_healthy_node_is_always_the_most_attractive(view: FleetView, policy: str) -> None:
    """Of two nodes that stand as near to the work, and for work that anyone may do."""
    empty = a_node("zed", role=Role(owns=("research",)))
    view = a_view(*view.seen, *view.unseen, empty)
    others = {node.name for node in view.seen
              if not (node.report.pending_count or node.report.running_count)}  # fmt: skip
    plan = routes_of(view, a_queued(1), policy=policy)

    assert plan.routes[0].idle in others


@given(view=fleets(), some=tasks())
def test_a_task_that_nobody_does_leaves_the_others_alone(
    view: FleetView, some: tuple[QueuedTask, ...]
) -> None:
    """One odd task stops only itself."""
    odd = a_queued(99, domain="nowhere")
    plain = [(one.task, one.idle) for one in routes_of(view, *some).routes]
    with_odd = [(one.task, one.idle) for one in routes_of(view, odd, *some).routes]

    assert with_odd == plain


def test_a_domain_that_two_nodes_own_is_shared_by_load() -> None:
    shared = (Domain("x", skills=("x",)),)
    view = a_view(*(a_node(name, role=Role(owns=("x",))) for name in ("a", "b")))
    plan = plan_routes(view, a_queue("inbox", *some_queued(4, skills=("x",))), domains=shared,
                       limits=RouteLimits(), mint=minting(), unclaimed={})  # fmt: skip

    assert going(plan) == ["a", "b", "a", "b"]
