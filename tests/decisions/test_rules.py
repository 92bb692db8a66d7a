"""The rules by themselves: each has a reason, a page, and a place in a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from arc.decisions.answers import WhyNode, WhyTask
from arc.decisions.changes import Situation
from arc.decisions.domains import Role, belongs_to, powers_of
from arc.decisions.limits import StealLimits
from arc.decisions.reckoning import RULES as SAID_BY_PLANS
from arc.decisions.rules import (
    RULES,
    STEAL_RULES,
    SWIFT_RULES,
    Gain,
    Move,
    objections,
)
from arc.decisions.why import why_node, why_task
from arc.explaining import FOLDER, sections

from ..fleet_builders import (
    DOMAINS,
    a_busy_node,
    a_queue,
    a_queued,
    a_view,
    an_idle_node,
    queues,
)


def a_move(task: dict[str, Any] | None = None, **fields: Any) -> Move:
    """Loom, idle, would get an untagged P8 from iris, which has nine left."""
    moved = a_queued(1, **(task or {}))
    idle = fields.pop("idle", None) or an_idle_node("loom", role=Role())
    given: dict[str, Any] = {"busy": "iris", "busy_left": 9, "powers": powers_of(idle), **fields}
    return Move(moved, belongs_to(moved, DOMAINS), idle=idle, **given)


def test_a_move_that_all_rules_allow_has_no_objection() -> None:
    assert objections(a_move(), StealLimits()) == ()
    late = Gain(here_s=600, there_s=5, worth_s=30)
    assert objections(a_move(gain=late), StealLimits(policy="swift")) == ()


def test_every_objection_is_told_in_the_order_of_the_table() -> None:
    move = a_move({"state": "RUNNING", "pinned": True, "priority": 1, "hops": 1, "needs": ("gpu",)},
                  busy_left=5, taken=3, planned=10, refused_s=1.0)  # fmt: skip

    said = objections(move, StealLimits())

    assert [one.rule for one in said] == [
        rule.__name__ for rule in STEAL_RULES if rule.__name__ != "never_this_domain"]  # fmt: skip
    assert all(one.because for one in said)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"busy_left": 6}, None), ({"busy_left": 5}, "busy_node_is_busy"),
        ({"taken": 2}, None), ({"taken": 3}, "receiver_has_room"),
        ({"planned": 9}, None), ({"planned": 10}, "cycle_has_room"),
        ({"refused_s": 600.0}, None), ({"refused_s": 599.9}, "not_refused_lately"),
    ],
)  # fmt: skip
def test_the_counts_of_arc0_at_their_edges(fields: dict[str, Any], rule: str | None) -> None:
    assert [one.rule for one in objections(a_move(**fields), StealLimits())] == (
        [rule] if rule else [])  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"busy_left": 1}, None), ({"busy_left": 1, "busy_slots": 1}, "has_surplus"),
        ({"taken": 1, "spare": 1}, None), ({"taken": 1, "spare": 0}, "slot_or_half"),
        ({"taken": 2, "spare": 9}, "slot_or_half"),
        ({"gain": Gain(35.1, 5, 30)}, None), ({"gain": Gain(35.0, 5, 30)}, "gain_worth_it"),
    ],
)  # fmt: skip
def test_the_counts_of_swift_at_their_edges(fields: dict[str, Any], rule: str | None) -> None:
    given = {"gain": Gain(600, 5, 30), **fields}

    said = objections(a_move(**given), StealLimits(policy="swift"))

    assert [one.rule for one in said] == ([rule] if rule else [])


def test_every_rule_says_why_it_exists() -> None:
    for rule in RULES.values():
        assert len((rule.__doc__ or "").split()) > 5, rule.__name__
    assert {rule.__name__ for rule in (*STEAL_RULES, *SWIFT_RULES)} <= RULES.keys()


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    text = (FOLDER / "rules.md").read_text(encoding="utf-8")
    pages = dict(sections(text))

    assert pages.keys() == RULES.keys() | SAID_BY_PLANS.keys()
    assert all(len(page.split()) > 8 for page in pages.values())


def test_answers_are_plain_data() -> None:
    task = a_queued(1)
    situation = Situation(a_view(a_busy_node("iris"), an_idle_node("loom")),
                          queues(a_queue("iris", task)), DOMAINS)  # fmt: skip
    answers: tuple[WhyTask | WhyNode, ...] = (
        why_task(task, "iris", situation), why_node("loom", situation)
    )  # fmt: skip
    for answer in answers:
        assert plain(asdict(answer))


def plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(inside) for key, inside in value.items())
    if isinstance(value, list | tuple):
        return all(map(plain, value))
    return value is None or isinstance(value, str | int | float | bool)
