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
    """How many states were seen, how deep, and the first counterexample, if there is one."""

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
    lost, count = first_stuck(ends, scope.recovery())
    if lost is None:
        return Verdict(len(came), count, None)
    return Verdict(len(came), count, Counterexample("lost: nothing ends it", way(ends[lost], came)))


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


def first_stuck(ends: Iterable[World], scope: Scope) -> tuple[World | None, int]:
    """The first of these states from which the task can never be started, if there is one."""
    order = list(ends)
    known = set(order)
    leads_from: dict[World, list[World]] = {}
    good: list[World] = []
    todo = deque(order)
    while todo:
        world = todo.popleft()
        if world.starts:
            good.append(world)
            continue
        for _, after in steps(world, scope):
            leads_from.setdefault(after, []).append(world)
            if after not in known:
                known.add(after)
                todo.append(after)
    fine = set(good)
    while good:
        for before in leads_from.get(good.pop(), ()):
            if before not in fine:
                fine.add(before)
                good.append(before)
    return next((world for world in order if world not in fine), None), len(known)


def way(world: World, came: Came) -> tuple[str, ...]:
    """The steps from the beginning to this state."""
    told: list[str] = []
    step = came[world]
    while step is not None:
        world, text = step
        told.append(text)
        step = came[world]
    return tuple(reversed(told))
