"""Lists the sensors, runs one by hand, and shows what their runs did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject
from arc.errors import NotFound
from arc.schedule import Schedule

from . import Told
from .sensing import run_of, run_whole, sensor_lines, unread_by

if TYPE_CHECKING:
    from arc.hub import Hub

RUNS_MAX = 1000


async def sensors_list(hub: Hub, args: JsonObject) -> Told:
    """Every sensor with its last and its next run."""
    return Told({"sensors": sensor_lines(hub)})


async def sensors_run(hub: Hub, args: JsonObject) -> Told:
    """One run now, whatever fleet.yaml says of its interval; its report."""
    name = Fields(args).text("sensor", 64)
    schedule = hub.schedule or Schedule(hub)
    schedule.sensor(name)
    report = await schedule.run_now(name)
    last = next(iter(hub.journal.runs.last(name)), None)
    run = None if last is None else hub.journal.runs.run(last.id)
    if run is None or run.report.summary != report.summary:
        # It was not written down: another run was under way, or the journal is broken.
        data: JsonObject = {"sensor": name, "run": None, "outcome": report.outcome,
                            "summary": report.summary, "skipped": report.skipped,
                            "moves": [], "decisions": []}  # fmt: skip
        return Told(data, report.exit_code, unread_by(hub, report))
    return Told({"sensor": name, **run_whole(run)}, report.exit_code, unread_by(hub, report))


async def sensors_history(hub: Hub, args: JsonObject) -> Told:
    """The newest runs, of one sensor or of all, newest first."""
    asked = Fields(args)
    limit = asked.limit(20, RUNS_MAX)
    name = asked.maybe_text("sensor", 64)
    names = [name] if name else [sensor.name for sensor in hub.sensors]
    if name and name not in {sensor.name for sensor in hub.sensors}:
        (hub.schedule or Schedule(hub)).sensor(name)
    runs = [(sensor, run) for sensor in names for run in hub.journal.runs.last(sensor, limit)]
    runs.sort(key=lambda one: one[1].id, reverse=True)
    return Told({"runs": [{"sensor": sensor, **run_of(run)} for sensor, run in runs[:limit]]})


async def sensors_show(hub: Hub, args: JsonObject) -> Told:
    """One run whole, by its number."""
    number = Fields(args).whole("run", 1, 2**62)
    run = hub.journal.runs.run(number)
    if run is None:
        raise NotFound(f"run {number} is not remembered",
                       hint="arc sensors history lists those that are")  # fmt: skip
    return Told({"sensor": run.report.sensor, **run_whole(run)})
