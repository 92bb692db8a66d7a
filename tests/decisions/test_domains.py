"""Whose work a task is: by its own word, by its skills, by what it sounds like, or nobody's."""

from __future__ import annotations

from typing import Any

import pytest

from arc.decisions.domains import (
    Belonging,
    Domain,
    Role,
    belongs_to,
    guessed,
    lacks,
    may_do,
    nobody_has,
    powers_of,
    untagged,
)
from arc.decisions.view import NodeSeen

from ..fleet_builders import DOMAINS, a_node, a_queued, an_agent_report


def rule(role: Role, anyone_from: int = 8, **task: Any) -> str | None:
    found = may_do(a_queued(1, **task), role, DOMAINS, anyone_from=anyone_from)
    return found.rule if found else None


@pytest.mark.parametrize(
    ("task", "belonging"),
    [
        ({"domain": "research", "skills": ("ci",)}, Belonging(("research",), "explicit")),
        ({"skills": ("ci", "deploy")}, Belonging(("integrations", "infrastructure"), "skills")),
        ({"skills": ("unheard-of",), "subject": "Research: x"}, Belonging((), "none")),
        ({"subject": "Research: a thing"}, Belonging(("research",), "guessed")),
        ({"subject": "research: in small letters"}, Belonging(("research",), "guessed")),
        ({"subject": "read this PAPER, please"}, Belonging(("research",), "guessed")),
        ({"subject": "buy paperclips"}, Belonging((), "none")),
        ({"subject": "tidy up"}, Belonging((), "none")),
    ],
)
def test_a_task_belongs_where_the_first_way_says(
    task: dict[str, object], belonging: Belonging
) -> None:
    assert belongs_to(a_queued(1, **task), DOMAINS) == belonging


def test_the_longest_beginning_wins_and_words_come_after_beginnings() -> None:
    domains = (Domain("a", prefix=("Fix",), words=("log",)), Domain("b", prefix=("Fix docs",)))

    assert guessed("fix docs of the log", domains) == "b"
    assert guessed("Fix it", domains) == "a"
    assert guessed("the log is full", domains) == "a"
    assert guessed("the blog", domains) is None
    assert guessed("anything", ()) is None


def test_a_guess_tags_nothing() -> None:
    assert untagged(a_queued(1, subject="Research: a thing"))
    assert not untagged(a_queued(1, skills=("x",)))
    assert not untagged(a_queued(1, domain="research"))


@pytest.mark.parametrize("how", [{"domain": "research"}, {"skills": ("arc-research",)},
                                 {"subject": "Research: x", "priority": 5}])  # fmt: skip
def test_work_of_a_domain_needs_it_in_owns_or_also(how: dict[str, Any]) -> None:
    assert rule(Role(owns=("research",)), **how) is None
    assert rule(Role(also=("research",)), **how) is None
    assert rule(Role(owns=("protocol",)), **how) == "may_do_this_work"


def test_never_wins_over_everything() -> None:
    never = Role(owns=("research",), also=("research",), never=("research",))

    assert rule(never, domain="research") == "never_this_domain"
    assert rule(never, subject="Research: x", priority=10) == "never_this_domain"
    both = Role(owns=("integrations",), never=("infrastructure",))
    assert rule(both, skills=("ci", "deploy")) == "never_this_domain"


def test_a_task_of_two_domains_goes_to_whoever_does_one_of_them() -> None:
    assert rule(Role(also=("infrastructure",)), skills=("ci", "deploy")) is None


@pytest.mark.parametrize(("priority", "said"), [(7, "may_do_this_work"), (8, None), (10, None)])
def test_untagged_work_goes_to_anyone_from_the_threshold_on(
    priority: int, said: str | None
) -> None:
    assert rule(Role(), priority=priority) == said
    assert rule(Role(), priority=priority, subject="Research: x") == said


def test_skills_that_no_domain_has_are_nobodys_however_little_urgent() -> None:
    found = may_do(a_queued(1, skills=("zest-",), priority=10), Role(owns=("research",)), DOMAINS,
                   anyone_from=1)  # fmt: skip

    assert found is not None
    assert found.because == "no domain has any of its skills (zest-)"


def test_needs_are_met_by_one_agent_that_works_and_its_machine() -> None:
    reports = (
        an_agent_report("a", skills=("gpu",)), an_agent_report("b", skills=("cuda",)),
        an_agent_report("c", skills=("gpu", "cuda"), paused=True),
        an_agent_report("d", skills=("gpu", "cuda"), state="failing"),
    )  # fmt: skip
    powers = powers_of(a_node("iris", agents=reports, capabilities=("docker",)))

    assert lacks(("gpu", "docker"), powers) is None
    assert lacks(("gpu", "cuda"), powers) == "no single agent there has cuda, gpu"
    assert lacks(("gpu", "tpu"), powers) == "nothing there has tpu"
    assert lacks((), ()) is None


def able(name: str, *skills: str, **agent: Any) -> NodeSeen:
    return a_node(name, agents=(an_agent_report(name, skills=skills, **agent),))


@pytest.mark.parametrize(
    ("nodes", "unseen", "says"),
    [
        ((able("iris"), able("loom")), (), "no node of the fleet has cuda, gpu"),
        ((able("iris", "gpu"), able("loom")), (), "no node of the fleet has cuda"),
        ((able("iris", "gpu"), able("loom", "cuda")), (),
         "no single agent of the fleet has cuda, gpu"),
        ((able("iris"), able("loom", "cuda", "gpu")), ("forge",), None),
        ((able("iris"), able("loom", "cuda", "gpu", paused=True)), (), None),
        ((able("iris"), able("loom", "cuda", "gpu", state="failing")), (), None),
        ((a_node("iris", agents=(), skills=("cuda",), capabilities=("gpu",)),), (), None),
        ((able("iris", "gpu"),), ("spark", "forge"),
         "no node that was seen has cuda (not seen: forge, spark)"),
        ((able("iris", "gpu"),), ("f", "e", "d", "c", "b"),
         "no node that was seen has cuda (not seen: b, c, d, e, …)"),
        ((), ("forge",), None),
    ],
)  # fmt: skip
def test_a_need_is_nobodys_only_where_no_agent_has_it_whatever_it_does_now(
    nodes: tuple[NodeSeen, ...], unseen: tuple[str, ...], says: str | None
) -> None:
    assert nobody_has(("gpu", "cuda"), nodes, unseen) == says


def test_who_needs_nothing_is_never_nobodys() -> None:
    assert nobody_has((), (able("iris"),)) is None
