"""Lets a real hub live through a scene: its own schedule, ears, sensors and transfers; one clock.

The machines are those of `tests.fleet_in_memory`, in calm weather; a daemon of theirs starts what
it can, and tells its news as the real one does.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from agent_node import commands as c
from agent_node.news import Seen, news_between
from agent_node.strict import JsonObject
from agent_node.task import task_from
from arc.hub import Hub
from arc.links import EventHeard
from arc.running import run_hub
from arc.schedule import RunTold
from arc.settings import NodeEntry, SensorEntry
from arc.simulate.policies import Policy
from arc.simulate.scene import INBOX, MS, Job, Scene
from tests.fleet.machines import Machine
from tests.hub_builders import MemoryFleet, TimedLink, a_hub, scheduler_time
from tests.virtual_time import LoopClock, VirtualLoop

AFTER_S = 1.0  # the hub is stopped so long after the last moment that is compared


class Move(NamedTuple):
    """One move: when its cycle made it, and what it moved."""

    at_ms: int
    uid: str
    busy: str
    idle: str


class Life:
    """What happens beside the hub: jobs come, daemons start and end them, and tell news of it."""

    def __init__(self, scene: Scene, fleet: MemoryFleet) -> None:
        self.scene, self.fleet, self.loop = scene, fleet, fleet.loop
        self.jobs = {job.uid: job for job in scene.jobs}
        self.heard: dict[str, EventHeard] = {}
        self.starts: dict[str, tuple[str, int]] = {}
        self.begun_ms: dict[str, int] = {}  # transfer: when it was carried out
        self._told: dict[str, Seen] = dict.fromkeys(fleet.machines, ())
        for place in scene.places:
            row = c.AgentRow(place.name, place.slots, ())
            fleet.machines[place.name].store.apply(c.SetAgents((row,)))

    @property
    def now_ms(self) -> int:
        return round(self.loop.seconds * MS)

    def machine(self, name: str) -> Machine:
        """One machine, at the moment that it is."""
        self.fleet.moment.seconds = self.loop.seconds
        return self.fleet.machines[name]

    def begins(self, hub: Hub) -> None:
        """From now on every job comes at its moment."""
        for job in self.scene.jobs:
            self.loop.call_at(job.at_ms / MS, self._comes, hub, job)

    def _comes(self, hub: Hub, job: Job) -> None:
        if job.home == INBOX:
            self.fleet.moment.seconds = self.loop.seconds
            self.loop.create_task(hub.inbox.ask("add", {"tasks": [fields_of(job)]}))
            return
        self.machine(job.home).store.apply(c.Add((task_from(fields_of(job)),)))
        self.gets_on(job.home)

    def gets_on(self, name: str) -> None:
        """A turn of the daemon: it starts what it can, and says what is new."""
        machine, news = self.machine(name), list[str]()
        machine.wake()
        while isinstance(got := machine.store.apply(c.Claim(name)), c.Claimed):
            uid = got.task.uid
            machine.store.apply(c.Started(uid, got.n, 42, 99, machine.clock.boot_id()))
            self.starts[uid] = (name, self.now_ms)
            news.append("task_started")
            ends_s = (self.now_ms + self.jobs[uid].takes_ms) / MS
            self.loop.call_at(ends_s, self._ends, name, uid, got.n)
        if name in self.heard:
            report = machine.answers.desk.looks.now().report
            said, self._told[name] = news_between(self._told[name], report)
            for event in (*news, *said):
                self.heard[name](name, event)

    def _ends(self, name: str, uid: str, n: int) -> None:
        self.machine(name).store.apply(c.Finish(uid, n, c.Result("completed")))
        self.gets_on(name)


class ToldLink(TimedLink):
    """A link at whose other end a daemon lives; what is held there has travelled for so long."""

    def __init__(self, machine: Machine, life: Life, travel_s: float) -> None:
        super().__init__(machine, life.fleet)
        self.life, self.travel_s = life, travel_s

    async def ask(self, do: str, fields: Any = None, *, timeout_s: float | None = None) -> Any:
        if do == "hold":
            for offer in fields["moves"]:
                self.life.begun_ms[str(offer["xfer"])] = self.life.now_ms
        said = await super().ask(do, fields, timeout_s=timeout_s)
        if do == "hold":
            await asyncio.sleep(self.travel_s)
        self.life.loop.call_soon(self.life.gets_on, self.name)
        return said

    async def listen(self, heard: EventHeard) -> None:
        self.life.heard[self.name] = heard
        self.life.loop.call_soon(self.life.gets_on, self.name)


def lived(
    place: Path, scene: Scene, policy: Policy, until_ms: int
) -> tuple[list[Move], dict[str, tuple[str, int]]]:
    """Every move that the hub made, in its order, and where and when each task started."""
    loop = VirtualLoop()
    with closing(loop), closing(MemoryFleet(place, loop, names(scene))) as fleet:
        life, runs = Life(scene, fleet), list[RunTold]()

        async def story() -> None:
            links = {name: ToldLink(machine, life, policy.transfer_s)
                     for name, machine in fleet.machines.items()}  # fmt: skip
            hub = a_hub(place, LoopClock(loop), links=links, **settings_of(scene, policy))
            life.begins(hub)
            stop = asyncio.Event()
            loop.call_at(until_ms / MS + AFTER_S, stop.set)
            await run_hub(hub, stop=stop, heard=runs.append)

        with scheduler_time(LoopClock(loop)):
            loop.run_until_complete(story())
            loop.run_until_complete(asyncio.sleep(0))
    said = [one for run in runs for one in run.report.moves]
    assert {one.outcome for one in said} <= {"moved"}, said
    assert {run.report.outcome for run in runs} <= {"done", "skipped"}
    made = [Move(life.begun_ms[one.xfer], one.uid, one.busy, one.idle) for one in said]
    return made, life.starts


def names(scene: Scene) -> tuple[str, ...]:
    """Of its nodes."""
    return tuple(place.name for place in scene.places)


def settings_of(scene: Scene, policy: Policy) -> dict[str, Any]:
    """What fleet.yaml would say."""
    nodes = tuple(
        NodeEntry(place.name, host=f"{place.name}.lan", owns=place.role.owns,
                  also=place.role.also, never=place.role.never) for place in scene.places
    )  # fmt: skip
    return {
        "policy": policy.steal.policy, "steal": policy.steal, "route": policy.route,
        "on_idle": policy.on_idle, "nodes": nodes, "domains": scene.domains,
        "entries": {"fleet-router": SensorEntry(policy.router_s),
                    "fleet-health": SensorEntry(policy.look_s),
                    "fleet-rebalance": SensorEntry(policy.every_s)},
    }  # fmt: skip


def fields_of(job: Job) -> JsonObject:
    """The job as it is added."""
    kind = job.kind
    return {
        "uid": job.uid, "subject": kind.subject, "priority": job.priority,
        "skills": list(kind.skills), "pinned": kind.pinned,
        **({"domain": kind.domain} if kind.domain else {}),
    }  # fmt: skip
