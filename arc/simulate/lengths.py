"""Holds how long tasks run: by a law that is named, or as agents' tasks really did."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from agent_node.text import safe_text
from arc.errors import WrongUse

# How long 4,045 tasks of real agents ran, in seconds: (share of them, at most so long), of one
# fleet in March 2026. Between two rows a straight line; their mean is 102 s.
AGENTS: tuple[tuple[float, float], ...] = (
    (0.0, 2.0), (0.01, 9.6), (0.02, 12.1), (0.05, 16.5), (0.1, 20.7), (0.15, 24.7), (0.2, 28.8),
    (0.25, 32.9), (0.3, 36.8), (0.35, 42.0), (0.4, 47.1), (0.45, 52.9), (0.5, 59.6), (0.55, 67.4),
    (0.6, 76.9), (0.65, 88.9), (0.7, 104.0), (0.75, 122.6), (0.8, 148.3), (0.85, 182.4),
    (0.9, 231.9), (0.925, 268.4), (0.95, 316.1), (0.975, 416.0), (0.98, 447.9), (0.99, 577.9),
    (0.995, 767.5), (0.999, 1109.1), (1.0, 2641.3),
)  # fmt: skip
# The priorities of the same tasks: (P, share of them).
PRIORITIES: tuple[tuple[int, float], ...] = (
    (1, 0.065), (2, 0.032), (3, 0.108), (4, 0.184), (5, 0.261), (6, 0.071), (7, 0.137), (8, 0.118),
    (9, 0.024),
)  # fmt: skip
LONGEST_S = 365 * 86_400.0
_SHARES = [share for share, _ in AGENTS]


@dataclass(frozen=True)
class Lengths:
    """A law of lengths: `draw` gives one in seconds; `mean_s` is what they come to on the whole."""

    word: str
    mean_s: float
    draw: Callable[[Random], float]


def parse_lengths(word: str) -> Lengths:
    """`agents`, `const:60`, `exp:600`, `lognormal:MEDIAN,SIGMA` or `uniform:LOW,HIGH`; seconds.

    `WrongUse` says what is wrong with any other word.
    """
    name, _, rest = word.strip().partition(":")
    if name == "agents" and not rest:
        return Lengths("agents", _agents_mean(), _agents)
    law = _LAWS.get(name)
    numbers = _numbers(rest)
    if law is None or numbers is None or len(numbers) != law[0]:
        raise WrongUse(
            f"--durations: {safe_text(word, 60)!r} is no law of lengths; write agents, const:60, "
            "exp:600, lognormal:60,1.1 or uniform:10,90 (seconds)"
        )
    made = law[1](word.strip(), *numbers)
    if not 0 < made.mean_s <= LONGEST_S:
        raise WrongUse(
            f"--durations: {safe_text(word, 60)} means {made.mean_s:g} s a task; that should be "
            "above 0 and within a year"
        )
    return made


def _numbers(text: str) -> list[float] | None:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    return found if all(math.isfinite(one) and one >= 0 for one in found) else None


def _agents(chance: Random) -> float:
    return quantile(chance.random())


def quantile(share: float) -> float:
    """How long the agents' task ran that so large a share of them was shorter than."""
    at = min(bisect_right(_SHARES, share), len(AGENTS) - 1)
    (low, below_s), (high, above_s) = AGENTS[at - 1], AGENTS[at]
    return below_s + (above_s - below_s) * (share - low) / (high - low)


def _agents_mean() -> float:
    return sum((high - low) * (below + above) / 2
               for (low, below), (high, above) in pairwise(AGENTS))  # fmt: skip


def _const(word: str, seconds: float) -> Lengths:
    return Lengths(word, seconds, lambda chance: seconds)


def _exp(word: str, mean_s: float) -> Lengths:
    return Lengths(word, mean_s, lambda chance: -mean_s * math.log(1.0 - chance.random()))


def _lognormal(word: str, median_s: float, sigma: float) -> Lengths:
    if median_s <= 0 or sigma > 5:  # noqa: PLR2004 - beyond it the mean is above any task
        raise WrongUse("--durations: lognormal:MEDIAN,SIGMA takes a median above 0, a sigma to 5")
    mu = math.log(median_s)
    mean_s = median_s * math.exp(sigma * sigma / 2)
    return Lengths(word, mean_s, lambda chance: min(chance.lognormvariate(mu, sigma), LONGEST_S))


def _uniform(word: str, low: float, high: float) -> Lengths:
    if high < low:
        raise WrongUse("--durations: uniform:LOW,HIGH takes the lower one first")
    return Lengths(word, (low + high) / 2, lambda chance: chance.uniform(low, high))


_LAWS: dict[str, tuple[int, Callable[..., Lengths]]] = {
    "const": (1, _const), "exp": (1, _exp), "lognormal": (2, _lognormal), "uniform": (2, _uniform),
}  # fmt: skip


def draw_priority(chance: Random) -> int:
    """P1 to P9, as often as the agents' tasks had them."""
    at = chance.random()
    for priority, share in PRIORITIES:
        at -= share
        if at < 0:
            return priority
    return PRIORITIES[-1][0]
