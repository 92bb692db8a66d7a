"""What policy `arc0` plans: the seed's rules, each at its edge, and its golden night."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from arc.decisions.domains import Role
from arc.decisions.explain import StealPlan
from arc.decisions.limits import StealLimits
from arc.decisions.memory import Memory
from arc.decisions.objections import Objection
from arc.decisions.stealing import (
    asking,
    busy_to_ask,
    merged,
    plan_steals,
    still_wanting,
    wanting,
)
from arc.decisions.view import FleetView, NodeSeen, Queues, QueueUnseen

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
    an_unseen_node,
    looked_into,
    minting,
    queues,
    some_queued,
)

ARC0 = StealLimits()
PLANS = Path(__file__).parent.parent / "plans"


def planned(
    view: FleetView, asked: Queues, limits: StealLimits = ARC0, memory: Memory | None = None
) -> StealPlan:
    return plan_steals(
        view, asked, domains=DOMAINS, limits=limits, mint=minting(), memory=memory
    )


def moves(plan: StealPlan) -> list[tuple[str, str, int]]:
    return [(steal.busy, steal.idle, steal.task.priority) for steal in plan.steals]


def a_pair(count: int, idle_s: float = 240.0, **fields: Any) -> tuple[FleetView, Queues]:
    """Loom idle beside iris with so many waiting tasks, all alike."""
    tasks = some_queued(count, **fields)
    view = a_view(a_busy_node("iris", count), an_idle_node("loom", idle_s=idle_s))
    return view, queues(a_queue("iris", *tasks))


def rules_of(plan: StealPlan, node: str = "iris") -> dict[str, int]:
    return {count.rule: count.count for count in plan.counts if count.node == node}


# --- The seed's night ---------------------------------------------------------------------------


def test_the_seeds_night_moves_three_tasks_least_urgent_first_and_leaves_nine() -> None:
    """Loom idle since 03:00, iris with 12 waiting, the cycle at 03:05."""
    urgencies = [1, 3, 5, 5, 6, 6, 7, 7, 8, 9, 9, 10]
    skill = ("arc-research",)
    tasks = [a_queued(n, priority=p, skills=skill) for n, p in enumerate(urgencies, 1)]
    view = a_view(
        a_busy_node("iris", 12, written_at="2026-03-10T03:05:00.000Z"),
        a_node("loom", idle_since="2026-03-10T03:00:00.000Z",
               written_at="2026-03-10T03:05:00.000Z"),
        a_busy_node("spark", 2), a_node("forge", running_count=1),
    )  # fmt: skip

    plan = planned(view, queues(a_queue("iris", *reversed(tasks))))

    assert moves(plan) == [("iris", "loom", 10), ("iris", "loom", 9), ("iris", "loom", 9)]
    assert sum(rules_of(plan).values()) == 9
    assert golden(plan) == (PLANS / "seed_night.txt").read_text()


def golden(plan: StealPlan) -> str:
    """A plan as lines: what moves, what stays by which rule, what each node was."""
    lines = [f"steal {s.task.uid[-4:]} P{s.task.priority} {s.busy} -> {s.idle}: {s.because}"
             for s in plan.steals]  # fmt: skip
    lines += [f"kept {c.node} {c.count} {c.rule}: {c.because}" for c in plan.counts]
    for node in plan.nodes:
        said = f": {node.objection.rule}: {node.objection.because}" if node.objection else ""
        lines.append(f"node {node.name} {node.part} {node.pending}{said}")
    lines.append(f"skipped {plan.skipped} caps {', '.join(plan.caps_hit) or 'none'}")
    return "\n".join(lines) + "\n"


# --- Each rule at its edge ----------------------------------------------------------------------


def test_five_waiting_is_not_busy_and_six_gives_exactly_one() -> None:
    """Guard: with the report's count in place of the falling one, six would give three."""
    five, six = planned(*a_pair(5)), planned(*a_pair(6))

    assert (five.skipped, five.steals) == ("no busy", ())
    assert len(six.steals) == 1
    assert six.why_kept("iris") == ["iris has 5 left; we steal above 5"]


