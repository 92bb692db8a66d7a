"""Finds tasks that wait for each other in a circle; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

CIRCLES_MAX = 5

Circle = tuple[str, ...]


def circles(waits: Mapping[str, Collection[str]]) -> tuple[Circle, ...]:
    """Circles among tasks that wait, each as its uids in order, the least one first; a few of them,
    of which no two share a task. `waits`: of each task that waits, for which it does; what is not
    among the tasks themselves runs by itself, and no circle goes through it.
    """
    left = {uid: sorted(waits.keys() & set(needs)) for uid, needs in waits.items()}
    found: list[Circle] = []
    while len(found) < CIRCLES_MAX:
        circle = _first(left)
        if not circle:
            break
        found.append(circle)
        gone = set(circle)
        left = {uid: [one for one in needs if one not in gone]
                for uid, needs in left.items() if uid not in gone}  # fmt: skip
    return tuple(sorted(found))


def _first(waits: Mapping[str, Collection[str]]) -> Circle:
    try:
        TopologicalSorter({uid: waits[uid] for uid in sorted(waits)}).prepare()
    except CycleError as error:
        named: list[str] = error.args[1]
        circle = named[:0:-1]  # graphlib names who is needed first; without the repeated end
        at = circle.index(min(circle))
        return (*circle[at:], *circle[:at])
    return ()
