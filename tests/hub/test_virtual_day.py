"""A day of `arc up` in virtual time: real sensors, plans, transfers and stores, and no network."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent_node import commands as c
from agent_node.lines import line_of
from agent_node.strict import JsonObject, JsonValue
from arc import door
from arc.cli.around import Around
from arc.cli.running import run_command
from arc.hub import Hub
from arc.operations import Told as HubTold
from arc.reception import answered
from arc.running import run_hub
from arc.schedule import RunTold
from arc.sensor import SensorReport
from arc.settings import NotifyEntry, ScheduleEntry
from tests.builders import a_task
from tests.fleet.machines import Machine
from tests.hub_builders import MemoryFleet, a_hub, scheduler_time
from tests.sensors_stage import rows
from tests.virtual_time import LoopClock, VirtualLoop

DAY_S = 24 * 3600
SKILLS: dict[str, list[JsonValue]] = {
    "iris": ["arc-research"], "loom": ["ci"], "spark": ["clarity"], "forge": ["deploy"],
}  # fmt: skip


class Day:
    """The fleet's day: work comes in at the hub and on the nodes, and programs run and end."""

    def __init__(self, fleet: MemoryFleet, dice: Random) -> None:
        self.fleet, self.dice = fleet, dice
        self.number = 0
        self.started: Counter[str] = Counter()
        self.ended: set[str] = set()
        self.running: list[tuple[str, str, int]] = []
        for name, machine in fleet.machines.items():  # each works on one task at a time
            machine.store.apply(c.SetAgents((c.AgentRow(name, 1, ()),)))

    async def live(self, hub: Hub) -> None:
        """Every minute something may come in, start, or end."""
        for minute in range(DAY_S // 60):
            await asyncio.sleep(60)
            self.fleet.moment.seconds = self.fleet.loop.seconds
            if minute % 20 == 0 and minute < 1200:
                await self.work_comes_in(hub)
            for name, machine in self.fleet.machines.items():
                machine.wake()
                await self.get_on(name, machine)

    async def work_comes_in(self, hub: Hub) -> None:
        """Some at the hub, and a pile of small things at one node, as real days have them."""
        some: list[JsonValue] = [self.a_new_task() for _ in range(3)]
        await hub.inbox.ask("add", {"tasks": some})
        pile = tuple(a_task(self.next(), priority=self.dice.randint(5, 10)) for _ in range(4))
        self.fleet.machines["iris"].store.apply(c.Add(pile))

    def a_new_task(self) -> JsonObject:
        skills: list[JsonValue] = SKILLS[self.dice.choice(sorted(SKILLS))]
        return {"subject": f"work {self.next()}", "priority": self.dice.randint(1, 10),
                "skills": skills}

    def next(self) -> int:
        self.number += 1
        return self.number

    async def get_on(self, name: str, machine: Machine) -> None:
        for attempt in [one for one in self.running if one[0] == name]:
            if self.dice.random() < 0.15:
                self.running.remove(attempt)
                machine.store.apply(c.Finish(attempt[1], attempt[2], c.Result("completed")))
                self.ended.add(attempt[1])
        if sum(one[0] == name for one in self.running) == 0:
            got = machine.store.apply(c.Claim(name))
            if isinstance(got, c.Claimed):
                uid = got.task.uid
                self.started[uid] += 1
                self.running.append((name, uid, got.n))
                machine.store.apply(c.Started(uid, got.n, 4242, 99, machine.clock.boot_id()))


Told = list[tuple[float, RunTold]]  # when each run was over, and what was told of it
Lived = tuple[Told, Day]


def a_day(
    place: Path, *, seconds: float = DAY_S,
    at_the_end: Callable[[Hub], Awaitable[None]] | None = None, **fields: Any,
) -> Lived:  # fmt: skip
    """One day; what was told of every run, and what happened to the work."""
    loop = VirtualLoop()
    clock = LoopClock(loop)
    fleet = MemoryFleet(place, loop)
    told: Told = []
    day = Day(fleet, Random(3))

    async def story() -> None:
        hub = a_hub(place, clock, links=fleet.links(), **fields)
        stop = asyncio.Event()
        living = asyncio.create_task(day.live(hub))
        ending = asyncio.create_task(end(hub, stop))
        await run_hub(hub, stop=stop, heard=lambda one: told.append((loop.time(), one)))
        living.cancel()
        await ending

    async def end(hub: Hub, stop: asyncio.Event) -> None:
        await asyncio.sleep(seconds - 1)
        try:
            if at_the_end is not None:
                await at_the_end(hub)
        finally:
            stop.set()

    with scheduler_time(clock):
        loop.run_until_complete(story())
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    fleet.close()
    return told, day


SIX: dict[str, Any] = {  # of these two sensors there is one only where they have something to do
    "schedules": (ScheduleEntry("night", "0 2 * * *", task={"subject": "x"}),),
    "notify": (NotifyEntry("ada", ("dead",), command=("true",)),),
}


class Unanswered(Exception):
    """The command line waits for the hub, whose loop is the one that runs the test."""


@dataclass
class Begun:
    """One begin of a command: it is told what was answered before, and stopped where it asks on."""

    answers: list[bytes]
    asked: bytes = b""

    def ask(self, around: Around, op: str, args: JsonObject, *, timeout_s: float) -> HubTold:
        if not self.answers:
            self.asked = line_of({"id": 1, "op": op, "args": args, "by": around.by})
            raise Unanswered
        return door._told(self.answers.pop(0))


async def typed(hub: Hub, place: Path, *words: str) -> tuple[JsonObject, int]:
    """What one command prints with `--json`: asked of the hub as it stands, in its own loop.

    A command asks and waits. Here it is stopped where it asks, and begun anew with the answers.
    """
    answers: list[bytes] = []
    while True:
        out, begun = io.StringIO(), Begun([*answers])
        around = Around(environ={}, stdin=io.BytesIO(), stdout=out, stderr=io.StringIO(),
                        ask=begun.ask, clock=hub.clock, fleet=place / "fleet.yaml")  # fmt: skip
        code = run_command(list(words), around)
        if not begun.asked:
            said: JsonObject = json.loads(out.getvalue())
            return said, code
        answers.append(line_of(await answered(hub, begun.asked)))


@pytest.fixture(scope="module")
def the_day(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    place = tmp_path_factory.mktemp("day")
    told, day = a_day(place)
    return told, day


def reports(told: Told, sensor: str) -> list[SensorReport]:
    return [run.report for _, run in told if run.report.sensor == sensor]


def test_a_day_has_48_router_and_288_rebalance_and_health_runs(the_day: Lived) -> None:
    told, _ = the_day
    assert Counter(run.report.sensor for _, run in told) == {
        "fleet-router": 48, "fleet-rebalance": 288, "fleet-health": 288, "fleet-graphs": 1440,
    }  # fmt: skip


def test_no_run_of_a_day_overlaps_another_of_its_sensor(the_day: Lived) -> None:
    told, _ = the_day
    for sensor in ("fleet-router", "fleet-rebalance", "fleet-health"):
        spans = [(run.began, run.report.took_s) for _, run in told if run.report.sensor == sensor]
        spans.sort()
        for (began, took_s), (following, _) in pairwise(spans):
            assert (following - began).total_seconds() >= took_s


def test_no_run_of_a_day_failed_and_every_run_was_written_down(the_day: Lived) -> None:
    told, _ = the_day
    assert {run.report.outcome for _, run in told} <= {"done", "skipped"}
    assert all(run.number is not None for _, run in told)


def test_tasks_moved_all_day_and_none_ran_twice(the_day: Lived) -> None:
    told, day = the_day
    routed = sum(report.acted for report in reports(told, "fleet-router"))
    stolen = sum(report.acted for report in reports(told, "fleet-rebalance"))
    assert routed > 50
    assert stolen > 20
    assert max(day.started.values()) == 1


def test_a_skipped_run_of_a_day_says_no_idle_or_no_busy_and_asked_no_queue(the_day: Lived) -> None:
    told, _ = the_day
    skipped = [one for one in reports(told, "fleet-rebalance") if one.outcome == "skipped"]
    assert {one.skipped for one in skipped} <= {"no idle", "no busy"}
    assert skipped
    for one in skipped:
        requests = one.details["requests"]
        assert isinstance(requests, dict)
        assert "candidates" not in requests


def test_a_cycle_of_five_takes_15_requests_or_says_what_for(the_day: Lived) -> None:
    told, _ = the_day
    for report in reports(told, "fleet-rebalance"):
        assert report.requests <= 15 or f"{report.requests} requests (" in report.summary


def test_every_cycle_with_an_idle_and_a_busy_node_moves_or_names_the_rule(the_day: Lived) -> None:
    """Fault of the original: 56 cycles, not one steal, and nobody could see why."""
    told, _ = the_day
    for report in reports(told, "fleet-rebalance"):
        if report.skipped is None:
            assert report.acted or report.decisions


def test_every_verb_of_every_sensor_answers_while_the_hub_runs(tmp_path: Path) -> None:
    """As it is typed, by the command line's own code; what a sensor declares is what is tried."""
    data: dict[tuple[str, str], Any] = {}

    async def try_all(hub: Hub) -> None:
        assert len(hub.sensors) == 6
        listed, _ = await typed(hub, tmp_path, "tasks", "list", "--state", "READY", "--limit", "1",
                                "--json")
        more = {"why": [str(rows(listed, "data", "tasks")[0]["uid"])], "show": ["1"]}
        for sensor in hub.sensors:
            for verb in sensor.verbs:
                said, code = await typed(hub, tmp_path, "skills", "run", "--name", sensor.name,
                                         "--json", "--", verb, *more.get(verb, []))
                assert (said["ok"], code) == (True, 0), (sensor.name, verb, said)
                data[sensor.name, verb] = said["data"]

    a_day(tmp_path, seconds=2 * 3600, at_the_end=try_all, **SIX)
    assert len(data) == 16
    assert data["fleet-rebalance", "status"]["totals"]["runs"] == 10
    why = data["fleet-rebalance", "why"]
    assert why["result"]
    assert why["steps"][0]["left"] == why["receivers"] == 3
    assert data["fleet-rebalance", "show"]["run"] == 1
    now = [verb for (_, verb), one in data.items() if "outcome" in one and verb != "show"]
    assert sorted(now) == ["check", "route", "run", "run", "steal", "tell"]
    assert all(one["sensor"] == name for (name, verb), one in data.items() if verb == "status")
