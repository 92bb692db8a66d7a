"""Runs each sensor on time and never twice at once; what one raises ends that run alone."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from apscheduler.schedulers.asyncio import (  # type: ignore[import-untyped]
    AsyncIOScheduler,
)
from apscheduler.triggers.base import BaseTrigger  # type: ignore[import-untyped]

from agent_node.clock import Clock
from agent_node.strict import JsonObject

from .errors import (
    ArcError,
    MachineFailed,
    NotFound,
    StateBroken,
    fault_of,
    machine_failed,
)
from .sensor import QUIET_S, Sensor, SensorReport, Wakeful, gives_away, is_quiet, skipped

if TYPE_CHECKING:
    from .hub import Hub

RUN_S = 900.0  # what one run may take at the very most: beyond it, somebody waits without a limit
GRACE_S = 10.0  # what runs get to end by themselves when the hub stops
CLOCK_JUMP_S = 5.0
# Of those due at the same moment it begins first, at every one: what the hub itself has is given
# out before anybody is stolen from, as it is where a node's news start both.
FIRST = "fleet-router"
INTERVAL, BY_HAND = "interval", "by hand"

log = logging.getLogger("arc.schedule")

ReportHeard = Callable[["RunTold"], None]


@dataclass(frozen=True)
class RunTold:
    """One run that is over, for whoever watches. `number` None: it could not be written down."""

    number: int | None
    began: datetime
    because: str
    report: SensorReport


class Schedule:
    """Every sensor of the hub on its interval, on events and by hand; one run of each at a time."""

    def __init__(self, hub: Hub, heard: ReportHeard = lambda told: None) -> None:
        self._hub, self._heard = hub, heard
        self._under_way: dict[str, tuple[float, asyncio.Event]] = {}  # began (boottime), is over
        self._tasks: set[asyncio.Task[SensorReport]] = set()
        self._soon: set[str] = set()  # sensors that run as soon as their present run is over
        self._scheduler: AsyncIOScheduler | None = None
        # Where every event may start a run, those that found nothing to do are counted and not
        # written down: they would push out of the journal what somebody may look for.
        self.woken_in_vain: Counter[str] = Counter()
        self.none_gives: ArcError | None = None  # why no sensor that gives work away may run
        self._written: dict[str, float] = {}  # sensor: when a run of it was written down last

    def start(self) -> None:
        """Every enabled sensor runs now, and from then on at its interval."""
        # Its own defaults would drop a run that comes a second late; ours run it late, once.
        self._scheduler = AsyncIOScheduler(
            timezone=UTC,
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._scheduler.start()
        self.follow()

    def follow(self) -> None:
        """Keep the intervals that the settings name now; what did not change is not disturbed."""
        assert self._scheduler is not None, "follow() before start()"
        wanted = {
            sensor.name: sensor.every_s
            for sensor in self._hub.sensors if self.enabled(sensor.name)
        }  # fmt: skip
        for job in self._scheduler.get_jobs():
            if wanted.get(job.name) != job.trigger.every_s:
                job.remove()
        known = {job.name for job in self._scheduler.get_jobs()}
        since = self._hub.clock.boottime()
        for name in wanted.keys() - known:
            turns = Turns(self._hub.clock, wanted[name], since)
            self._scheduler.add_job(partial(self._due, name), turns, id=_id(name), name=name,
                                    next_run_time=turns.by_the_wall())  # fmt: skip

    def enabled(self, name: str) -> bool:
        """Whether fleet.yaml lets the sensor run by itself; by hand it always may."""
        entry = self._hub.settings.sensors.get(name)
        return entry is None or entry.enabled

    def next_run(self, name: str) -> datetime | None:
        """When the sensor runs next by itself; None: it does not."""
        job = self._scheduler.get_job(_id(name)) if self._scheduler else None
        return job.trigger.by_the_wall() if job else None

    def under_way_s(self, name: str) -> float | None:
        """For how long the sensor has been running; None: it is not."""
        began = self._under_way.get(name)
        return None if began is None else self._hub.clock.boottime() - began[0]

    def keep_time(self) -> None:
        """Call it every few seconds: neither a wall clock that was set nor a machine that slept
        keeps sensors waiting.
        """
        for job in self._scheduler.get_jobs() if self._scheduler else ():
            at = job.trigger.by_the_wall()
            moved_s = abs((job.next_run_time - at).total_seconds())
            if moved_s >= CLOCK_JUMP_S or job.trigger.late_s() >= CLOCK_JUMP_S:
                job.modify(next_run_time=at)

    def written_s(self, name: str) -> float | None:
        """How long ago a run of it was written down, whatever the wall showed meanwhile; None: none
        was since this hub began.
        """
        at = self._written.get(name)
        return None if at is None else self._hub.clock.boottime() - at

    async def _due(self, name: str) -> None:
        """Only begins the run: so the scheduler neither waits for it nor cancels it."""
        self._begin(name, INTERVAL)

    def _begin(
        self, name: str, because: str, woken: frozenset[str] = frozenset()
    ) -> asyncio.Task[SensorReport]:
        run = self._run(self.sensor(name), because, woken)
        task = asyncio.create_task(run, name=f"sensor {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def sensor(self, name: str) -> Sensor:
        """The sensor of this name, or `NotFound` with the names there are."""
        for sensor in self._hub.sensors:
            if sensor.name == name:
                return sensor
        known = ", ".join(sorted(sensor.name for sensor in self._hub.sensors))
        raise NotFound(f"no sensor is called {name!r}; there are {known}")

    async def run_now(
        self, name: str, because: str = BY_HAND, *, woken: frozenset[str] = frozenset()
    ) -> SensorReport:
        """Run it now, for the sake of `woken` alone where the sensor can do that.

        While it runs already, nothing is run and the report says so.
        """
        return await asyncio.shield(self._begin(name, because, woken))

    def soon(self, name: str, because: str, *, woken: frozenset[str]) -> None:
        """Run it for the sake of `woken` as soon as no run of it is under way; of many such words
        before that run begins, the first counts. A sensor that is disabled is left alone.
        """
        if name in self._soon or not self.enabled(name):
            return
        self._soon.add(name)
        task = asyncio.create_task(self._when_free(name, because, woken), name=f"soon {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _when_free(self, name: str, because: str, woken: frozenset[str]) -> SensorReport:
        await self.until_free(name)
        self._soon.discard(name)
        return await self._run(self.sensor(name), because, woken)

    async def until_free(self, name: str) -> None:
        """Come back when no run of this sensor is under way; a run lasts `RUN_S` at most."""
        while name in self._under_way:
            await self._under_way[name][1].wait()

    async def _run(self, sensor: Sensor, because: str, woken: frozenset[str]) -> SensorReport:
        began, name = self._hub.clock.now(), sensor.name
        if self.none_gives is not None and gives_away(sensor):
            kept = self.none_gives
            report = _failed(sensor, kept.code, f"left out: {kept}", hint=kept.hint)
            return self._tell(RunTold(None, began, because, report))
        since = self.under_way_s(name)
        if since is not None:
            why = f"the previous run is still going ({since:.0f} s)"
            return self._tell(RunTold(None, began, because, skipped(name, why)))
        over = asyncio.Event()
        self._under_way[name] = (self._hub.clock.boottime(), over)
        try:
            report = await guarded(sensor, self._hub, began, woken)
            took_s = self._hub.clock.boottime() - self._under_way[name][0]
            told = RunTold(None, began, because, replace(report, took_s=took_s))
            if report.outcome == "skipped" and (woken or self._is_quiet(sensor)):
                self.woken_in_vain[name] += 1
                return told.report
            return self._tell(told)
        except asyncio.CancelledError:
            cut_off = SensorReport(name, "failed", "cut off: the hub stopped", code="ARC-STOPPED")
            self._tell(RunTold(None, began, because, cut_off))
            raise
        finally:
            del self._under_way[name]
            over.set()

    def _is_quiet(self, sensor: Sensor) -> bool:
        """Whether a run of it that found nothing need not be written down again so soon."""
        last, now = self._written.get(sensor.name), self._hub.clock.boottime()
        return is_quiet(sensor) and last is not None and now - last < QUIET_S

    def _tell(self, told: RunTold) -> SensorReport:
        """Write the run down and say it; a journal that cannot be written stops no sensor."""
        report = told.report
        self._written[report.sensor] = self._hub.clock.boottime()
        try:
            number = self._hub.journal.runs.add(report, began=told.began, because=told.because)
            told = replace(told, number=number)
        except (StateBroken, MachineFailed) as error:
            report = replace(report, summary=f"{report.summary}; NOT WRITTEN DOWN: {error}")
            told = replace(told, report=report)
        self._heard(told)
        return report

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Begin nothing more, let what runs end for so long, then cut it off."""
        if self._scheduler is not None and self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        await asyncio.sleep(0)  # the scheduler ends in a turn of the loop of its own
        if not self._tasks:
            return
        _, late = await asyncio.wait(set(self._tasks), timeout=grace_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


class Turns(BaseTrigger):  # type: ignore[misc]
    """Every so many seconds by what passes since boot; the scheduler goes by the wall, and the wall
    is told from this whenever it is asked, so it may be set to any time.
    """

    def __init__(self, clock: Clock, every_s: float, since: float) -> None:
        self._clock, self.every_s, self._due = clock, every_s, since  # when the first turn is

    def by_the_wall(self) -> datetime:
        """When the next turn is due, as the wall clock stands now."""
        return self._clock.now() - timedelta(seconds=self.late_s())

    def late_s(self) -> float:
        """For how long the next turn has been due; below zero: for so long it is not."""
        return self._clock.boottime() - self._due

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """A turn begins: when the next is due. Beyond the scheduler's `now`, or it asks for ever.

        Of one turn it asks more than once. Missed turns are none: a clock set on by years would
        make a list of them. One that a clock begins too early is one more; the next comes in time.
        """
        late_s = self.late_s()
        if late_s >= -min(CLOCK_JUMP_S, self.every_s / 2):
            self._due += self.every_s * (1 + max(late_s, 0.0) // self.every_s)
        return max(self.by_the_wall(), now + timedelta.resolution)


async def guarded(
    sensor: Sensor, hub: Hub, now: datetime, woken: frozenset[str] = frozenset()
) -> SensorReport:
    """The sensor's own report or, whatever it raises, a report of that."""
    try:
        async with asyncio.timeout(RUN_S) as limit:
            if woken and isinstance(sensor, Wakeful):
                return await sensor.run_woken(hub, now, woken)
            return await sensor.run(hub, now)
    except ArcError as error:
        return _failed(sensor, error.code, str(error), hint=error.hint)
    except Exception as error:  # whatever it is, the other sensors and the hub run on
        if limit.expired():
            return _failed(sensor, "ARC-SENSOR", f"cut off: not over after {RUN_S:.0f} s")
        if (failed := machine_failed(error)) is not None:
            return _failed(sensor, failed.code, str(failed), hint=failed.hint)
        place = fault_of(error)
        log.exception("sensor_failed", extra={"sensor": sensor.name, "because": place})
        return _failed(sensor, "ARC-FAULT", f"a fault: {type(error).__name__} in {place}",
                       hint="the other sensors run on; please report this line")  # fmt: skip


def _id(name: str) -> str:
    """What the scheduler knows the sensor by; of the same moment it runs the lower one first."""
    return f"{name != FIRST:d} {name}"


def _failed(sensor: Sensor, code: str, text: str, *, hint: str = "") -> SensorReport:
    error: JsonObject = {"code": code, "message": text, "hint": hint}
    return SensorReport(sensor.name, "failed", f"failed: {text}", code=code,
                        details={"error": error})  # fmt: skip
