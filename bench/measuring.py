"""Takes ours and the floor in turns, and holds the ratio of the two to its goal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

Side = Callable[[], float]


@dataclass(frozen=True)
class Place:
    """Where a run works and how long it may take."""

    folder: Path
    zipapp: Path
    python: str
    quick: bool = False
    tiny: bool = False  # a test looks at the shape alone

    def rounds(self, whole: int) -> int:
        """How often both sides are taken; a third of it when it has to be quick."""
        return 2 if self.tiny else max(3, whole // 3) if self.quick else whole

    def size(self, whole: int, tiny: int) -> int:
        """How large a thing is measured: the real size, or one that only proves the shape."""
        return tiny if self.tiny else whole

    def fresh(self, name: str) -> Path:
        """A folder of its own for one side of a measurement."""
        folder = self.folder / name
        folder.mkdir(mode=0o700, parents=True)
        return folder


@dataclass(frozen=True)
class Row:
    """One line of the table. `floor` None: the goal is an absolute figure, `ours` itself."""

    row: str
    what: str
    ours: float
    floor: float | None
    unit: str
    ratio: float
    goal: float | None  # None: measured for comparison, held to nothing
    at_least: bool = False  # the ratio has to reach the goal instead of staying below it
    against: str = ""
    spread: tuple[float, float] | None = None  # quartiles of the ratio
    load: float = 0.0
    more: dict[str, float | str] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether the goal is reached; a row without one cannot miss it."""
        if self.goal is None:
            return True
        return self.ratio >= self.goal if self.at_least else self.ratio <= self.goal


def in_turns(rounds: int, *sides: Side) -> list[list[float]]:
    """What each side took, round by round, each side first as often as any other."""
    taken: list[list[float]] = [[] for _ in sides]
    order = list(range(len(sides)))
    for _ in range(rounds):
        for number in order:
            taken[number].append(sides[number]())
        order.append(order.pop(0))
    return taken


def milliseconds(do: Callable[[], object]) -> Side:
    """A side that says how long it took."""
    return lambda: 1000 * timed(do)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The middle half lies between these."""
    ordered = sorted(values)
    return ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that so many of a hundred do not exceed; the next one up, never a mean of two."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def ratio(ours: Sequence[float], floor: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The middle of the rounds' own ratios: load that comes and goes hits both of a round."""
    ratios = [mine / other for mine, other in zip(ours, floor, strict=True)]
    return median(ratios), quartiles(ratios)


def timed(do: Callable[[], object]) -> float:
    """Seconds that it took, by a clock nobody sets."""
    began = time.perf_counter()
    do()
    return time.perf_counter() - began
