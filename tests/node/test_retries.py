"""When, by whom and with which model a failed task runs again, by the pure rules alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_node.clock import iso, parse_iso
from agent_node.retries import (
    LIMITED_MAX_S,
    NEVER,
    Again,
    GiveUp,
    Tried,
    choose_model,
    is_poison,
    judge_failure,
    limited_in_a_row,
    since_forgiven,
)
from agent_node.strict import JsonObject

NOW = datetime(2026, 3, 10, 3, 45, tzinfo=UTC)


def judged(kind: str = "crash", *, after_s: float | None = None, **more: object) -> Again | GiveUp:
    """What follows the first failure of three, of this kind; `after_s` makes a `retry_at`."""
    retry_at = None if after_s is None else iso(NOW + timedelta(seconds=after_s))
    known: dict[str, object] = {"failures": 0, "max_attempts": 3, "policy": {}, "chance": 0.5}
    known |= {"kind": kind, "retry_at": retry_at, "now": NOW, **more}
    return judge_failure(**known)  # type: ignore[arg-type]


def wait_s(verdict: Again | GiveUp) -> float:
    assert isinstance(verdict, Again), verdict
    return (parse_iso(verdict.at) - NOW).total_seconds()


def tried(agent: str = "ada", node: str = "iris", kind: str = "crash") -> Tried:
    return Tried(node, agent, kind, counted=True)


def test_a_rate_limit_waits_for_its_time_and_costs_no_attempt() -> None:
    verdict = judged("rate_limit", after_s=3600, failures=2)
    assert isinstance(verdict, Again)
    assert (wait_s(verdict), verdict.counted) == (3600, False)


@pytest.mark.parametrize(("after_s", "waits"), [(86_400, 86_400), (86_401, 86_400), (9e9, 86_400)])
def test_a_rate_limit_is_believed_for_a_day(after_s: float, waits: float) -> None:
    """Fails without the bound: a program whose clock lies keeps its task for a century."""
    assert wait_s(judged("rate_limit", after_s=after_s)) == waits == LIMITED_MAX_S


@pytest.mark.parametrize(("limited", "waits"), [(0, 1), (1, 2), (8, 256), (9, 300), (10**6, 300)])
def test_rate_limits_in_a_row_wait_longer_and_longer(limited: int, waits: float) -> None:
    """Fails without the least wait: a limit that is over at once runs the program for ever."""
    assert wait_s(judged("rate_limit", after_s=0.001, limited=limited)) == waits


@pytest.mark.parametrize("after_s", [None, -1, 0])
def test_a_rate_limit_without_a_time_to_come_counts_and_backs_off(after_s: float | None) -> None:
    verdict = judged("rate_limit", after_s=after_s)
    assert isinstance(verdict, Again)
    assert (verdict.counted, wait_s(verdict)) == (True, 10)
    assert isinstance(judged("rate_limit", after_s=after_s, failures=2), GiveUp)


@pytest.mark.parametrize("kind", NEVER)
def test_what_is_never_retried_is_not_even_when_a_task_adds_to_the_list(kind: str) -> None:
    """Fails when a task's own `no_retry_on` replaces the list instead of adding to it."""
    assert isinstance(judged(kind), GiveUp)
    assert isinstance(judged(kind, policy={"no_retry_on": ["timeout"]}), GiveUp)
    assert isinstance(judged(kind, policy={"retry_on": [kind]}), Again)


@pytest.mark.parametrize(
    ("kind", "policy", "again"),
    [
        ("flux", {}, True),
        ("flux", {"retry_on": ["crash"]}, True),
        ("flux", {"retry_on": ["flux"]}, True),
        ("flux", {"retry_on": ["timeout"]}, False),
        ("flux", {"no_retry_on": ["crash"]}, False),
        ("flux", {"no_retry_on": ["flux"]}, False),
        ("stalled", {"retry_on": ["crash"]}, True),
        ("stalled", {"no_retry_on": ["crash"]}, False),
        ("crash", {"no_retry_on": ["stalled"]}, True),
        ("timeout", {"no_retry_on": ["crash"]}, True),
    ],
)
def test_a_kind_that_nobody_knows_counts_as_a_crash(
    kind: str, policy: JsonObject, again: bool
) -> None:
    assert isinstance(judged(kind, policy=policy), Again) is again