@pytest.mark.parametrize(("idle_s", "steals"), [(119.0, 0), (120.0, 3)])
def test_idle_counts_from_two_minutes_on(idle_s: float, steals: int) -> None:
    plan = planned(*a_pair(12, idle_s=idle_s))

    assert len(plan.steals) == steals
    assert plan.skipped == (None if steals else "no idle")


def test_idleness_is_what_the_node_measured_and_what_the_hub_waited_since() -> None:
    view = a_view(a_busy_node("iris", 12), an_idle_node("loom", idle_s=100, age_s=20))

    assert len(planned(view, queues(a_queue("iris", *some_queued(12)))).steals) == 3


@pytest.mark.parametrize(("priority", "steals"), [(4, 0), (5, 3), (10, 3)])
def test_only_p5_and_less_urgent_moves(priority: int, steals: int) -> None:
    plan = planned(*a_pair(12, priority=priority, skills=("arc-research",)))

    assert len(plan.steals) == steals
    assert steals or rules_of(plan) == {"low_enough_priority": 12}


@pytest.mark.parametrize(("priority", "steals"), [(7, 0), (8, 3)])
def test_untagged_work_goes_to_anyone_from_p8_on(priority: int, steals: int) -> None:
    plan = planned(*a_pair(12, priority=priority))

    assert len(plan.steals) == steals
    assert steals or rules_of(plan) == {"may_do_this_work": 12}


def test_a_stolen_task_is_not_stolen_again() -> None:
    plan = planned(*a_pair(9, stolen_from="forge", hops=1))

    assert plan.steals == ()
    assert plan.why_kept("iris") == ["already stolen once, from forge"]


def test_a_pinned_task_and_one_that_runs_stay() -> None:
    pinned, running = planned(*a_pair(9, pinned=True)), planned(*a_pair(9, state="RUNNING"))

    assert rules_of(pinned) == {"not_pinned": 9}
    assert rules_of(running) == {"still_ready": 9}


def test_no_node_gets_more_than_three_and_no_cycle_more_than_ten() -> None:
    idle = [an_idle_node(f"idle-{n}", role=Role()) for n in range(5)]
    view = a_view(a_busy_node("iris", 40), *idle)

    plan = planned(view, queues(a_queue("iris", *some_queued(40))))

    got = [sum(steal.idle == node.name for steal in plan.steals) for node in idle]
    assert got == [3, 3, 3, 1, 0]
    assert rules_of(plan) == {"cycle_has_room": 30}
    assert plan.caps_hit == ("per_cycle",)


def test_moves_of_a_sliding_interval_count_against_the_caps() -> None:
    view, asked = a_pair(12)

    assert len(planned(view, asked, memory=Memory(taken={"loom": 2})).steals) == 1
    assert planned(view, asked, memory=Memory(taken={"spark": 10})).steals == ()


def test_a_task_goes_only_where_its_needs_are_met_by_one_agent() -> None:
    def loom(*agents: tuple[str, ...]) -> NodeSeen:
        reports = tuple(an_agent_report(f"a{n}", skills=has) for n, has in enumerate(agents))
        return an_idle_node("loom", agents=reports, capabilities=("docker",))

    asked = queues(a_queue("iris", *some_queued(9, needs=("gpu", "docker", "cuda"))))
    split = planned(a_view(a_busy_node("iris", 9), loom(("gpu",), ("cuda",))), asked)
    whole = planned(a_view(a_busy_node("iris", 9), loom(("gpu", "cuda"))), asked)

    assert split.why_kept("iris") == ["loom: no single agent there has cuda, docker, gpu"]
    assert len(whole.steals) == 3


