"""Decides whether, when and by whom a failed task runs again. Pure: no clock, no chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .clock import iso, parse_iso
from .strict import JsonObject, JsonValue

INTERRUPTIONS_MAX = 3
NEVER = ("auth_failure", "budget_exceeded", "cancelled")
KINDS = ("timeout", "crash", "rate_limit", "invalid_output", "stalled", *NEVER)
# A word of a program that may be wrong, or of a clock that is: neither hammered nor believed for
# weeks. An early attempt at the end of a day costs the task nothing.
LIMITED_FIRST_S, LIMITED_GROWTH_MAX_S, LIMITED_MAX_S = 1.0, 300.0, 86_400.0
POISON_FAILURES, POISON_AGENTS = 3, 2
SPARED = ("rate_limit", "auth_failure")  # these speak of an account, never of the task


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
    limited: int = 0,
) -> Again | GiveUp:
    """What follows a failed attempt; `failures` counts those before it, `chance` is in [0, 1).

    `limited` says how many attempts right before it were rate limited and cost nothing.
    """
    no = _never_again(policy, kind)
    if no is not None:
        return no
    if kind == "rate_limit" and retry_at is not None and parse_iso(retry_at) > now:
        return _after_limit(parse_iso(retry_at), now, limited)
    if failures + 1 >= max_attempts:
        return GiveUp(f"attempt {failures + 1} of {max_attempts} failed ({kind})")
    wait = delay_s(failures=failures, policy=policy, chance=chance)
    because = f"attempt {failures + 1} of {max_attempts} failed ({kind}); next in {wait:.1f} s"
    return Again(iso(now + timedelta(seconds=wait)), counted=True, because=because)


def _never_again(policy: JsonObject, kind: str) -> GiveUp | None:
    """What is never retried stays so unless the task names that very kind in its `retry_on`."""
    names = _names_of(kind)
    if not names.isdisjoint(map(str, _list(policy, "no_retry_on"))):
        return GiveUp(f"{kind} is not retried: its no_retry_on says so")
    wanted = {str(name) for name in _list(policy, "retry_on")}
    if kind in NEVER and kind not in wanted:
        return GiveUp(f"{kind} is never retried")
    if "retry_on" in policy and names.isdisjoint(wanted):
        return GiveUp(f"{kind} is not among what this task is retried on")
    return None


def _names_of(kind: str) -> set[str]:
    """By which words a policy may mean this kind: what nobody knows, and a stall, are crashes."""
    return {kind} if kind in KINDS and kind != "stalled" else {kind, "crash"}


def _after_limit(until: datetime, now: datetime, limited: int) -> Again:
    """Not before that time, and each time in a row a little later; never more than a day."""
    # The exponent is bounded: the wait is at its longest long before.
    least = min(LIMITED_FIRST_S * 2.0 ** min(limited, 16), LIMITED_GROWTH_MAX_S)
    wait = min(max((until - now).total_seconds(), least), LIMITED_MAX_S)
    at = iso(now + timedelta(seconds=wait))
    return Again(at, counted=False, because=f"rate limited until {iso(until)}; next at {at}")


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


def _list(policy: JsonObject, name: str) -> list[JsonValue]:
    value = policy.get(name)
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class Tried:
    """One attempt that has ended: who made it, and whether its failure used up a try.

    `blamed` says whether it speaks against the task: not where its agent failed others as well.
    """

    node: str
    agent: str
    kind: str
    counted: bool
    blamed: bool = True
    n: int = 0  # its number


def since_forgiven(tries: Sequence[Tried], failures: int) -> list[Tried]:
    """The last so many counted failures: those before a person's `retry` are forgiven."""
    counted = [tried for tried in tries if tried.counted]
    return counted[max(len(counted) - failures, 0) :]


def is_poison(failed: Sequence[Tried]) -> bool:
    """Whether the task itself is what fails: it failed three times, under two different agents.

    What agents did that failed other tasks as well is their node's fault, and is held against that
    node alone, wherever the task failed besides: the one or the other, and never both.
    """
    against = [tried for tried in failed if tried.blamed and tried.kind not in SPARED]
    agents = {(tried.node, tried.agent) for tried in against}
    return len(against) >= POISON_FAILURES and len(agents) >= POISON_AGENTS


def limited_in_a_row(tries: Sequence[Tried]) -> int:
    """How many of the last attempts were rate limited and cost nothing."""
    number = 0
    for tried in reversed(tries):
        if tried.counted or tried.kind != "rate_limit":
            break
        number += 1
    return number


def choose_model(
    *, failures: int, models: Sequence[str], fallback: Sequence[str], offered: Sequence[str]
) -> str:
    """The model of the attempt that follows so many counted failures; "" where nobody names one.

    First the task's own first choice, else the agent's; from the second try on the fallbacks in
    their order, else what comes next among the choices; then the last of them again and again.
    """
    first = models or offered
    line = [*first[:1], *(fallback or first[1:])]
    return line[min(failures, len(line) - 1)] if line else ""


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