@pytest.mark.parametrize(
    ("failed", "poison"),
    [
        ([tried("ada"), tried("ada"), tried("eve")], True),
        ([tried("ada"), tried("ada", "loom"), tried("ada")], True),
        ([tried("ada"), tried("eve")], False),
        ([tried("ada")] * 9, False),
        ([tried("ada"), tried("eve"), tried("eve", kind="rate_limit")], False),
        ([tried("ada"), tried("eve"), tried("eve", kind="auth_failure")], False),
        ([tried("ada"), tried("eve", kind="rate_limit"), tried("ada"), tried("ada")], False),
    ],
)
def test_poison_is_what_fails_three_times_under_two_agents(
    failed: list[Tried], poison: bool
) -> None:
    assert is_poison(failed) is poison


def test_a_node_that_fails_everything_poisons_no_task() -> None:
    """Fails when agents that fail other tasks as well may speak against this one."""
    ada, eve = replace(tried("ada"), blamed=False), replace(tried("eve"), blamed=False)
    assert not is_poison([ada, eve, eve])
    assert not is_poison([ada, tried("eve"), tried("eve")])


@pytest.mark.parametrize("elsewhere", [1, 2, 9])
def test_a_failing_node_speaks_against_no_task_wherever_else_that_fails(elsewhere: int) -> None:
    """Fails when one failure on a healthy node makes those of the failing one count again."""
    ada = replace(tried("ada"), blamed=False)
    there = [tried("ada", "loom")] * elsewhere
    assert not is_poison([ada, ada, *there])
    assert is_poison([ada, ada, *there, tried("eve", "loom")]) is (elsewhere > 1)


def test_what_was_forgiven_speaks_against_nothing() -> None:
    """Fails when all failures ever count: a task that a person tries again is dead at once."""
    tries = [tried("ada"), tried("eve"), Tried("iris", "eve", "", counted=False), tried("zoe")]
    assert since_forgiven(tries, 1) == [tried("zoe")]
    assert since_forgiven(tries, 2) == [tried("eve"), tried("zoe")]
    assert since_forgiven(tries, 9) == [tried("ada"), tried("eve"), tried("zoe")]


def test_only_the_last_rate_limits_are_in_a_row() -> None:
    free = Tried("iris", "ada", "rate_limit", counted=False)
    assert limited_in_a_row([free, tried(), free, free]) == 2
    assert limited_in_a_row([free, tried(kind="rate_limit")]) == 0
    assert limited_in_a_row([]) == 0


@pytest.mark.parametrize(
    ("failures", "models", "fallback", "offered", "chosen"),
    [
        (0, ["big"], ["small", "tiny"], [], "big"),
        (1, ["big"], ["small", "tiny"], [], "small"),
        (2, ["big"], ["small", "tiny"], [], "tiny"),
        (9, ["big"], ["small", "tiny"], [], "tiny"),
        (0, [], ["small"], ["own", "other"], "own"),
        (1, [], ["small"], ["own", "other"], "small"),
        (1, [], [], ["own", "other"], "other"),
        (1, ["big", "next"], [], ["own"], "next"),
        (0, [], ["small"], [], "small"),
        (3, [], [], [], ""),
    ],
)
def test_from_the_second_try_on_the_fallback_models_have_their_turn(
    failures: int, models: list[str], fallback: list[str], offered: list[str], chosen: str
) -> None:
    said = choose_model(failures=failures, models=models, fallback=fallback, offered=offered)
    assert said == chosen


@given(
    failures=st.integers(0, 99), limited=st.integers(0, 99), chance=st.floats(0, 0.999),
    kind=st.sampled_from(["crash", "rate_limit", "timeout", "flux", *NEVER]),
    after_s=st.none() | st.floats(-1e6, 1e9), most=st.integers(1, 100),
)  # fmt: skip
def test_a_failure_is_never_hammered_nor_forgotten(
    failures: int, limited: int, chance: float, kind: str, after_s: float | None, most: int
) -> None:
    """Whatever a program says: an uncounted retry waits 1 s to a day, a counted one 5 to 450 s."""
    verdict = judged(kind, after_s=after_s, failures=failures, limited=limited, chance=chance,
                     max_attempts=most)  # fmt: skip
    if isinstance(verdict, GiveUp):
        assert kind in NEVER or failures + 1 >= most
    elif verdict.counted:
        assert 4.999 <= wait_s(verdict) <= 450.001
        assert failures + 1 < most
    else:
        assert kind == "rate_limit"
        assert 0.999 <= wait_s(verdict) <= LIMITED_MAX_S
