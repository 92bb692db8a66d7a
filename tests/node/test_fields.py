"""Every limit of a task's fields, at its edge: what is just taken and what is just refused."""

from __future__ import annotations

from typing import Any

import pytest

from agent_node.errors import BadInput
from agent_node.strict import JsonObject
from agent_node.task import FIELDS, SETTABLE, task_from
from tests.builders import uid

KIB = 1024
MUCH = 64 * KIB
TAKEN: list[tuple[str, Any]] = [
    ("subject", "x" * 500), ("subject", "é" * 500), ("subject", "a\tb"), ("subject", " "),
    ("body", ""), ("body", "x" * 256 * KIB), ("body", "é" * 128 * KIB), ("body", "a\r\nb\x1b[0m"),
    ("key", "k" * 200), ("key", None), ("ref", "r" * 500), ("type", "t" * 64), ("dag", "d" * 64),
    ("origin", "o" * 200), ("source", "s" * 200), ("domain", "d" * 64), ("progress", "p" * 4096),
    ("progress", "a\nb"), ("failure_reason", "f" * 4096), ("output_type", "o" * 64),
    ("needs", []), ("needs", ["n" * 64]), ("tags", [f"t{n}" for n in range(64)]),
    ("skills", ["überprüfen"]), ("models", ["b", "a"]),
    ("priority", 1), ("priority", 10), ("priority_100", 0), ("priority_100", 100),
    ("max_attempts", 1), ("max_attempts", 100), ("epoch", 1), ("epoch", 2**62), ("hops", 0),
    ("seq", 2**53), ("max_s", 0.001), ("max_s", 60), ("max_s", 10**9), ("expected_s", 0),
    ("heat", -100), ("heat", 100.0), ("boost_per_minute", 100), ("pinned", True),
    ("max_cost_usd", "0"), ("max_cost_usd", "123456789012.123456789"), ("cost_usd", "0.12"),
    ("not_before", "2026-03-10T03:45:02.123Z"), ("deadline", "9999-12-31T23:59:59.999Z"),
    ("deadline", "2024-02-29T00:00:00.000Z"), ("stolen_from", "a" + "b" * 31), ("parent", uid(2)),
    ("on_interrupt", "park"), ("state", "PARKED"), ("output", None), ("output", [1, {"a": 2.5}]),
    ("output", "x" * (MUCH - 2)), ("extra", {"a": "x" * (MUCH - 8)}),
    ("retry", {"strategy": "fixed", "initial_s": 0, "multiplier": 1, "max_s": 604800, "jitter": 1}),
    ("depends_on", [{"uid": "x"}]), ("tokens", {"input": 1}), ("claim", None), ("artifacts", ["a"]),
]  # fmt: skip
REFUSED: list[tuple[str, Any]] = [
    ("subject", "x" * 501), ("subject", "x" * 10**7), ("subject", ""), ("subject", None),
    ("subject", "a\nb"), ("subject", "a\rb"), ("subject", "a\u2028b"), ("subject", "a\x85b"),
    ("subject", "a\x0bb"), ("subject", "a\0b"), ("subject", "\ud800"), ("subject", 7),
    ("subject", ["a"]), ("body", "x" * (256 * KIB + 1)), ("body", "é" * (128 * KIB) + "x"),
    ("body", "a\0b"), ("body", "\udfff"), ("body", None), ("body", b"x".hex),
    ("key", "k" * 201), ("key", "a\nb"), ("key", 7), ("ref", "r" * 501), ("type", "t" * 65),
    ("type", None), ("origin", "o" * 201), ("domain", "d" * 65), ("progress", "p" * 4097),
    ("progress", "\0"), ("failure_reason", "f" * 4097),
    ("needs", ["n" * 65]), ("needs", [""]), ("needs", "gpu"), ("needs", [7]), ("needs", [None]),
    ("needs", [["a"]]), ("needs", None), ("tags", [f"t{n}" for n in range(65)]),
    ("tags", ["a\x1b[31m"]), ("tags", ["a\nb"]), ("skills", ["\ud800"]), ("models", ["a\0"]),
    ("priority", 0), ("priority", 11), ("priority", True), ("priority", 5.0), ("priority", "5"),
    ("priority", None), ("priority_100", -1), ("priority_100", 101), ("priority_100", False),
    ("max_attempts", 0), ("max_attempts", 101), ("max_attempts", True), ("epoch", 0),
    ("epoch", 2**62 + 1), ("hops", -1), ("seq", 2**53 + 1), ("seq", -1),
    ("max_s", 0), ("max_s", -1), ("max_s", 10**9 + 1), ("max_s", True), ("max_s", "60"),
    ("max_s", float("nan")), ("max_s", float("inf")), ("heat", 100.1), ("heat", -101),
    ("pinned", 1), ("pinned", 0), ("pinned", "true"), ("pinned", None),
    ("max_cost_usd", 1), ("max_cost_usd", 0.12), ("max_cost_usd", "1e3"), ("max_cost_usd", "-1"),
    ("max_cost_usd", "1."), ("max_cost_usd", ".5"), ("max_cost_usd", "1234567890123"),
    ("max_cost_usd", "\u0661\u0662"), ("max_cost_usd", "1\n"), ("cost_usd", "NaN"),
    ("not_before", "2026-03-10T03:45:02.123"), ("not_before", "2026-03-10"), ("not_before", 0),
    ("not_before", "tomorrow"), ("not_before", "2026-13-10T03:45:02.123Z"), ("not_before", ""),
    ("deadline", "2026-02-29T00:00:00.000Z"), ("deadline", "0000-01-01T00:00:00.000Z"),
    ("deadline", "0001-01-01T00:00:00.000+01:00"), ("deadline", "9999-12-31T23:59:59.999-01:00"),
    ("deadline", "\u0662026-03-10T03:45:02.123Z"), ("deadline", "2026-03-10T03:45:02.123Z\n"),
    ("uid", uid()[:-1]), ("uid", uid() + "0"), ("uid", uid().lower()), ("uid", "8" + "0" * 25),
    ("uid", "I" + "0" * 25), ("uid", 7), ("uid", uid() + "\n"), ("parent", "../../etc/passwd"),
    ("stolen_from", "a" + "b" * 32), ("stolen_from", "-a"), ("stolen_from", "Iris"),
    ("stolen_from", "iris\n"), ("stolen_from", ""), ("on_interrupt", "ask"), ("on_interrupt", None),
    ("on_interrupt", []), ("state", "ready"), ("state", "DONE"), ("state", {}),
    ("output", "x" * (MUCH - 1)), ("output", "é" * MUCH), ("extra", {"a": "x" * (MUCH - 7)}),
    ("extra", []), ("extra", None), ("extra", "x"), ("validate", 7), ("tokens", []),
    ("claim", "iris"), ("depends_on", {}), ("context_refs", None), ("artifacts", "a"),
    ("retry", {"strategy": "never"}), ("retry", {"initial_s": -1}), ("retry", {"multiplier": 0.9}),
    ("retry", {"jitter": 1.1}), ("retry", {"initial": 1}), ("retry", {"max_s": True}),
    ("retry", {"retry_on": "crash"}), ("retry", []),
]  # fmt: skip


