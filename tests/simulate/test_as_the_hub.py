"""The simulator and a real hub over real stores, shown the same events, make the same moves."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.task import task_from
from arc.decisions.explain import Steal
from arc.decisions.waking import REBALANCE, ROUTER
from arc.settings import NodeEntry
from arc.simulate.engine import Run, jobs_in_order
from arc.simulate.policies import Policy, parse_policy
from arc.simulate.scene import INBOX, Job, Kind, Place, Scene
from tests.builders import START
from tests.fleet_builders import DOMAINS, ROLES
from tests.hub_builders import NAMES, TimedLink
from tests.sensors_stage import Scene as Stage

KINDS = (
    Kind(domain="research"), Kind(skills=("ci",)), Kind(domain="protocol"), Kind(),
    Kind(skills=("deploy",)), Kind(subject="Research: a thing"),
    Kind(domain="research", pinned=True), Kind(domain="integrations"),
)  # fmt: skip
POLICIES = (
    "arc0", "arc0:every=1m,idle_min=30s,busy_over=1,per_node=2", "arc0:on_idle=true,idle_min=20s",
    "swift", "swift:gain_min=1m", "arc0:steal_from=P1,anyone_from=P3,busy_over=0,idle_min=0s",
)  # fmt: skip

HEALTH = "fleet-health"
Moves = list[tuple[str, str, str]]


@dataclass
class Cycle:
    """One cycle of the simulated hub: when, which sensor, and what it moved."""

    at_ms: int
    sensor: str
    counted: bool
    moves: Moves


class Recorded(Run):
    """A simulated run that writes down every cycle, those that find nothing too."""

    def __init__(self, scene: Scene, policy: Policy) -> None:
        super().__init__(scene, policy, hurried=False)
        self.told: list[Cycle] = []
        steal, route = self.hub._steal, self.hub._route

        def stealing(now_ms: int) -> tuple[Steal, ...]:
            return self._tell(now_ms, REBALANCE, steal(now_ms))

        def routing(now_ms: int, *, counted: bool) -> tuple[Steal, ...]:
            return self._tell(now_ms, ROUTER, route(now_ms, counted=counted), counted=counted)

        hear = self.experience.hear

        def hearing(now_ms: int) -> None:
            hear(now_ms)
            self.told.append(Cycle(now_ms, HEALTH, counted=True, moves=[]))

        self.hub._steal, self.hub._route = stealing, routing  # type: ignore[method-assign]
        self.experience.hear = hearing  # type: ignore[method-assign]

    def _tell(
        self, now_ms: int, sensor: str, moves: tuple[Steal, ...], *, counted: bool = False
    ) -> tuple[Steal, ...]:
        made = [(one.task.uid, one.busy, one.idle) for one in moves]
        self.told.append(Cycle(now_ms, sensor, counted, made))
        return moves


@dataclass
class Real:
    """Real stores behind real answers, with programs that run as long as the jobs say."""

    stage: Stage
    jobs: dict[str, Job]
    ends: list[tuple[int, str, str, int]] = field(default_factory=list)
    started: dict[str, tuple[str, int]] = field(default_factory=dict)

    def goes_to(self, at_ms: int) -> None:
        self.stage.passes(at_ms / 1000 - self.stage.loop.seconds)
        for machine in self.stage.fleet.machines.values():
            machine.wake()

    def comes(self, job: Job, now_ms: int) -> None:
        if job.home == INBOX:
            self.stage.asks(INBOX, "add", tasks=[task_fields(job)])
        else:
            task = task_from(task_fields(job))
            self.stage.fleet.machines[job.home].store.apply(c.Add((task,)))
        self.starts(now_ms)

    def starts(self, now_ms: int) -> None:
        """Every daemon takes what it can."""
        for name, machine in sorted(self.stage.fleet.machines.items()):
            while isinstance(got := machine.store.apply(c.Claim(name)), c.Claimed):
                uid = got.task.uid
                started = c.Started(uid, got.n, 42, 99, machine.clock.boot_id())
                machine.store.apply(started)
                self.started[uid] = (name, now_ms)
                ends_ms = now_ms + self.jobs[uid].takes_ms
                heapq.heappush(self.ends, (ends_ms, uid, name, got.n))

    def end_those_of(self, now_ms: int) -> None:
        while self.ends and self.ends[0][0] <= now_ms:
            _, uid, name, n = heapq.heappop(self.ends)
            self.stage.fleet.machines[name].store.apply(c.Finish(uid, n, c.Result("completed")))
            self.starts(now_ms)

    def cycles(self, cycle: Cycle) -> Moves:
        if cycle.sensor == HEALTH:
            self.stage.run(HEALTH)
            return []
        woken = frozenset() if cycle.counted or cycle.sensor == REBALANCE else frozenset(NAMES)
        report = self.stage.run(cycle.sensor, woken=woken)
        assert all(one.outcome == "moved" for one in report.moves), report.moves
        self.starts(cycle.at_ms)
        return [(one.uid, one.busy, one.idle) for one in report.moves]


def task_fields(job: Job) -> dict[str, Any]:
    kind = job.kind
    return {
        "uid": job.uid, "subject": kind.subject, "priority": job.priority,
        "skills": list(kind.skills), "pinned": kind.pinned,
        **({"domain": kind.domain} if kind.domain else {}),
    }  # fmt: skip


def drawn(seed: int) -> Scene:
    """Some hours of a small fleet, with moments far enough apart to tell them apart."""
    chance = Random(seed)
    places = tuple(Place(name, 1 + chance.randrange(2), ROLES[name]) for name in NAMES)
    homes = [*NAMES, NAMES[seed % len(NAMES)], NAMES[seed % len(NAMES)], INBOX]
    jobs = [
        Job(number, 1000 * chance.randrange(1, 2400), chance.choice(homes),
            1000 * chance.randrange(5, 700), chance.choice(KINDS), chance.randint(1, 10))
        for number in range(1, 71)
    ]  # fmt: skip
    return Scene(places, jobs_in_order(jobs), DOMAINS, START)


@pytest.fixture(autouse=True)
def quick_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request takes any time: so the two clocks stay together."""
    monkeypatch.setattr(TimedLink, "takes_s", 0.0)


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(**fields: Any) -> Stage:
        made.append(Stage(tmp_path, **fields))
        return made[-1]

    yield make
    for stage in made:
        stage.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("word", POLICIES)
