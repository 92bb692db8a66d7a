"""A whole fleet on one virtual clock: a seed is a story of nodes, a forgetful hub and bad weather.

`python -m tests.fleet_in_memory SEED [careless]` tells one seed again, step by step.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from agent_node import commands as c
from agent_node.queries import Doubts, Facts
from agent_node.ulid import new_ulid
from arc.decisions.explain import Steal
from arc.decisions.limits import RouteLimits, StealLimits
from arc.decisions.view import FleetView, Queue, QueuedTask
from arc.errors import ArcError
from arc.hub import INBOX, Hub
from arc.journal import Journal
from arc.lease import Identity, Lease
from arc.links import HelloWords, Link
from arc.queues import look_into
from arc.sensor import SensorReport
from arc.settings import FleetSettings, NodeEntry
from arc.settling import settle
from arc.survey import survey
from arc.transfer import carry_out
from sensors import find_sensors
from tests.builders import START, FakeClock, a_task, uid
from tests.fleet.graphs import SmallGraph
from tests.fleet.machines import FATES, HubDied, Machine, MemoryLink, Moment, Weather, memory
from tests.fleet.money import Costs
from tests.virtual_time import VirtualLoop

NAMES = ("forge", "iris", "loom")
QUEUES = (*NAMES, INBOX)
SENSORS = ("fleet-rebalance", "fleet-router", "fleet-health", "fleet-graphs")
TASKS, MOVES = 12, 4
MEMBERS = 3  # of them, in a graph
INSTANCE = "01J0000000000000000000000A"
DEATHS = ("hub_dies_before", "hub_dies_after", "node_dies_before", "node_dies_after")
ROUNDS_MAX = 60
RETRY_S = 700.0  # no failed task waits longer for its next attempt
Mover = Callable[["Story", FleetView], Any]


@dataclass
class Told:
    """What a seed came to, as the checker counts it from what the programs themselves did."""

    seed: int
    twice: list[str] = field(default_factory=list)  # a program started again, or beside itself
    lost: list[str] = field(default_factory=list)  # no program ever ran, and no node has it
    stuck: list[str] = field(default_factory=list)  # some node has it, and it never gets on
    odd: list[str] = field(default_factory=list)  # of the graph: an edge or an end that was not so
    moved: int = 0
    by_sensors: Counter[str] = field(default_factory=Counter)  # of them, by who planned them
    settled: int = 0
    happened: Counter[str] = field(default_factory=Counter)

    @property
    def faults(self) -> list[str]:
        return [f"{name} {one}" for name in ("twice", "lost", "stuck", "odd")
                for one in getattr(self, name)]  # fmt: skip


class Story:
    """One seed: what happens next is the dice's to say, and everything else is the product."""

    def __init__(self, seed: int, place: Path, *, mover: Mover | None = None) -> None:
        self.told, self.dice = Told(seed), Random(seed)
        self.mover = mover or move_by_escrow
        self.moment = Moment()
        self.machines = {
            name: Machine(place, name, self.moment, off_s=self.dice.uniform(-90, 90))
            for name in QUEUES
        }
        self.machines[INBOX].dispatches(running=False)
        self.weather = Weather(self.dice, self.machines, self._plan_weather(), chance=0.06)
        self.weather.time_passes = self.time_passes
        self.running: dict[str, tuple[str, c.Claimed]] = {}
        self.started: Counter[str] = Counter()
        self.log: list[str] = []
        uids = [uid(number) for number in range(1, TASKS + 1)]
        self.costs = Costs(seed, uids, plain=self.mover is move_carelessly)
        self.costs.begin(self.machines)
        self.settings = _settings(place, self.dice)
        (place / "journal.db").write_bytes(_journal())
        self.hub = self._new_hub()
        self._add_work()

    def _plan_weather(self) -> dict[int, str]:
        """Each kind of trouble once at least, among the first words of the first transfers."""
        kinds = [*FATES, self.dice.choice(DEATHS[:2]), self.dice.choice(DEATHS[2:])]
        return dict(zip(self.dice.sample(range(1, 15), len(kinds)), kinds, strict=True))

    @property
    def links(self) -> dict[str, Link]:
        """The links of the hub that lives now."""
        return self.hub.links

    def _new_hub(self) -> Hub:
        """All that a hub knows when it starts: who it is, where the nodes are, and its journal."""
        words = HelloWords("arc0", "arc", 1, INSTANCE, {"version": "1"})
        links: dict[str, Link] = {
            name: MemoryLink(machine, words, self.weather)
            for name, machine in self.machines.items()
        }
        clock, state = self.machines[INBOX].clock, self.settings.state
        return Hub(
            settings=self.settings, links=links, inbox=links[INBOX],
            journal=Journal(state / "journal.db", clock),
            lease=Lease(state, Identity("arc", INSTANCE, "here", 1), copied=False), clock=clock,
            rng=self.dice, sensors=find_sensors(self.settings, offered=()).sensors,
        )  # fmt: skip

    def _add_work(self) -> None:
        loose = TASKS - MEMBERS
        where = self.dice.choices(self.dice.sample(QUEUES, 2), weights=[2, 1], k=loose)
        for name, machine in self.machines.items():
            tasks = tuple(
                a_task(
                    number, priority=self.dice.randint(1, 10), body="x" * number,
                    **self.costs.of(uid(number)),
                )
                for number, place in enumerate(where, start=1)
                if place == name
            )
            machine.store.apply(c.Add(tasks))
        self.graph = SmallGraph(self.dice, range(loose + 1, TASKS + 1),
                                self.dice.choice([INBOX, INBOX, *NAMES]), self.costs)  # fmt: skip
        self.graph.submit(self.machines)

    def mint(self) -> str:
        return new_ulid(int(START.timestamp() * 1000 + self.moment.seconds * 1000),
                        self.dice.randbytes(10))  # fmt: skip

    # What happens beside the hub.

    def time_passes(self, seconds: float) -> None:
        self.moment.seconds += seconds
        for machine in self.machines.values():
            machine.wake()

    def programs_get_on(self, *, eager: bool) -> None:
        """Programs end, and others start in their place."""
        for number, (name, got) in list(self.running.items()):
            if eager or self.dice.random() < 0.3:
                del self.running[number]
                result = self.graph.result(got.task.uid)
                finish = c.Finish(got.task.uid, got.n, result)
                said = self.machines[name].store.apply(finish)
                if self.costs.ends(got.task.uid, name, said, result.cost_usd):
                    self.graph.ends(got.task.uid)
        for name in NAMES:
            if eager or (self.dice.random() < 0.12 and self._enough_waits()):
                self._claim(name, self.machines[name])

    def _enough_waits(self) -> bool:
        """Whether more tasks wait than there are moves to be made: who runs them all has none."""
        ready = [one.store.read(Facts()).counts.get("READY", 0) for one in self.machines.values()]
        return sum(ready) > MOVES - self.told.moved

    def _claim(self, name: str, machine: Machine) -> None:
        got = machine.store.apply(c.Claim(name))
        if isinstance(got, c.NothingToClaim):
            return
        number = got.task.uid
        self.started[number] += 1
        self.log.append(f"{self.moment.seconds:7.1f} {name} starts {number[-2:]}")
        if self.started[number] > 1 + self.costs.failed[number]:
            self.told.twice.append(f"{number} on {name}")
        self.running[f"{number} {name} {got.n}"] = (name, got)
        machine.store.apply(c.Started(number, got.n, 4242, 99, machine.clock.boot_id()))
        self.costs.starts(number, self.machines)
        self.told.odd += self.graph.starts(number, machine, got.n)
        self.told.odd += self.costs.overspent(machine)

    # The hub.

    async def cycle(self) -> None:
        """One cycle of the hub, or as much of it as it lives through."""
        (sensor,) = self.dice.choices([None, *SENSORS], weights=[10, 7, 4, 1, 1])
        try:
            if sensor is not None and self.mover is move_by_escrow:
                await self._run(sensor)
            else:
                await self._by_hand()
        except HubDied:
            await self._bury()
        for machine in self.machines.values():
            self.told.odd += self.costs.overspent(machine)

    async def _run(self, name: str) -> None:
        """One of the product's own sensors looks, decides and acts."""
        (sensor,) = [one for one in self.hub.sensors if one.name == name]
        report: SensorReport = await sensor.run(self.hub, self.hub.clock.now())
        moved = sum(one.outcome == "moved" for one in report.moves)
        self.told.moved += moved
        self.told.by_sensors[name] += moved
        self.log.append(f"{self.moment.seconds:7.1f} {name}: {report.summary}")

    async def _by_hand(self) -> None:
        """The same steps, with moves that no plan would make."""
        view = await survey(self.links, roles={}, clock=self.hub.clock)
        done = await settle(self.links, view)
        self.told.settled += sum(one.outcome == "settled" for one in done)
        odd = [one for one in done if one.outcome == "needs_person"]
        self.told.stuck += [f"{one.uid}: {one.because}" for one in odd]
        await self.mover(self, view)

    async def _bury(self) -> None:
        """Whatever of the dead hub was still waiting ends; a new one knows nothing."""
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        self.log.append(f"{self.moment.seconds:7.1f} the hub dies")
        self.hub.journal.close()
        self.hub = self._new_hub()

    async def tell(self) -> Told:
        """Bad weather until enough has happened, then quiet until everything ought to be done."""
        self.programs_get_on(eager=False)
        for _ in range(ROUNDS_MAX):
            await self.cycle()
            self.time_passes(self.dice.choice([0.5, 5, 20, 65]))
            self.weather.deliver_late()
            if self.told.moved >= MOVES or self.dice.random() < 0.3:
                self.programs_get_on(eager=False)
            if self.told.moved >= MOVES and not self.weather.planned:
                break
        await self._quiet()
        self._count()
        return self.told

    async def _quiet(self) -> None:
        self.weather.planned.clear()
        self.weather.chance = 0.0
        while self.weather.bag:
            self.weather.deliver_late()
        careless = self.mover is move_carelessly
        self.mover = empty_the_inbox
        for _ in range(3):
            await self.cycle()
            self.time_passes(30)
            if not any(self._unsettled(machine) for machine in self.machines.values()):
                break  # a further cycle would find nothing to do
        self._programs_end()
        for _ in range(0 if careless else self.costs.attempts_max):
            waits_s = self.costs.waits(self.machines)
            if waits_s is None and not self._waiting() and self.graph.is_over(self.machines):
                break
            self.time_passes(waits_s or RETRY_S)
            await self._run("fleet-graphs")
            await empty_the_inbox(self, FleetView(START))
            self._programs_end()

    def _unsettled(self, machine: Machine) -> bool:
        """Whether some transfer is not over here, or the hub's own queue still has work to give."""
        waits = machine.name == INBOX and machine.store.read(Facts()).counts.get("READY", 0)
        return bool(waits or machine.store.read(Doubts()))

    def _waiting(self) -> list[str]:
        """Tasks that have to run, and have not come to their last end."""
        return [number for number in self.costs.failing
                if number not in self.costs.ended and self.graph.runs(number)]  # fmt: skip

    def _programs_end(self) -> None:
        for _ in range(2 * TASKS):
            before = self.started.total()
            self.programs_get_on(eager=True)
            if not self.running and self.started.total() == before:
                break

    def _count(self) -> None:
        """From the rows that are there now, and from what the programs did."""
        self.told.happened = self.weather.happened
        rows: dict[str, list[str]] = {uid(number): [] for number in range(1, TASKS + 1)}
        for name, machine in self.machines.items():
            for number, state in machine.store._db.execute("SELECT uid, state FROM task"):
                rows.setdefault(number, []).append(f"{state} at {name}")
        self.told.odd += self.graph.faults(self.machines)
        self.told.odd += self.costs.faults(self.machines, self.graph.home, self.graph.members)
        for number in self._waiting():
            places = rows[number]
            (self.told.stuck if places else self.told.lost).append(f"{number} {', '.join(places)}")

    def close(self) -> None:
        self.hub.journal.close()
        for machine in self.machines.values():
            machine.close()


