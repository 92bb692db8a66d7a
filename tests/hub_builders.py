"""Builds hubs for tests: real journal, real inbox, real node stores, virtual time; no network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from arc.fuse import Fuse
from arc.hub import INBOX, Hub, domain_table
from arc.journal import Journal
from arc.lease import Lease
from arc.links import HelloWords, Link
from arc.links.inbox import InboxLink
from arc.sensor import SensorReport
from arc.settings import FleetSettings, NodeEntry, SensorEntry
from sensors import find_sensors
from tests.fleet.machines import Machine, MemoryLink, Moment, Weather
from tests.fleet_builders import DOMAINS, ROLES
from tests.virtual_time import LoopClock, VirtualLoop

NAMES = ("forge", "iris", "loom", "spark")
INSTANCE = "01J0000000000000000000000A"


def settings_for(place: Path, **fields: Any) -> FleetSettings:
    """The seed's fleet, with its own intervals."""
    entries = tuple(
        NodeEntry(name, host=f"{name}.lan", user="agent", owns=ROLES[name].owns,
                  also=ROLES[name].also, never=ROLES[name].never)
        for name in NAMES
    )  # fmt: skip
    given = {
        "fleet": "arc0", "hub": "arc", "file": place / "fleet.yaml", "state": place / ".arc",
        "nodes": entries, "domains": DOMAINS,
        "sensors": {"fleet-router": SensorEntry(1800.0), "fleet-health": SensorEntry(300.0),
                    "fleet-rebalance": SensorEntry(300.0)},
        **fields,
    }  # fmt: skip
    return FleetSettings(**given)


def a_hub(
    place: Path, clock: Any, *, links: Mapping[str, Link] | None = None, sensors: Any = None,
    entries: Mapping[str, SensorEntry] | None = None, **fields: Any,
) -> Hub:
    """A hub with these links beside its own inbox, and the product's sensors unless given.

    `entries` are what fleet.yaml says of sensors.
    """
    if entries is not None:
        fields["sensors"] = dict(entries)
    settings = settings_for(place, **fields)
    lease = Lease.take(settings.state, hub="arc", clock=clock, machine="here")
    words = HelloWords("arc0", "arc", lease.term, lease.instance, domain_table(settings.domains))
    fuse = Fuse()
    inbox = InboxLink(settings.state / INBOX, words, clock=clock, broke=fuse.blow_for_queue,
                      assume_usd=settings.assume_usd)  # fmt: skip
    found = find_sensors(settings, offered=())
    return Hub(
        settings=settings, links={**(links or {}), INBOX: inbox}, inbox=inbox,
        journal=Journal(settings.state / "journal.db", clock, broke=fuse.blow), lease=lease,
        clock=clock, rng=Random(7), fuse=fuse,
        sensors=found.sensors if sensors is None else tuple(sensors),
    )


class MemoryFleet:
    """Machines in memory on the loop's own time, each with a real store behind a real answer."""

    def __init__(self, place: Path, loop: VirtualLoop, names: tuple[str, ...] = NAMES) -> None:
        self.loop, self.moment = loop, Moment()
        (place / "nodes").mkdir(parents=True, exist_ok=True)
        self.machines = {name: Machine(place / "nodes", name, self.moment) for name in names}
        self.weather = Weather(Random(1), self.machines)
        self.words = HelloWords("arc0", "arc", 1, INSTANCE, domain_table(DOMAINS))

    def links(self) -> dict[str, MemoryLink]:
        return {name: TimedLink(machine, self) for name, machine in self.machines.items()}

    def close(self) -> None:
        for machine in self.machines.values():
            machine.close()


class TimedLink(MemoryLink):
    """A link over which every request takes a moment, and time goes on at the machine too."""

    takes_s = 0.004

    def __init__(self, machine: Machine, fleet: MemoryFleet) -> None:
        super().__init__(machine, fleet.words, fleet.weather)
        self.fleet = fleet

    async def ask(self, do: str, fields: Any = None, *, timeout_s: float | None = None) -> Any:
        await asyncio.sleep(self.takes_s)
        self.fleet.moment.seconds = self.fleet.loop.seconds
        self.machine.wake()
        return await super().ask(do, fields, timeout_s=timeout_s)


@contextmanager
def scheduler_time(clock: LoopClock) -> Iterator[None]:
    """APScheduler asks the wall itself; here it is shown the loop's time."""

    class LoopDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return clock.now().astimezone(tz)

    with patch("apscheduler.schedulers.base.datetime", LoopDatetime), \
         patch("apscheduler.triggers.interval.datetime", LoopDatetime):
        yield


class Counting:
    """A sensor that does what it is told and remembers its runs."""

    verbs: Mapping[str, str] = MappingProxyType({"status": "the last run"})

    def __init__(self, name: str, every_s: float, act: Callable[[], Any] | None = None) -> None:
        self.name, self.every_s, self.act = name, every_s, act
        self.began: list[float] = []
        self.under_way = self.most = 0

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        self.began.append(asyncio.get_running_loop().time())
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.act is not None:
                await self.act()
        finally:
            self.under_way -= 1
        return SensorReport(self.name, "done", f"run {len(self.began)}")
