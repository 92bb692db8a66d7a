"""Runs policies side by side on the same scenes, and says how sure each figure is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent_node.rubbish import seldom

from .bounds import makespan_bound_s
from .central import able_of
from .engine import simulate
from .ledger import Ended
from .policies import Policy
from .scene import Scene

SURE = 0.95  # of the intervals: by Student's t over the seeds' means
P95 = 0.95
# Two-sided 95 % points of Student's t, by degrees of freedom; beyond the table the normal's.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL95 = 1.960


@dataclass(frozen=True)
class Figure:
    """A mean over seeds with its 95 % interval; `seeds` 1: there is no interval, `half` is None."""

    mean: float
    half: float | None
    seeds: int

    @property
    def low(self) -> float:
        """The lower end of the interval; the mean itself where there is none."""
        return self.mean - (self.half or 0.0)

    @property
    def high(self) -> float:
        """The upper end of the interval; the mean itself where there is none."""
        return self.mean + (self.half or 0.0)


@dataclass(frozen=True)
class Compared:
    """What one policy came to over all seeds. None: nothing was there to measure."""

    policy: Policy
    tasks: Figure
    makespan: Figure | None  # divided by the lower bound
    wait_s: Mapping[str, Figure]  # mean wait, by band of priority and "all"
    wait_p95_s: Mapping[str, Figure]
    idle_beside_work: Figure | None
    utilisation: Figure | None
    stranded_min: Mapping[str, Figure]  # node-minutes by rule, and "all"
    thefts_per_task: Figure
    routes_per_task: Figure
    regret: Figure | None  # of the stolen tasks: which started no earlier for it
    wait_to_bound: Figure | None = None  # mean wait over that of the central bound, seed by seed
    cycles: Figure | None = None
    never_started: int = 0


Progress = Callable[[str, int], None]  # which policy, how many of its seeds are done


def compare(
    policies: Sequence[Policy],
    scenes: Sequence[Scene],
    *,
    told: Progress = lambda policy, done: None,
) -> tuple[Compared, ...]:
    """Each policy over the same scenes, one a seed, in the order given."""
    bounds = [makespan_bound_s(scene, able_of(scene)) for scene in scenes]
    runs: dict[str, list[Ended]] = {}
    for policy in policies:
        runs[policy.name] = []
        for scene in scenes:
            with seldom():
                runs[policy.name].append(simulate(scene, policy))
            told(policy.name, len(runs[policy.name]))
    best = next((runs[one.name] for one in policies if one.central), None)
    return tuple(compared(one, runs[one.name], bounds, best) for one in policies)


def compared(
    policy: Policy, runs: Sequence[Ended], bounds: Sequence[float], best: Sequence[Ended] | None
) -> Compared:
    """Figures of the runs of one policy; `best` are those of the central bound, seed by seed."""
    bands = sorted({band for run in runs for band in run.waits_s})
    span = [run.makespan_s / bound for run, bound in zip(runs, bounds, strict=True) if bound]
    ratios = [
        _mean(run.waits_s["all"]) / _mean(least.waits_s["all"])
        for run, least in zip(runs, best or (), strict=best is not None)
        if least.waits_s["all"] and _mean(least.waits_s["all"])
    ]  # fmt: skip
    idle = [run.idle_beside_work for run in runs if run.idle_beside_work is not None]
    worked = [run.utilisation for run in runs if run.utilisation is not None]
    regrets = [run.regrets / run.stolen for run in runs if run.stolen]
    return Compared(
        policy, figure([run.tasks for run in runs]), figure(span) if span else None,
        _by_band(runs, bands, _mean), _by_band(runs, bands, _p95),
        figure(idle) if idle else None, figure(worked) if worked else None,
        _stranded(runs), figure([_per(run.thefts_counted, run.tasks) for run in runs]),
        figure([_per(run.routes, run.tasks) for run in runs]),
        figure(regrets) if regrets else None, figure(ratios) if ratios else None,
        figure([run.cycles for run in runs]), sum(run.never_started for run in runs),
    )  # fmt: skip


def figure(values: Sequence[float]) -> Figure:
    """The mean, and how far the true one may be off either way, at 95 %."""
    count, mean = len(values), _mean(values)
    if count < 2:  # noqa: PLR2004 - one seed says nothing of how far seeds differ
        return Figure(mean, None, count)
    spread = math.sqrt(sum((one - mean) ** 2 for one in values) / (count - 1))
    t = _T95[count - 2] if count - 2 < len(_T95) else NORMAL95
    return Figure(mean, t * spread / math.sqrt(count), count)


def _by_band(
    runs: Sequence[Ended], bands: Sequence[str], of: Callable[[Sequence[float]], float]
) -> dict[str, Figure]:
    every = {band: [of(run.waits_s[band]) for run in runs if run.waits_s.get(band)]
             for band in bands}  # fmt: skip
    return {band: figure(some) for band, some in every.items() if some}


def _stranded(runs: Sequence[Ended]) -> dict[str, Figure]:
    """Node-minutes by rule."""
    rules = sorted({rule for run in runs for _, rule in run.stranded_s})
    minutes = [
        {rule: sum(s for (_, by), s in run.stranded_s.items() if by == rule) / 60 for rule in rules}
        for run in runs
    ]
    found = {rule: figure([one[rule] for one in minutes]) for rule in rules}
    return {"all": figure([sum(one.values()) for one in minutes]), **found}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _p95(values: Sequence[float]) -> float:
    """Of sorted values."""
    return values[max(math.ceil(P95 * len(values)) - 1, 0)]


def _per(count: int, tasks: int) -> float:
    return count / tasks if tasks else 0.0