def _settings(place: Path, dice: Random) -> FleetSettings:
    """A fleet in which nearly every move is allowed, so that many are made."""
    steal = StealLimits(policy=dice.choice(["arc0", "swift"]), idle_min_s=0.0, busy_over=1,
                        steal_from=1, anyone_from=1)  # fmt: skip
    return FleetSettings(
        "arc0", "arc", place / "fleet.yaml", place, policy=steal.policy, steal=steal,
        route=RouteLimits(policy=steal.policy, fallback="forge", fallback_after=1),
        nodes=tuple(NodeEntry(name, local=True) for name in NAMES),
    )  # fmt: skip


@cache
def _journal() -> bytes:
    """A journal that was opened once."""
    with tempfile.TemporaryDirectory(prefix="arc-template-", dir=memory()) as made:
        path = Path(made) / "journal.db"
        Journal(path, FakeClock()).close()
        return path.read_bytes()


async def empty_the_inbox(story: Story, view: FleetView) -> None:
    """Nothing runs at the hub itself: what is left there goes to a node."""
    tasks = await _candidates(story, INBOX, "forge")
    await carry_out(
        [Steal(story.mint(), task, INBOX, "forge", "the end") for task in tasks], story.links
    )


async def move_by_escrow(story: Story, view: FleetView) -> None:
    """Some tasks of one or two nodes go elsewhere, by the product's own transfer."""
    steals: list[Steal] = []
    for giver in story.dice.sample(QUEUES, story.dice.randint(1, 2)):
        taker = story.dice.choice([name for name in QUEUES if name != giver])
        tasks = (await _candidates(story, giver, taker))[: story.dice.randint(1, 3)]
        steals += [Steal(story.mint(), task, giver, taker, "by chance") for task in tasks]
    outcomes = await carry_out(steals, story.links, lease_s=story.dice.choice([10.0, 60.0]))
    story.told.moved += sum(one.outcome == "moved" for one in outcomes)
    for one in outcomes:
        steal = one.steal
        story.log.append(
            f"{story.moment.seconds:7.1f} {steal.xfer[-4:]} {steal.task.uid[-2:]} {steal.busy} ->"
            f" {steal.idle}: {one.outcome} {one.rule}"
        )


