"""Decides whether and when a failed task runs again. Pure: no clock, no chance of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from .clock import iso, parse_iso
from .strict import JsonObject, JsonValue

INTERRUPTIONS_MAX = 3
NEVER = ("auth_failure", "budget_exceeded", "cancelled")


@dataclass(frozen=True)
class Again:
    """Another attempt at a time; `counted` says whether the failed one used up a try."""

    at: str
    counted: bool
    because: str


@dataclass(frozen=True)
class GiveUp:
    """No further attempt by itself; a person may say otherwise."""

    because: str


def judge_failure(
    *,
    failures: int,
    max_attempts: int,
    policy: JsonObject,
    kind: str,
    retry_at: str | None,
    now: datetime,
    chance: float,
) -> Again | GiveUp:
    """What follows a failed attempt; `failures` counts those before it, `chance` is in [0, 1)."""
    if kind in _list(policy, "no_retry_on", NEVER):
        return GiveUp(f"{kind} is never retried")
    if "retry_on" in policy and kind not in _list(policy, "retry_on", ()):
        return GiveUp(f"{kind} is not among what this task is retried on")
    if kind == "rate_limit" and retry_at is not None and parse_iso(retry_at) > now:
        return Again(retry_at, counted=False, because=f"rate limited until {retry_at}")
    if failures + 1 >= max_attempts:
        return GiveUp(f"attempt {failures + 1} of {max_attempts} failed ({kind})")
    wait = delay_s(failures=failures, policy=policy, chance=chance)
    because = f"attempt {failures + 1} of {max_attempts} failed ({kind}); next in {wait:.1f} s"
    return Again(iso(now + timedelta(seconds=wait)), counted=True, because=because)


def delay_s(*, failures: int, policy: JsonObject, chance: float) -> float:
    """10 s, doubled by every failure up to 300 s, and half of it more or less by chance."""
    strategy = policy.get("strategy", "exponential")
    if strategy == "immediate":
        return 0.0
    initial, longest = _number(policy, "initial_s", 10.0), _number(policy, "max_s", 300.0)
    # The exponent is bounded: 2.0 ** 5000 is an error, and the wait is at its longest long before.
    growth = _number(policy, "multiplier", 2.0) ** min(failures, 64)
    wait = min(initial * growth if strategy == "exponential" else initial, longest)
    jitter = _number(policy, "jitter", 0.5)
    return wait * (1 - jitter + 2 * jitter * chance)


def _number(policy: JsonObject, name: str, default: float) -> float:
    value = policy.get(name)
    return float(value) if isinstance(value, int | float) else default


def _list(policy: JsonObject, name: str, default: tuple[str, ...]) -> list[JsonValue]:
    value = policy.get(name)
    return value if isinstance(value, list) else list(default)


@dataclass(frozen=True)
class Park:
    """A person decides."""

    because: str


def judge_interruption(*, interruptions: int, on_interrupt: str, why: str) -> Park | None:
    """Whether a task whose attempt was cut short waits for a person; None: it is READY again."""
    if on_interrupt == "park":
        return Park(f"interrupted ({why}) and its on_interrupt says park")
    if interruptions + 1 >= INTERRUPTIONS_MAX:
        return Park(f"interrupted {interruptions + 1} times, the last time: {why}")
    return None
