"""A fleet in memory with its hub, and virtual time, for tests of the sensors' stories."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from agent_node import commands as c
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.limits import HealthLimits
from arc.hub import Hub
from arc.links import Link
from arc.operations import Operation, Told
from arc.sensor import SensorReport, Wakeful
from tests.builders import a_task
from tests.hub_builders import NAMES, MemoryFleet, TimedLink, a_hub
from tests.virtual_time import LoopClock, VirtualLoop

Value = TypeVar("Value")

ROOMY = HealthLimits(disk_over=1.0)  # the disk that these stores lie on is nobody's business


def within(found: JsonValue, *way: str) -> JsonValue:
    """What lies at the end of this way through an answer or the details of a report."""
    for step in way:
        assert isinstance(found, dict), f"no object holds {step!r}: {found!r}"
        found = found[step]
    return found


def rows(found: JsonValue, *way: str) -> list[JsonObject]:
    """The objects of the list at the end of this way."""
    some = within(found, *way)
    assert isinstance(some, list), some
    objects = [one for one in some if isinstance(one, dict)]
    assert len(objects) == len(some), some
    return objects


class Scene:
    """A fleet, its hub, and virtual time; nothing happens but what the test does."""

    def __init__(self, place: Path, *, names: tuple[str, ...] = NAMES, **fields: Any) -> None:
        self.place, self.loop = place, VirtualLoop()
        self.fleet = MemoryFleet(place, self.loop, names)
        self.links: dict[str, Link] = dict(self.fleet.links())
        self.fields = {"health": ROOMY, **fields}
        self.hub: Hub = self._do(self._open())

    async def _open(self) -> Hub:
        return a_hub(self.place, LoopClock(self.loop), links=self.links, **self.fields)

    def _do(self, story: Coroutine[Any, Any, Value]) -> Value:
        return self.loop.run_until_complete(story)

    def has(self, node: str, count: int, **fields: Any) -> None:
        """So many tasks wait on a node, one of them started."""
        first = 1 + 100 * sorted(self.fleet.machines).index(node)
        tasks = tuple(a_task(number, **fields) for number in range(first, first + count))
        self.fleet.machines[node].store.apply(c.Add(tasks))

    def works(self, node: str) -> None:
        """Its program is busy with the first of them."""
        machine = self.fleet.machines[node]
        got = machine.store.apply(c.Claim(node))
        assert isinstance(got, c.Claimed)
        machine.store.apply(c.Started(got.task.uid, got.n, 42, 99, machine.clock.boot_id()))

    def passes(self, seconds: float) -> None:
        self._do(asyncio.sleep(seconds))
        self.fleet.moment.seconds = self.loop.seconds

    def run(self, sensor: str, *, woken: frozenset[str] = frozenset()) -> SensorReport:
        found = next(one for one in self.hub.sensors if one.name == sensor)
        now = self.hub.clock.now()
        if woken:
            assert isinstance(found, Wakeful)
            return self._do(found.run_woken(self.hub, now, woken))
        return self._do(found.run(self.hub, now))

    def asks(self, node: str, do: str, **fields: Any) -> JsonObject:
        return self._do(self.hub.links[node].ask(do, fields))

    def tells(self, operation: Operation, **args: Any) -> Told:
        """What came of one operation of the hub."""

        async def story() -> Told:
            return await operation(self.hub, args)

        return self._do(story())

    def waiting(self, node: str) -> int:
        count = self.asks(node, "status")["pending_count"]
        assert isinstance(count, int)
        return count

    def link(self, node: str) -> TimedLink:
        """The way to a node, as the hub has it now."""
        link = self.hub.links[node]
        assert isinstance(link, TimedLink)
        return link

    def off(self, node: str) -> None:
        self.fleet.machines[node].off = True

    def close(self) -> None:
        self._do(self.hub.close())
        self.loop.close()
        self.fleet.close()
