"""Why the router keeps a task: every change that is named makes the router send it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arc.config import parse_fleet
from arc.decisions.changes import Situation
from arc.decisions.domains import Role
from arc.decisions.limits import RouteLimits
from arc.decisions.view import NodeSeen, NodeUnseen, QueuedTask
from arc.decisions.why_routes import (
    CHANGES_MAX,
    RouteSituation,
    comes_by_itself,
    route_ways,
    who_has,
)

from ..fleet_builders import DOMAINS, a_node, a_queued, a_view, an_agent_report, an_unseen_node
from .fleets import fleets, tasks_by_chance

FLEET = (a_node("iris"), a_node("loom"), a_node("spark"))


def the_router(*nodes: NodeSeen | NodeUnseen, **limits: Any) -> RouteSituation:
    return RouteSituation(Situation(a_view(*nodes), {}, DOMAINS), RouteLimits(**limits))


def told(task: QueuedTask, routing: RouteSituation) -> list[tuple[str, list[str]]]:
    return [(way.to, [change.says for change in way.changes]) for way in route_ways(task, routing)]


def test_a_skill_of_no_domain_is_answered_by_the_domains_that_could_have_it() -> None:
    ways = route_ways(a_queued(1, skills=("xyz",)), the_router(*FLEET))

    assert [(way.to, way.changes[0].command) for way in ways] == [
        ("iris", "fleet.yaml: add xyz to domains.research.skills"),
        ("loom", "fleet.yaml: add xyz to domains.integrations.skills"),
        ("spark", "fleet.yaml: add xyz to domains.protocol.skills"),
    ]  # fmt: skip


def newcomers(**node: Any) -> RouteSituation:
    """One node without any role, in a fleet without domains."""
    here = replace(a_node("here", **node), role=Role())
    return RouteSituation(Situation(a_view(here), {}, ()), RouteLimits())


def test_where_there_is_no_domain_at_all_a_new_one_is_named_with_its_owner() -> None:
    """Seen to fail: the newcomer's first task had no way to any node."""
    (way,) = route_ways(a_queued(1, skills=("ops",)), newcomers())

    assert (way.to, [change.says for change in way.changes]) == (
        "here", ["fleet.yaml had a domain ops with the skill ops", "here owned ops"])
    assert [change.command for change in way.changes] == [
        "fleet.yaml: domains: {ops: {skills: [ops]}}", "arc nodes edit here --owns ops"]
    (way,) = route_ways(a_queued(1, domain="ops"), newcomers())
    assert way.changes[0].command == "fleet.yaml: domains: {ops: {skills: [ops]}}"


def test_beside_other_domains_a_new_one_is_an_entry_and_no_second_section() -> None:
    """Seen to fail: pasted, the line was `domains stands here twice`."""
    here = replace(a_node("here"), role=Role())
    routing = RouteSituation(Situation(a_view(here), {}, DOMAINS), RouteLimits())
    (way,) = route_ways(a_queued(1, skills=("ops",)), routing)

    assert way.changes[0].command == "fleet.yaml: add below domains: ops: {skills: [ops]}"


@pytest.mark.parametrize(("skill", "domains"), [
    ("C++ build", '{c-build: {skills: ["C++ build"]}}'), ("true", None), ("##", None),
    ("42", None), ("x" * 64, f"{{{'x' * 32}: {{skills: [\"{'x' * 64}\"]}}}}"),
])  # fmt: skip
def test_a_new_domain_has_a_name_that_fleet_yaml_takes(skill: str, domains: str | None) -> None:
    ways = route_ways(a_queued(1, skills=(skill,)), newcomers())

    assert [one.changes[0].command for one in ways] == (
        [f"fleet.yaml: domains: {domains}"] if domains else [])
    for one in ways:
        text = f"domains: {domains}\nnodes: [{{name: here, local: true, owns: "
        owned = f"[{one.changes[1].value}]}}]\n"
        (domain,) = parse_fleet(text + owned, Path("/fleet.yaml")).domains
        assert (domain.name, domain.skills) == (one.changes[0].key, (skill,))