def described(case: tuple[str, Any]) -> str:
    name, value = case
    return f"{name}-{ascii(value)[:24]}-{len(str(value))}"


@pytest.mark.parametrize("case", TAKEN, ids=described)
def test_what_is_just_within_the_limit_is_taken(case: tuple[str, Any]) -> None:
    name, value = case
    task = task_from({"uid": uid(), "subject": "work", name: value})
    kept = getattr(task, name)
    assert kept == value or sorted(kept) == sorted(value)


@pytest.mark.parametrize("case", REFUSED, ids=described)
def test_what_is_just_beyond_the_limit_is_refused_by_the_fields_name(case: tuple[str, Any]) -> None:
    name, value = case
    with pytest.raises(BadInput) as caught:
        task_from({"uid": uid(), "subject": "work", name: value})
    assert caught.value.field.partition(".")[0] == name
    assert len(str(caught.value)) < 500, "a refusal must not carry the whole value"


def test_unknown_fields_together_are_bounded_like_extra() -> None:
    with pytest.raises(BadInput, match="extra"):
        task_from({"uid": uid(), "subject": "work", "a": "x" * 40_000, "b": "x" * 40_000})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-03-10T04:45:02.123456+01:00", "2026-03-10T03:45:02.123Z"),
        ("2026-03-10T03:45:02Z", "2026-03-10T03:45:02.000Z"),
        ("20260310T034502Z", "2026-03-10T03:45:02.000Z"),
    ],
)
def test_times_are_kept_in_one_width_so_that_they_sort(given: str, kept: str) -> None:
    assert task_from({"uid": uid(), "subject": "work", "deadline": given}).deadline == kept


def test_sets_are_kept_sorted_and_once_and_choices_in_their_order() -> None:
    document: JsonObject = {
        "needs": ["b", "a", "b"], "tags": ["z", "y"], "models": ["big", "able", "big"],
    }  # fmt: skip
    task = task_from({"uid": uid(), "subject": "work", **document})
    assert (task.needs, task.tags, task.models) == (["a", "b"], ["y", "z"], ["big", "able", "big"])


def test_what_can_be_set_is_checked_like_what_is_added() -> None:
    assert set(FIELDS) >= SETTABLE
    with pytest.raises(BadInput, match="priority"):
        FIELDS["priority"](11, "priority")