def test_a_refused_task_is_not_offered_again_to_the_node_that_refused_it() -> None:
    view, asked = a_pair(9)
    refused = {(uid(number), "loom"): 60.0 for number in range(1, 10)}

    plan = planned(view, asked, memory=Memory(refused_s=refused))
    later = planned(view, asked, memory=Memory(refused_s=dict.fromkeys(refused, 600.0)))

    assert rules_of(plan) == {"not_refused_lately": 9}
    assert len(later.steals) == 3


def test_a_refused_task_may_still_go_to_another_node_of_the_same_kind() -> None:
    view = a_view(a_busy_node("iris", 6), an_idle_node("ada", role=Role()),
                  an_idle_node("bob", role=Role()))  # fmt: skip
    asked = queues(a_queue("iris", *some_queued(6)))
    refused = {(uid(number), "ada"): 1.0 for number in range(1, 7)}

    assert moves(planned(view, asked, memory=Memory(refused_s=refused))) == [("iris", "bob", 8)]


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"state": "paused", "idle": False}, "takes_new_work"),
        ({"state": "draining", "idle": False}, "takes_new_work"),
        ({"state": "quarantined", "idle": False}, "takes_new_work"),
        ({"dispatcher": "stopped", "idle": False}, "dispatcher_runs"),
        ({"age_s": 600.1}, "fresh_report"),
        ({"running_count": 1}, "nothing_to_do"),
        ({"free_slots": 0}, "has_free_slot"),
        ({"agents": (an_agent_report("loom", state="failing"),)}, "work_succeeds"),
        ({"idle_since": "2026-03-10T04:45:00.000Z"}, "believable_times"),
        ({"idle_since": "1970-01-01T00:00:10.000Z"}, "believable_times"),
        ({"age_s": -5.0}, "believable_times"),
    ],
)
def test_only_a_healthy_idle_node_is_given_work(fields: dict[str, Any], rule: str) -> None:
    view = a_view(a_busy_node("iris", 12), a_node("loom", **fields))

    plan = planned(view, queues(a_queue("iris", *some_queued(12))))

    assert plan.skipped == "no idle"
    said = {node.name: node.objection for node in plan.nodes}["loom"]
    assert said is not None
    assert said.rule == rule
    assert rules_of(plan) == {"somebody_is_idle": 12}


def test_what_health_gives_nothing_is_given_nothing() -> None:
    view, asked = a_pair(12)
    memory = Memory(no_work={"loom": Objection("work_succeeds", "the last 5 attempts failed")})

    assert planned(view, asked, memory=memory).skipped == "no idle"


@pytest.mark.parametrize("state", ["paused", "draining", "quarantined"])
def test_a_node_that_is_held_keeps_its_queue_from_thieves(state: str) -> None:
    view = a_view(a_busy_node("iris", 12, state=state), an_idle_node("loom"))

    assert planned(view, queues(a_queue("iris", *some_queued(12)))).skipped == "no busy"


# --- Whom, and in which order -------------------------------------------------------------------


def test_a_node_that_never_does_a_domain_is_not_given_it_though_it_owns_it_too() -> None:
    role = Role(owns=("research",), never=("research",))
    view = a_view(a_busy_node("iris", 9), an_idle_node("loom", role=role))

    plan = planned(view, queues(a_queue("iris", *some_queued(9, skills=("arc-research",)))))

    assert plan.why_kept("iris") == ["loom: it never does research"]


def test_one_first_reason_is_given_where_every_node_has_its_own() -> None:
    view = a_view(a_busy_node("iris", 9), an_idle_node("forge"),
                  an_idle_node("spark"))  # fmt: skip
    tasks = some_queued(9, domain="research")

    plan = planned(view, queues(a_queue("iris", *tasks)))

    assert rules_of(plan) == {"may_do_this_work": 9}
    assert plan.why_kept("iris")[0].startswith("forge: it belongs to research; the node does")


