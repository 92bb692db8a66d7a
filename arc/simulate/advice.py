"""Looks for limits that would have been better on the same scenes, one change at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from arc.errors import WrongUse

from .comparing import Figure, figure
from .engine import simulate
from .ledger import FIRST, Ended
from .policies import Policy, with_limits
from .scene import Scene

RUNS_MAX = 400  # simulated runs of one search
TASKS_MAX = 400_000  # of all of these runs together: the search ends there, and says so
ROUNDS = 4
ROUNDS_SURE = 2  # for so many there is room where large scenes are cut to their beginnings
BETTER = 0.03  # a change has to take off at least so much of the mean wait
URGENT_WORSE = 1.02  # and urgent work may not wait longer than by this factor
MOVES_MAX = 0.6  # thefts a task: beyond that, work wanders
# What is tried, each alone: the key of fleet.yaml's `rebalance`, and values.
TRIED: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "arc0": (
        ("every", ("1m", "2m", "10m")), ("on_idle", ("true",)), ("idle_min", ("0s", "30s", "1m")),
        ("busy_over", ("0", "1", "2", "3")), ("steal_from", ("P1", "P3")), ("per_node", ("1", "6")),
        ("per_cycle", ("30",)), ("anyone_from", ("P5",)),
    ),
    "swift": (
        ("gain_min", ("10s", "1m", "2m")), ("transfer", ("1s", "15s")), ("hops", ("1", "4")),
        ("task_takes", ("1m", "30m")),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One line of fleet.yaml that would be another, and what it brings on the way there."""

    key: str  # of `rebalance`
    value: str
    wait_before: Figure
    wait_after: Figure
    idle_before: float
    idle_after: float
    thefts_after: float


@dataclass(frozen=True)
class Advice:
    """What the search found. `cut`: it ended before all that it would have tried."""

    policy: str
    changes: tuple[Change, ...]
    runs: int
    cut: bool
    better_policy: str = ""  # one that was compared as well, and is better than all of these
    because: str = ""
    first: int = 0  # so many tasks from each scene's beginning were looked at; 0: all
    scenes: int = 0  # with one alone there is no interval


def beginnings(scenes: Sequence[Scene], policy: Policy) -> tuple[tuple[Scene, ...], int]:
    """The scenes as far as a search can go through them, and how many tasks of each these are; 0:
    they are whole. Whole they are, too, where so few tasks would all lie before what is measured.
    """
    one_round = _one_round(policy.steal.policy)
    if sum(len(scene.jobs) for scene in scenes) * one_round <= TASKS_MAX:
        return tuple(scenes), 0
    first = TASKS_MAX // (ROUNDS_SURE * one_round * len(scenes))
    if any(len(scene.jobs) > first and scene.jobs[first].at_ms <= scene.measured_from_ms
           for scene in scenes):  # fmt: skip
        return tuple(scenes), 0
    return tuple(_beginning(scene, first) for scene in scenes), first


def _beginning(scene: Scene, first: int) -> Scene:
    if len(scene.jobs) <= first:
        return scene
    return replace(scene, jobs=scene.jobs[:first], measured_to_ms=scene.jobs[first].at_ms)


def advise(
    policy: Policy, scenes: Sequence[Scene], *, heard: Callable[[int], None] | None = None
) -> Advice:
    """The changes to this policy's limits that cut the mean wait most, found one after the other.
    `heard` is told how many runs there were so far.

    Each change is judged on the same seeds: the 95 % interval of what it saves, seed by seed, has
    to lie above nothing; one scene alone has no interval, and is said to have none. Bounded: the
    same scenes give the same advice. Where the bound is reached before each change was tried once,
    nothing is run, for nothing could be said.
    """
    family = policy.steal.policy
    tasks = sum(len(scene.jobs) for scene in scenes) or 1
    runs_left = min(RUNS_MAX, TASKS_MAX // tasks * len(scenes))
    search = _Search(scenes, runs_left, heard)
    if runs_left < _one_round(family) * len(scenes):
        return Advice(policy.name, (), 0, cut=True, scenes=len(scenes))
    now, ended, changes = policy, search.run(policy), []
    for _ in range(ROUNDS if ended else 0):
        best = None
        for key, values in TRIED.get(family, ()):
            for value in values:
                found = search.tried(now, ended, key, value)
                if found and (best is None or found[0] > best[0]):
                    best = found
        if best is None:
            break
        _, now, after, change = best
        changes.append(change)
        ended = after
    return Advice(policy.name, tuple(changes), search.runs, search.cut, scenes=len(scenes))


def _one_round(family: str) -> int:
    """How many runs it takes of each scene to try each change once."""
    return 1 + sum(len(values) for _, values in TRIED.get(family, ()))


def mean_wait_s(policy: Policy, scenes: Sequence[Scene]) -> float:
    """By this policy, over these scenes."""
    return fmean(_wait(simulate(scene, policy)) for scene in scenes)


class _Search:
    def __init__(
        self, scenes: Sequence[Scene], runs_left: int, heard: Callable[[int], None] | None
    ) -> None:
        self.scenes, self.left, self.heard = scenes, runs_left, heard
        self.runs, self.cut = 0, False

    def run(self, policy: Policy) -> tuple[Ended, ...]:
        """Empty: the search is at its end."""
        if self.left < len(self.scenes):
            self.cut = True
            return ()
        self.left -= len(self.scenes)
        self.runs += len(self.scenes)
        if self.heard is not None:
            self.heard(self.runs)
        return tuple(simulate(scene, policy) for scene in self.scenes)

    def tried(
        self, base: Policy, before: Sequence[Ended], key: str, value: str
    ) -> tuple[float, Policy, tuple[Ended, ...], Change] | None:
        """How much this change would save, and what came of it; None: it is not worth it."""
        try:
            policy = with_limits(base, {key: value})
        except WrongUse:
            return None
        if policy.limits_like(base):
            return None
        after = self.run(policy)
        if not after or not _better(before, after):
            return None
        was, now = [_wait(one) for one in before], [_wait(one) for one in after]
        change = Change(key, value, figure(was), figure(now), _idle(before), _idle(after),
                        fmean(_per_task(one) for one in after))  # fmt: skip
        return fmean(was) - fmean(now), policy, after, change


def _better(before: Sequence[Ended], after: Sequence[Ended]) -> bool:
    saved = figure([_wait(was) - _wait(now) for was, now in zip(before, after, strict=True)])
    enough = saved.mean > BETTER * fmean(map(_wait, before)) and saved.low > 0
    urgent = fmean(_wait(one, FIRST) for one in after)
    patient = urgent <= URGENT_WORSE * fmean(_wait(one, FIRST) for one in before)
    return enough and patient and fmean(map(_per_task, after)) <= MOVES_MAX


def _wait(run: Ended, band: str = "all") -> float:
    some = run.waits_s.get(band, ())
    return fmean(some) if some else 0.0


def _idle(runs: Sequence[Ended]) -> float:
    return fmean(run.idle_beside_work or 0.0 for run in runs)


def _per_task(run: Ended) -> float:
    return run.thefts_counted / run.tasks if run.tasks else 0.0
