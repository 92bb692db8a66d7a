"""Free slots beside work they may run: counted once, with the rule that keeps them apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.clock import iso
from arc.decisions.domains import Role
from arc.decisions.limits import StealLimits
from arc.decisions.stranded import (
    NOBODY_LOOKED,
    LastLook,
    Stranded,
    add_up,
    charge,
    free_nodes,
    stranded_asking,
    stranded_now,
)
from arc.decisions.view import FleetView, NodeSeen, Queues, QueueUnseen

from ..builders import START
from ..fleet_builders import (
    DOMAINS,
    a_busy_node,
    a_node,
    a_queue,
    a_queued,
    a_view,
    an_agent_report,
    an_idle_node,
    looked_into,
    queues,
    some_queued,
)

ARC0 = StealLimits()


def stranded(
    view: FleetView, asked: Queues, limits: StealLimits = ARC0
) -> list[tuple[str, str, str]]:
    found = stranded_now(view, asked, domains=DOMAINS, limits=limits)
    return [(one.node, one.cause, one.rule) for one in found]


@pytest.mark.parametrize(
    ("task", "rule"),
    [
        ({"priority": 1, "domain": "research"}, "low_enough_priority"),
        ({"priority": 6}, "may_do_this_work"),
        ({"hops": 1}, "not_stolen_before"),
    ],
)
def test_a_rule_of_the_policy_that_keeps_runnable_work_away_is_named(
    task: dict[str, Any], rule: str
) -> None:
    view = a_view(a_busy_node("iris", 9), an_idle_node("loom"))

    assert stranded(view, queues(a_queue("iris", a_queued(1, **task)))) == [("loom", "rule", rule)]


def test_thresholds_of_nodes_are_rules_that_forbade_it() -> None:
    few = a_view(a_busy_node("iris", 5), an_idle_node("loom"))
    brief = a_view(a_busy_node("iris", 9), an_idle_node("loom", idle_s=60))

    assert stranded(few, queues(a_queue("iris", a_queued(1)))) == [
        ("loom", "rule", "busy_node_is_busy")]  # fmt: skip
    assert stranded(brief, queues(a_queue("iris", a_queued(1)))) == [
        ("loom", "rule", "idle_long_enough")]  # fmt: skip


def test_what_no_rule_forbids_is_that_nobody_looked() -> None:
    view = a_view(a_busy_node("iris", 9), an_idle_node("loom"))

    assert stranded(view, queues(a_queue("iris", a_queued(1)))) == [("loom", NOBODY_LOOKED, "")]


def test_work_in_the_inbox_strands_a_free_node_like_any_other() -> None:
    inbox = a_node("inbox", role=Role(), pending_count=1, dispatcher="stopped", slots=0)
    view = a_view(inbox, an_idle_node("loom"))

    assert stranded(view, queues(a_queue("inbox", a_queued(1, priority=2)))) == [
        ("loom", NOBODY_LOOKED, "")]  # fmt: skip


@pytest.mark.parametrize(
    "task",
    [{"pinned": True}, {"domain": "protocol"}, {"skills": ("unheard-of",)}, {"needs": ("gpu",)},
     {"state": "RUNNING"}],
)  # fmt: skip
def test_work_that_it_may_not_run_strands_nobody(task: dict[str, Any]) -> None:
    view = a_view(a_busy_node("iris", 9), an_idle_node("loom"))

    assert stranded(view, queues(a_queue("iris", a_queued(1, **task)))) == []


@pytest.mark.parametrize(
    "fields",
    [{"state": "paused"}, {"dispatcher": "stopped"}, {"age_s": 700.0}, {"running_count": 1},
     {"pending_count": 1}],
)  # fmt: skip
def test_a_node_that_can_start_nothing_more_is_not_stranded(fields: dict[str, Any]) -> None:
    view = a_view(a_busy_node("iris", 9), a_node("loom", **fields))

    assert free_nodes(view, ARC0) == ()
    assert stranded(view, queues(a_queue("iris", *some_queued(3)))) == []


def test_one_waiting_task_strands_one_node() -> None:
    view = a_view(a_busy_node("iris", 9), *(an_idle_node(name) for name in ("forge", "loom")))

    assert len(stranded(view, queues(a_queue("iris", a_queued(1))))) == 1
    assert len(stranded(view, queues(a_queue("iris", *some_queued(2))))) == 2


def test_what_a_node_is_about_to_start_itself_strands_nobody() -> None:
    view = a_view(a_busy_node("iris", 1, slots=2), an_idle_node("loom"))

    assert stranded_asking(view, ARC0)[0] == ()
    assert stranded(view, queues(a_queue("iris", a_queued(1)))) == []


def test_a_queue_that_could_not_be_read_is_not_one_without_work() -> None:
    view = a_view(a_busy_node("iris", 9), an_idle_node("loom"))
    unread = queues(QueueUnseen("iris", "silent", "no answer within 10 s"))

    assert stranded(view, unread) == [("loom", NOBODY_LOOKED, "queue_was_read")]


def test_the_request_hides_nothing_for_its_urgency_or_its_past() -> None:
    view = a_view(a_busy_node("iris", 3), an_idle_node("loom"))
    names, request = stranded_asking(view, ARC0)
    ready = (a_queued(1, priority=1), a_queued(2, hops=3), a_queued(3, domain="protocol"))
    queue = looked_into("iris", ready, request["for"], order="most_urgent")

    assert names == ("iris",)
    assert (queue.eligible, queue.kept) == (2, {"may_do_this_work": 1})


def test_seconds_add_up_by_node_and_cause() -> None:
    some = (Stranded("loom", "rule", "low_enough_priority", ""),
            Stranded("spark", NOBODY_LOOKED, "queue_was_read", ""),
            Stranded("spark", NOBODY_LOOKED, "", ""))  # fmt: skip

    assert add_up((one, 60.0) for one in some) == {
        ("loom", "low_enough_priority"): 60.0, ("spark", NOBODY_LOOKED): 120.0}  # fmt: skip


def test_work_that_its_node_cannot_run_strands_another_though_a_slot_is_free_there() -> None:
    """Taken away once: counted among what iris starts at once, it strands nobody."""
    iris = a_node("iris", pending_count=2, unmet_count=1, slots=2)
    view = a_view(iris, an_idle_node("loom", agents=(an_agent_report("loom", skills=("gpu",)),)))
    asked = queues(a_queue("iris", a_queued(1, needs=("gpu",)), a_queued(2)))

    assert stranded(view, asked, StealLimits(policy="swift")) == [("loom", NOBODY_LOOKED, "")]


@pytest.mark.parametrize(("unmet", "free"), [(2, ["loom"]), (1, ["loom"]), (0, [])])
def test_slots_for_which_nothing_waits_there_that_could_start_are_free(
    unmet: int, free: list[str]
) -> None:
    loom = a_node("loom", pending_count=2, unmet_count=unmet, slots=2)
    found = free_nodes(a_view(loom), StealLimits(policy="swift"))
    assert [one.name for one in found] == free


# --- For how long ---------------------------------------------------------------------------------


BEFORE = LastLook(300.0, frozenset({"loom"}), frozenset({"loom"}))


def found(loom: NodeSeen, *, iris: NodeSeen | None = None, **task: Any) -> Stranded:
    view = a_view(iris or a_busy_node("iris", 9), loom)
    asked = queues(a_queue("iris", a_queued(1, **task)))
    (one,) = stranded_now(view, asked, domains=DOMAINS, limits=ARC0)
    return one


def back(seconds: float) -> str:
    return iso(START - timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("idle_s", "ready_s", "seconds"),
    [(900, 900, 300), (900, 2, 2), (2, 900, 2), (900, -2, 0), (900, 0, 0), (900, 300, 300)],
)
def test_no_longer_than_the_task_was_there_the_slot_free_and_the_last_look_ago(
    idle_s: float, ready_s: float, seconds: float
) -> None:
    """Seen to fail: 300 s in every row."""
    one = found(an_idle_node("loom", idle_s=idle_s), ready_at=back(ready_s))

    assert charge(one, BEFORE) == seconds


def test_how_long_it_waits_is_told_by_the_clock_of_its_node_alone() -> None:
    """That one is an hour ahead, and its report came ten seconds ago."""
    ahead = a_busy_node("iris", 9, written_at=back(-3600), age_s=10.0)
    one = found(an_idle_node("loom", idle_s=900), iris=ahead, ready_at=back(-3580))

    assert charge(one, BEFORE) == 30.0


def test_a_node_that_was_not_known_or_not_free_at_the_last_look_is_not_charged() -> None:
    idle, works = found(an_idle_node("loom", idle_s=900)), found(a_node(
        "loom", running_count=1, slots=2))  # fmt: skip

    assert charge(idle, replace(BEFORE, known=frozenset())) == 0.0
    assert charge(idle, replace(BEFORE, free=frozenset())) == 300.0  # it tells since when
    assert (works.free_s, charge(works, BEFORE)) == (None, 300.0)
    assert charge(works, replace(BEFORE, free=frozenset())) == 0.0


def test_of_a_queue_that_was_not_read_its_oldest_task_is_the_bound() -> None:
    view = a_view(a_busy_node("iris", 9, oldest_ready_s=7), an_idle_node("loom", idle_s=900))
    unread = {"iris": QueueUnseen("iris", "silent", "no answer")}
    (one,) = stranded_now(view, unread, domains=DOMAINS, limits=ARC0)

    assert charge(one, BEFORE) == 7.0


AGO = st.floats(0.0, 600.0)
TOLD = st.none() | st.floats(allow_nan=False)
STAMPS = (
    st.none()
    | st.sampled_from(["", "NaN", "never", "2026-03-10", "0001-01-01T00:00:00+14:00",
                       "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
    | st.floats(-10.0**6, 10.0**6).map(back)
)  # fmt: skip


@given(AGO, TOLD, TOLD, st.booleans(), st.booleans())
def test_what_is_charged_lies_within_each_bound(
    ago_s: float, free_s: float | None, ready_s: float | None, known: bool, free: bool
) -> None:
    loom = frozenset({"loom"})
    one = Stranded("loom", NOBODY_LOOKED, "", "", free_s=free_s, ready_s=ready_s)
    last = LastLook(ago_s, loom if known else frozenset(), loom if free else frozenset())
    seconds = charge(one, last)

    assert 0.0 <= seconds <= ago_s
    assert all(seconds <= max(bound, 0.0) for bound in (free_s, ready_s) if bound is not None)
    if not known or (free_s is None and not free):
        assert seconds == 0.0


@given(AGO, STAMPS, STAMPS.filter(lambda stamp: stamp is None or stamp.endswith("Z")))
def test_no_time_that_a_node_tells_charges_more_than_the_last_look_ago(
    ago_s: float, ready_at: str | None, written_at: str | None
) -> None:
    iris = a_busy_node("iris", 9, **({"written_at": written_at} if written_at else {}))
    one = found(an_idle_node("loom", idle_s=10.0**6), iris=iris, ready_at=ready_at)

    assert 0.0 <= charge(one, replace(BEFORE, ago_s=ago_s)) <= ago_s