def test_five_hundred_foreign_tasks_do_not_hide_the_one_that_may_move() -> None:
    """The original read the 20 most urgent tasks, and filtered them afterwards."""
    foreign = some_queued(500, priority=9, skills=("stacks-js",))
    right = a_queued(999, priority=5, skills=("defi-zest",))
    view = a_view(a_busy_node("iris", 501), an_idle_node("loom"))
    asked = looked_into(
        "iris", (*foreign, right), wanting(view, ARC0, DOMAINS),
        steal_from=ARC0.steal_from, limit=10,
    )  # fmt: skip

    plan = planned(view, queues(asked))

    assert [steal.task.uid for steal in plan.steals] == [right.uid]
    assert rules_of(plan) == {"may_do_this_work": 500}


def test_work_hidden_behind_a_page_for_another_node_is_asked_for_once_more() -> None:
    view = a_view(a_busy_node("iris", 51), an_idle_node("forge"), an_idle_node("loom"))
    for_loom = some_queued(50, priority=9, skills=("arc-research",))
    ready = (*for_loom, a_queued(99, priority=5, skills=("deploy",)))
    first = looked_into("iris", ready, wanting(view, ARC0, DOMAINS), steal_from=5, limit=10)

    plan = planned(view, queues(first))
    names, request = still_wanting(plan, view, queues(first), ARC0)
    again = looked_into("iris", ready, request["for"], steal_from=5, limit=10)
    second = planned(view, queues(merged(first, again)))

    assert names == ("iris",)
    assert ("iris", "forge", 5) in moves(second)
    assert sum(rules_of(second).values()) + len(second.steals) == 51


def test_tasks_beyond_the_page_are_counted_by_the_rule_that_keeps_them() -> None:
    view = a_view(a_busy_node("iris", 1000), an_idle_node("loom"))
    page = a_queue("iris", *some_queued(10), eligible=600, kept={"pinned": 100,
                   "low_enough_priority": 300}, total=1000)  # fmt: skip

    plan = planned(view, queues(page))

    assert rules_of(plan) == {
        "receiver_has_room": 597, "low_enough_priority": 300, "not_pinned": 100,
    }  # fmt: skip


def test_the_nodes_word_for_a_stolen_task_is_counted_under_ours() -> None:
    view, _ = a_pair(9)

    plan = planned(view, queues(a_queue("iris", kept={"few_enough_hops": 9})))

    assert rules_of(plan) == {"not_stolen_before": 9}


def test_the_request_asks_each_kind_of_node_once() -> None:
    view = a_view(*(an_idle_node(f"n{n}", role=Role(owns=("research",))) for n in range(50)))

    asked = asking(view, ARC0, DOMAINS)

    assert asked["steal_from"] == 5
    assert asked["for"] == [{
        "node": "n0", "domains": ["research"], "never": [], "skills": [],
        "untagged_from": 8, "hops_max": 0,
    }]  # fmt: skip


# --- The faults of the original -----------------------------------------------------------------


def test_fault_an_empty_node_was_read_as_full() -> None:
    """`parseInt(x) || 999`: nothing waiting there made a node the fullest of all."""
    view, asked = a_pair(12)

    assert {steal.idle for steal in planned(view, asked).steals} == {"loom"}


def test_fault_the_busiest_node_was_not_first() -> None:
    view = a_view(a_busy_node("ada", 7), a_busy_node("bob", 30), a_busy_node("cy", 9),
                  an_idle_node("loom"))  # fmt: skip
    asked = queues(*(a_queue(name, *some_queued(count, start, domain="research"))
                     for name, count, start in (("ada", 7, 1), ("bob", 30, 100), ("cy", 9, 200))))

    assert {steal.busy for steal in planned(view, asked).steals} == {"bob"}


