"""Nodes and links for tests of the hub's moves: real queues in memory, and links that lie."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

from agent_node import commands as c
from agent_node.strict import JsonObject
from arc.asking import queued
from arc.decisions.explain import Steal
from arc.decisions.view import FleetView
from arc.links import EventHeard, HelloWords, Link, Met, Told
from arc.survey import survey
from tests.builders import a_task, uid, xfer
from tests.fleet.machines import Machine, MemoryLink, Moment, Weather

WORDS = HelloWords("arc0", "arc", 1, "01J0000000000000000000000A", {"version": "1"})
Saying = Callable[[str, JsonObject], Awaitable[JsonObject]]


class SomeNodes:
    """A few nodes at one moment, their links, and what a test wants to know of them."""

    def __init__(self, place: Path, *names: str) -> None:
        self.moment = Moment()
        self.machines = {name: Machine(place, name, self.moment) for name in names}
        self.weather = Weather(Random(1), self.machines)
        self.weather.time_passes = self.time_passes
        self.fenced: set[tuple[str, str]] = set()
        self.links: dict[str, Link] = {}
        for name, machine in self.machines.items():
            link = MemoryLink(machine, WORDS, self.weather)
            link.is_fenced = lambda node, life: (node, life) in self.fenced
            self.links[name] = link

    def link(self, name: str) -> MemoryLink:
        return cast("MemoryLink", self.links[name])

    def time_passes(self, seconds: float) -> None:
        self.moment.seconds += seconds
        for machine in self.machines.values():
            if not machine.off:
                machine.wake()

    def will(self, *fates: str) -> None:
        """What becomes of the next words of a transfer; an empty one meets with no trouble."""
        start = self.weather.messages + 1
        self.weather.planned = {start + n: fate for n, fate in enumerate(fates) if fate}

    def add(self, name: str, *numbers: int, **fields: Any) -> None:
        tasks = tuple(a_task(number, **fields) for number in numbers)
        said = self.machines[name].store.apply(c.Add(tasks))
        assert [one.outcome for one in said] == ["added"] * len(tasks)

    def steal(self, number: int, busy: str, idle: str, *, x: int | None = None) -> Steal:
        """The move of this task, as it is at the busy node."""
        said = self.machines[busy].store.read(_show(number))
        assert said is not None
        return Steal(xfer(x or number), queued(said.task), busy, idle, "a test says so")

    def states(self, number: int) -> dict[str, str]:
        """Where there is a row of the task, and its state; a kept copy is no row.

        A machine that is off says nothing.
        """
        found = {}
        for name, machine in self.machines.items():
            if machine.off:
                continue
            query = "SELECT state FROM task WHERE uid = ?"
            row = machine.store._db.execute(query, (uid(number),)).fetchone()
            if row is not None:
                found[name] = str(row[0])
        return found

    async def view(self) -> FleetView:
        return await survey(self.links, roles={}, clock=next(iter(self.machines.values())).clock)

    async def doubts(self) -> dict[str, list[str]]:
        """What each node that answers reports as not over."""
        view = await self.view()
        return {node.name: [doubt.state for doubt in node.report.doubts]
                for node in view.seen if node.report.doubts}  # fmt: skip

    def switch_off(self, name: str) -> None:
        self.machines[name].die()
        self.machines[name].off = True

    def switch_on(self, name: str) -> None:
        self.machines[name].clock.boots += 1
        self.machines[name].off = False
        self.machines[name].open()

    def close(self) -> None:
        for machine in self.machines.values():
            machine.close()


def _show(number: int) -> Any:
    from agent_node.queries import ShowTask

    return ShowTask(uid(number))


@contextmanager
def some_nodes(place: Path, *names: str) -> Iterator[SomeNodes]:
    """Nodes that are closed at the end."""
    nodes = SomeNodes(place, *names)
    try:
        yield nodes
    finally:
        nodes.close()


class ALink:
    """A link whose every answer is a test's own, and that can stand before a real one."""

    def __init__(
        self, name: str, saying: Saying, *, incarnation: str = "01J" + "0" * 23
    ) -> None:
        self.name, self._saying, self.incarnation = name, saying, incarnation
        self.requests, self.closed, self.anew = 0, 0, 0
        self.is_met = True
        self.asked: list[tuple[str, JsonObject]] = []

    @property
    def met(self) -> Met | None:
        return self._greeted() if self.is_met else None

    def _greeted(self) -> Met:
        return Met(self.name, self.incarnation, 1, 1, "active", "0.1.0", 1,
                   waits_for_hub=False, at="2026-03-10T03:45:00.000Z", clock_off_s=0.0)  # fmt: skip

    async def ask(
        self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        self.requests += 1
        self.asked.append((do, fields or {}))
        return await self._saying(do, fields or {})

    async def meet(self, *, anew: bool = False) -> Met:
        self.anew += anew
        return self._greeted()

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        return False

    async def listen(self, heard: EventHeard) -> None:
        """Nothing to tell."""

    async def close(self) -> None:
        self.closed += 1


def twisted(link: Link, twist: Callable[[str, JsonObject], JsonObject]) -> ALink:
    """The same node, but what it answers is changed on the way: `twist` gets (do, result)."""

    async def say(do: str, fields: JsonObject) -> JsonObject:
        return twist(do, await link.ask(do, fields))

    assert link.met is not None, "the node was met before"
    return ALink(link.name, say, incarnation=link.met.incarnation)


def answering(name: str, answers: Mapping[str, JsonObject]) -> ALink:
    """A node that answers these requests so, and no other."""

    async def say(do: str, fields: JsonObject) -> JsonObject:
        await asyncio.sleep(0)
        return answers[do]

    return ALink(name, say)