def test_a_node_without_a_role_gets_the_domain_that_is_called_like_the_skill() -> None:
    fleet = (*FLEET[1:], replace(a_node("here"), role=Role()))
    found = told(a_queued(1, skills=("research",)), the_router(*fleet))

    assert ("here", ["research were a skill of research", "here also did research"]) in found


def test_a_need_that_nobody_has_is_named_with_who_could_be_given_it() -> None:
    task, routing = a_queued(1, skills=("arc-research",), needs=("gpu",)), the_router(*FLEET)

    assert who_has(task, routing) == (
        "no node of the fleet has gpu; give it to an agent's skills on iris or loom or spark")
    assert told(task, routing)[0] == ("iris", ["an agent on iris had gpu"])


def test_a_need_that_somebody_else_has_is_not_said_to_be_nowhere() -> None:
    able = a_node("spark", agents=(an_agent_report("spark", skills=("gpu",)),))
    task, routing = a_queued(1, skills=("arc-research",), needs=("gpu",)), the_router(*FLEET[:2],
                                                                                      able)

    assert who_has(task, routing) == ""
    assert ("spark", ["spark also did research"]) in told(task, routing)


def test_a_domain_that_nobody_does_is_answered_by_who_could() -> None:
    task = a_queued(1, skills=("deploy",))
    routing = the_router(a_node("iris"), a_node("spark"), an_unseen_node("forge"))

    assert told(task, routing) == [
        ("iris", ["iris also did infrastructure"]),
        ("spark", ["spark also did infrastructure", "spark were allowed infrastructure"]),
    ]  # fmt: skip


def test_a_domain_that_fleet_yaml_does_not_know_is_answered_at_the_task() -> None:
    task = a_queued(1, domain="reserch")

    way = route_ways(task, the_router(a_node("iris")))[0]
    assert way.changes[0].command == f"arc tasks set {task.uid} domain=research"


def test_a_node_that_stands_still_is_answered_by_setting_it_right() -> None:
    task = a_queued(1, skills=("arc-research",))
    paused = a_node("iris", state="paused", dispatcher="stopped")

    assert told(task, the_router(paused)) == [
        ("iris", ["iris were active, not paused", "the dispatcher of iris ran"])]  # fmt: skip


def test_what_a_person_or_fleet_yaml_keeps_at_the_hub_is_let_go_by_them() -> None:
    pinned, urgent = a_queued(1, skills=("arc-research",), pinned=True), a_queued(2, priority=1)

    assert told(pinned, the_router(*FLEET)) == [("iris", ["it were not pinned"])]
    assert told(urgent, the_router(*FLEET, keep=(1, 2))) == [
        ("iris", ["router.keep had no P1"])]  # fmt: skip


def test_what_goes_to_the_fallback_by_itself_needs_nobody() -> None:
    routing = the_router(*FLEET, fallback="spark", fallback_after=2)
    ways = route_ways(a_queued(1, skills=("xyz",)), routing)

    assert (ways[0].to, comes_by_itself(ways)) == ("spark", True)
    assert ways[0].changes[0].says == "nobody has wanted it for 2 cycles"
    assert not comes_by_itself(ways[1:])


@settings(max_examples=60, deadline=None)
@given(fleets(), tasks_by_chance(900, 1), st.sampled_from([(), (1, 2, 8)]), st.booleans())
def test_every_way_that_is_told_makes_the_router_send_it(
    fleet: tuple[Situation, Any], tasks: list[QueuedTask], keep: tuple[int, ...], patient: bool
) -> None:
    """Guard: told untried, the ways of nodes that fail or have no agent fail here."""
    limits = RouteLimits(keep=keep, fallback="ada" if patient else None)
    routing = RouteSituation(fleet[0], limits)
    for task in tasks:
        ways = route_ways(task, routing)
        for way in ways:
            assert routing.goes_to(task, way.changes) == way.to
            assert len(way.changes) <= CHANGES_MAX
            assert not any(one.to == way.to and set(one.changes) < set(way.changes)
                           for one in ways)  # fmt: skip


def test_a_node_that_never_touches_its_only_domain_is_no_node_for_a_new_skill() -> None:
    both = replace(a_node("iris"), role=Role(owns=("research",), never=("research",)))

    assert told(a_queued(1, skills=("xyz",)), the_router(both)) == []