def test_the_real_hub_moves_the_same_tasks_between_the_same_nodes_in_the_same_order(
    stages: Callable[..., Stage], word: str, seed: int
) -> None:
    """Guards, each of which makes several of these fail when it is taken out: the age that a moved
    task brings along, its hops, and that what is on its way is nobody's to plan with.
    """
    scene, policy = drawn(seed), replace(parse_policy(word), transfer_s=0.0)
    recorded = Recorded(scene, policy)
    ended = recorded.to_the_end()
    stage = stages(steal=policy.steal, route=policy.route, on_idle=policy.on_idle, nodes=entries())
    real = Real(stage, {job.uid: job for job in scene.jobs})
    for place in scene.places:
        agents = c.SetAgents((c.AgentRow(place.name, place.slots, ()),))
        stage.fleet.machines[place.name].store.apply(agents)
    for at_ms, what in happenings(scene, recorded.told):
        while real.ends and real.ends[0][0] <= at_ms:
            ends_ms = real.ends[0][0]
            real.goes_to(ends_ms)
            real.end_those_of(ends_ms)
        real.goes_to(at_ms)
        if isinstance(what, Job):
            real.comes(what, at_ms)
        else:
            moves = real.cycles(what)
            assert moves == what.moves, f"at {at_ms / 1000} s by {what.sensor}"
    assert sum(len(one.moves) for one in recorded.told) > 3
    compared = {uid: ended.starts[uid] for uid in real.started}
    assert real.started == compared


def happenings(scene: Scene, cycles: list[Cycle]) -> list[tuple[int, Job | Cycle]]:
    """Of one moment: jobs first, then what is heard, then cycles, as the simulator has them."""
    some: list[tuple[int, int, int, Job | Cycle]] = [
        (job.at_ms, 0, number, job) for number, job in enumerate(scene.jobs)
    ]
    some += [(cycle.at_ms, 1 + (cycle.sensor != HEALTH), number, cycle)
             for number, cycle in enumerate(cycles)]  # fmt: skip
    return [(at_ms, what) for at_ms, _, _, what in sorted(some, key=lambda one: one[:3])]


def entries() -> tuple[NodeEntry, ...]:
    return tuple(
        NodeEntry(name, host=f"{name}.lan", owns=ROLES[name].owns, also=ROLES[name].also,
                  never=ROLES[name].never) for name in NAMES
    )  # fmt: skip
