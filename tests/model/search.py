"""Visits every state of a scope, breadth first, and tells how it got to a bad one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from tests.model.happenings import steps
from tests.model.world import Scope, World, broken, crashed

Came = dict[World, tuple[World, str] | None]


@dataclass(frozen=True)
class Counterexample:
    """What went wrong, and the shortest way there."""

    what: str
    way: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{n:3}. {step}" for n, step in enumerate(self.way, 1)]
        return "\n".join([f"{self.what}, after {len(self.way)} steps:", *lines])


@dataclass(frozen=True)
class Verdict:
    """How many states were seen, how many remain apart when every answer is lost, and the first
    counterexample; None when the promise holds.
    """

    states: int
    recovered: int
    counterexample: Counterexample | None


@cache
def search(scope: Scope) -> Verdict:
    """Safety in every state; then that each can still be brought to an end after a crash."""
    came: Came = {}
    bad = explore([scope.first()], scope, came)
    if bad is not None:
        return Verdict(len(came), 0, Counterexample(broken(bad, scope.off) or "", way(bad, came)))
    ends: dict[World, World] = {}
    for world in came:
        ends.setdefault(crashed(world), world)
    lost = first_stuck(ends, scope.recovery())
    if lost is None:
        return Verdict(len(came), len(ends), None)
    stuck = Counterexample("lost: nothing ends it", way(ends[lost], came))
    return Verdict(len(came), len(ends), stuck)


def explore(starts: Iterable[World], scope: Scope, came: Came) -> World | None:
    """Fills `came` with every state and where it came from; the first broken one ends it."""
    queue = deque(starts)
    came.update((world, None) for world in queue)
    while queue:
        world = queue.popleft()
        for text, after in steps(world, scope):
            if after in came:
                continue
            came[after] = (world, text)
            if broken(after, scope.off):
                return after
            queue.append(after)
    return None


def first_stuck(ends: Iterable[World], scope: Scope) -> World | None:
    """The first of these states from which the task can never be started, if there is one."""
    fine: set[World] = set()
    return next((world for world in ends if not can_end(world, scope, fine)), None)


def can_end(world: World, scope: Scope, fine: set[World]) -> bool:
    """Whether some way leads to a start; every state along that way is added to `fine`."""
    came: dict[World, World | None] = {world: None}
    todo = deque([world])
    while todo:
        here = todo.popleft()
        if here.starts or here in fine:
            step: World | None = here
            while step is not None:
                fine.add(step)
                step = came[step]
            return True
        for _, after in steps(here, scope):
            if after not in came:
                came[after] = here
                todo.append(after)
    return False


def way(world: World, came: Came) -> tuple[str, ...]:
    """The steps from the beginning to this state."""
    told: list[str] = []
    step = came[world]
    while step is not None:
        world, text = step
        told.append(text)
        step = came[world]
    return tuple(reversed(told))