async def _candidates(story: Story, giver: str, taker: str) -> list[QueuedTask]:
    request: dict[str, Any] = {"why": "moved", "for": [{"node": taker}], "limit": 10}
    queue = (await look_into(story.links, [giver], request))[giver]
    tasks = list(queue.tasks) if isinstance(queue, Queue) else []
    story.dice.shuffle(tasks)
    return tasks


async def move_carelessly(story: Story, view: FleetView) -> None:
    """The negative control: create it there, then close it here, as it is done elsewhere."""
    taker = story.dice.choice(NAMES)
    giver = story.dice.choice([name for name in QUEUES if name != taker])
    for task in (await _candidates(story, giver, taker))[:2]:
        with suppress(ArcError):
            shown = await story.links[giver].ask("show", {"uid": task.uid})
            document = dict(shown["task"])  # type: ignore[arg-type]
            copy = {name: document[name] for name in ("uid", "subject", "body", "priority")}
            await story.links[taker].ask("add", {"tasks": [copy]})
            await story.links[giver].ask("cancel", {"uid": task.uid, "reason": "moved"})
            story.told.moved += 1


def tell(seed: int, *, mover: Mover | None = None, aloud: bool = False) -> Told:
    """The whole story of one seed, in a folder of its own that is gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="arc-fleet-", dir=memory()))
    loop = VirtualLoop()
    try:
        with closing(Story(seed, place, mover=mover)) as story:
            try:
                return loop.run_until_complete(story.tell())
            finally:
                if aloud:
                    print("\n".join(story.log))
    finally:
        loop.close()
        shutil.rmtree(place)


def replay(seed: int) -> str:
    """The line that tells this seed again."""
    return f".venv/bin/python -m tests.fleet_in_memory {seed}"


if __name__ == "__main__":
    careless = move_carelessly if "careless" in sys.argv[2:] else None
    print(tell(int(sys.argv[1]), mover=careless, aloud=True))