def test_who_is_busiest_is_counted_anew_after_every_move() -> None:
    """Guard: without the look at `stock.left` in the heap, ada gives all three."""
    view = a_view(a_busy_node("ada", 8), a_busy_node("bob", 7), an_idle_node("loom"))
    asked = queues(a_queue("ada", *some_queued(8)), a_queue("bob", *some_queued(7, 100)))

    assert [steal.busy for steal in planned(view, asked).steals] == ["ada", "ada", "bob"]


def test_fault_three_idle_nodes_emptied_one_that_had_six() -> None:
    idle = [an_idle_node(name, role=Role()) for name in ("ada", "bob", "cy")]
    view = a_view(a_busy_node("iris", 6), *idle)

    plan = planned(view, queues(a_queue("iris", *some_queued(6))))

    assert moves(plan) == [("iris", "ada", 8)]


def test_fault_affinity_by_owner_alone_made_stealing_impossible() -> None:
    """The router sends research to its owner; only `also` lets anyone else relieve it."""
    view, asked = a_pair(12, skills=("arc-research",))
    owners = a_view(a_busy_node("iris", 12), an_idle_node("loom", role=Role(owns=("ci",))))

    assert len(planned(view, asked).steals) == 3
    assert planned(owners, asked).steals == ()


def test_fault_a_dead_nodes_idle_was_believed_for_ever() -> None:
    view = a_view(a_busy_node("iris", 12), an_idle_node("loom", age_s=12 * 3600))

    plan = planned(view, queues(a_queue("iris", *some_queued(12))))

    assert plan.skipped == "no idle"


def test_fault_a_queue_that_could_not_be_read_was_an_empty_one() -> None:
    view, _ = a_pair(12)
    unread = QueueUnseen("iris", "unknown_request", "unknown op 'pending'", "ARC-REFUSED")

    plan = planned(view, queues(unread))

    assert plan.skipped is None
    assert rules_of(plan) == {"queue_was_read": 12}
    said = {node.name: node for node in plan.nodes}["iris"]
    assert (said.part, said.objection) == (
        "out", Objection("queue_was_read", "unknown op 'pending'"))  # fmt: skip


def test_fault_the_hubs_clock_was_held_against_the_nodes_stamp() -> None:
    """Loom's clock is an hour behind: idle for a minute by its own, for 61 by ours."""
    loom = an_idle_node("loom", written_at="2026-03-10T02:45:00.000Z",
                        idle_s=0)  # fmt: skip
    behind = a_node("loom", written_at="2026-03-10T02:45:00.000Z",
                    idle_since="2026-03-10T02:44:00.000Z")  # fmt: skip
    asked = queues(a_queue("iris", *some_queued(12)))

    for node in (loom, behind):
        assert planned(a_view(a_busy_node("iris", 12), node), asked).steals == ()


def test_fault_a_machine_whose_dispatcher_had_stopped_got_work_and_was_never_relieved() -> None:
    stopped = a_busy_node("iris", 110, dispatcher="stopped")
    view = a_view(stopped, an_idle_node("loom"), a_node("spark", dispatcher="stopped"))

    plan = planned(view, queues(a_queue("iris", *some_queued(110))))

    assert moves(plan) == [("iris", "loom", 8)] * 3


def test_fault_one_suspended_node_stopped_the_whole_fleet() -> None:
    view, asked = a_pair(12)
    suspended = an_unseen_node("forge", rule="suspended", because="suspended by lukas")

    plan = planned(a_view(*view.seen, suspended), asked)

    assert len(plan.steals) == 3
    assert [node.objection for node in plan.nodes if node.name == "forge"] == [
        Objection("node_answers", "suspended by lukas")]  # fmt: skip


def test_without_a_pair_no_queue_is_asked() -> None:
    assert busy_to_ask(a_view(a_busy_node("iris", 12)), ARC0) == ()
    assert busy_to_ask(a_view(an_idle_node("loom")), ARC0) == ()
    assert [one.name for one in busy_to_ask(a_pair(12)[0], ARC0)] == ["iris"]
