"""Says what no schedule can be quicker than: the lower bound of a scene's makespan; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from .scene import MS, Scene

CROWDS_MAX = 10  # distinct sets of nodes of which every union is tried; beyond: each, and all


def makespan_bound_s(scene: Scene, able: Mapping[int, frozenset[str]]) -> float:
    """Seconds from the first task's coming to the last one's end that any schedule takes at least.

    `able` is which nodes may run each job, by its number. The bound is the latest of: one task's
    coming and length; and, for work that only some nodes may run, from any moment on the work that
    comes from then, spread over all slots of these nodes.
    """
    if not scene.jobs:
        return 0.0
    first_ms = scene.jobs[0].at_ms
    latest = max(job.at_ms + job.takes_ms for job in scene.jobs)
    slots = {place.name: place.slots for place in scene.places}
    for nodes in _unions({able[job.number] for job in scene.jobs if able[job.number]}):
        width = sum(slots[name] for name in nodes)
        only = [(job.at_ms, job.takes_ms) for job in scene.jobs if able[job.number] <= nodes]
        latest = max(latest, _spread(only, width))
    return (latest - first_ms) / MS


def _spread(jobs: Sequence[tuple[int, int]], width: int) -> int:
    """When so many slots are through with this work at the earliest, however it is shared out."""
    coming: defaultdict[int, int] = defaultdict(int)
    for at_ms, takes_ms in jobs:
        coming[at_ms] += takes_ms
    latest, work = 0, 0
    for at_ms in sorted(coming, reverse=True):
        work += coming[at_ms]
        latest = max(latest, at_ms + -(-work // width))
    return latest


def _unions(sets: Iterable[frozenset[str]]) -> set[frozenset[str]]:
    known = sorted(sets, key=lambda some: (len(some), sorted(some)))
    if len(known) > CROWDS_MAX:
        return {*known, frozenset().union(*known)}
    return {
        frozenset().union(*some)
        for size in range(1, len(known) + 1) for some in combinations(known, size)
    }  # fmt: skip
