"""Says how long tasks usually take, and what runs will go on, from how long others took; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_node.reports import StatusReport

    from .view import NodeSeen

ENDS_LEAST = 5  # with fewer ends of a domain nothing is typical for it
TYPICAL_LEAST_S = 0.1
FRESH_S = 15.0  # what was heard so lately is taken to hold still
OVERDUE = 1 / 4  # what takes longer than usual goes on for this share of what it took by now


@dataclass(frozen=True, slots=True)
class Runs:
    """An attempt that runs, as far as was heard."""

    since: datetime
    domain: str = ""  # "": none, or not known
    expected_s: float | None = None  # by its own word


def typical_of(lasted: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of what the last tasks of each domain took; none where too few have ended.

    A median, for one task that hung for a day must not make every other seem long.
    """
    return {
        domain: max(median(seconds), TYPICAL_LEAST_S)
        for domain, seconds in lasted.items()
        if len(seconds) >= ENDS_LEAST
    }


def runs_for(nodes: Iterable[NodeSeen]) -> dict[str, float]:
    """For how long all that runs has run at least, by the nodes of which that is known."""
    known = ((node.name, run_for_s(node.report)) for node in nodes if node.report.pending_count)
    return {name: seconds for name, seconds in known if seconds}


def run_for_s(report: StatusReport) -> float:
    """For how long all that runs there has run at least; 0: that is not known.

    For as long as something waits that its one agent could start, and none ends, every slot holds
    the same run; of several agents one may have begun beside what waits for another. Both are told
    by the node's own clock. (A pause just before counts too, and whatever else kept all that waits
    from starting, for its queue stood still as well: until the first of them ends.)
    """
    waits_s, last = report.oldest_ready_s, report.last_task
    if not waits_s or report.free_slots or report.unmet_count or not report.running_count:
        return 0.0
    if len(report.agents) > 1:
        return 0.0
    ended_at = last.get("ended_at") if last else None
    if not isinstance(ended_at, str):
        return waits_s
    try:
        since = datetime.fromisoformat(report.written_at) - datetime.fromisoformat(ended_at)
    except (ValueError, TypeError):  # of what ended last a node may say anything
        return 0.0
    return max(min(waits_s, since.total_seconds()), 0.0)


def lefts_of(
    nodes: Iterable[NodeSeen], running: Mapping[str, Sequence[Runs]],
    typical_s: Mapping[str, float], *, prior_s: float, now: datetime,
    heard_at: Callable[[str], datetime | None],
) -> dict[str, float]:  # fmt: skip
    """How long goes on what runs on each node, where as many attempts are known as it runs."""
    found: dict[str, float] = {}
    for node in nodes:
        runs = running.get(node.name, ())
        if runs and len(runs) == node.report.running_count:
            left_s = left_of(runs, typical_s, prior_s=typical_s.get("", prior_s), now=now,
                             heard_at=heard_at(node.name))  # fmt: skip
            if left_s is not None:
                found[node.name] = left_s
    return found


def left_of(
    runs: Sequence[Runs], typical_s: Mapping[str, float], *, prior_s: float, now: datetime,
    heard_at: datetime | None,
) -> float | None:  # fmt: skip
    """How long these go on, all together. None: one of them may have ended since they were heard,
    so that nothing is known.
    """
    fresh = heard_at is not None and 0 <= (now - heard_at).total_seconds() <= FRESH_S
    total = 0.0
    for one in runs:
        usual_s = one.expected_s or typical_s.get(one.domain, prior_s)
        ran_s = max((now - one.since).total_seconds(), 0.0)
        if ran_s >= usual_s and not fresh:
            return None
        total += max(usual_s - ran_s, ran_s * OVERDUE)
    return total
