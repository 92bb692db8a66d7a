"""What waits with the hub and is nobody's work by fleet.yaml, told once for each reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arc.decisions.changes import Situation
from arc.decisions.domains import Role
from arc.decisions.limits import RouteLimits
from arc.decisions.nobodys_work import nobodys_work
from arc.decisions.view import NodeSeen, QueuedTask
from arc.decisions.why_routes import RouteSituation

from ..fleet_builders import DOMAINS, a_node, a_queued, a_view
from .fleets import roles, tasks_by_chance

TWO = {"iris": Role(owns=("research",)), "loom": Role(also=("protocol",))}
NO_SKILL = "no domain of fleet.yaml has one of its skills: "


def told(*tasks: QueuedTask, nodes: dict[str, Role] | None = None, **limits: Any) -> list[Any]:
    found = nobodys_work(tasks, DOMAINS, TWO if nodes is None else nodes, RouteLimits(**limits))
    return [(one.because, one.first, one.count) for one in found]


def test_tasks_of_one_reason_are_one_line_with_the_first_of_them() -> None:
    tasks = [a_queued(1, skills=("ops",)), a_queued(2, skills=("deploy",)),
             a_queued(3, skills=("ops",), priority=1), a_queued(4, domain="reserch"),
             a_queued(5, subject="Ops: restart")]  # fmt: skip
    nobody = "no node owns {}, and none has it in also".format
    assert told(*tasks) == [
        (NO_SKILL + "ops", tasks[0].uid, 2), (nobody("infrastructure"), tasks[1].uid, 2),
        (nobody("reserch"), tasks[3].uid, 1)]  # fmt: skip


@pytest.mark.parametrize("task", [
    a_queued(1), a_queued(1, skills=("stacks-js",)), a_queued(1, domain="research"),
    a_queued(1, skills=("ops",), pinned=True), a_queued(1, skills=("ops",), priority=2),
    a_queued(1, skills=("ops",), ended_elsewhere="COMPLETED on iris"),
])  # fmt: skip
def test_what_somebody_does_or_a_person_keeps_is_not_told(task: QueuedTask) -> None:
    assert told(task, keep=(2,)) == []


def test_what_the_fallback_will_get_waits_for_nobody() -> None:
    task = a_queued(1, skills=("ops",))
    assert told(task, fallback="iris") == told(task, nodes={}) == []
    assert len(told(task, fallback="gone")) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(roles, min_size=1, max_size=4), tasks_by_chance(900, 1))
def test_the_router_sends_nothing_of_it_though_every_node_were_well(
    some: list[Role], tasks: list[QueuedTask]
) -> None:
    """And what it keeps from such nodes by `may_do_this_work` is told."""
    nodes: list[NodeSeen] = [a_node(f"n{n}", role=role) for n, role in enumerate(some)]
    routing = RouteSituation(Situation(a_view(*nodes), {}, DOMAINS), RouteLimits())
    for task in tasks:
        found = nobodys_work([task], DOMAINS, {one.name: one.role for one in nodes}, RouteLimits())
        kept = [one.objection for one in routing.plan(task).kept]
        said = [one.because for one in kept if one.rule == "may_do_this_work"]
        assert said == [one.because for one in found]
