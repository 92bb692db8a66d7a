"""Names what waits with the hub and is the work of no node of fleet.yaml, seen or not; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .domains import Domain, Role
from .limits import RouteLimits
from .receiving import tier_by_role, whose_work, work_of
from .routing import stays
from .view import QueuedTask


@dataclass(frozen=True)
class NobodysWork:
    """Tasks that wait for the same change of fleet.yaml: how many, the first, and why."""

    because: str
    first: str  # its uid
    count: int
    more: bool = False  # the queue goes on behind the tasks that were looked at


def nobodys_work(
    tasks: Iterable[QueuedTask], domains: Sequence[Domain], roles: Mapping[str, Role],
    limits: RouteLimits,
) -> tuple[NobodysWork, ...]:  # fmt: skip
    """Each reason once, in the order of the tasks; by what fleet.yaml says alone, so that a silent
    node is never taken for one that has no such work.

    What the fallback gets, and what a person or fleet.yaml keeps at the hub, waits for nobody.
    """
    if all_is_done(roles, limits):
        return ()
    found: dict[str, list[str]] = {}
    for task in tasks:
        work = work_of(task, domains)
        if stays(task, limits) or any(
            tier_by_role(work, role) is not None for role in roles.values()
        ):
            continue
        found.setdefault(whose_work(work).because, []).append(task.uid)
    return tuple(NobodysWork(because, uids[0], len(uids)) for because, uids in found.items())


def all_is_done(roles: Mapping[str, Role], limits: RouteLimits) -> bool:
    """Whether no task can be nobody's work, so that nobody needs to look: the fallback gets what is
    left. Of a fleet without nodes nothing is said either.
    """
    return not roles or limits.fallback in roles
