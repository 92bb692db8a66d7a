"""Scheduled hub work: each sensor looks, decides, acts, and reports all three."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from inspect import iscoroutinefunction

from arc.errors import SensorBroken
from arc.sensor import EVERY_SENSORS, Answering, Sensor
from arc.settings import FleetSettings

from .fleet_graphs import FleetGraphs
from .fleet_health import FleetHealth
from .fleet_notices import FleetNotices
from .fleet_rebalance import FleetRebalance
from .fleet_router import FleetRouter
from .fleet_schedules import FleetSchedules

GROUP = "arc.sensors"  # the entry-point group in which another package offers a sensor


@dataclass(frozen=True)
class Found:
    """The sensors of this hub, and those that cannot be used, with the reason."""

    sensors: tuple[Sensor, ...]
    broken: tuple[SensorBroken, ...] = ()


def find_sensors(
    settings: FleetSettings, *, offered: Iterable[EntryPoint] | None = None
) -> Found:
    """Our own four, then what other packages offer. One that is broken stops only itself."""
    ours: tuple[Sensor, ...] = (
        FleetHealth(settings), FleetGraphs(settings), FleetRouter(settings),
        FleetRebalance(settings), *_asked_for(settings),
    )  # fmt: skip
    found: dict[str, Sensor] = {sensor.name: sensor for sensor in ours}
    broken: list[SensorBroken] = []
    for point in sorted(entry_points(group=GROUP) if offered is None else offered):
        try:
            sensor = _load(point, settings)
        except SensorBroken as error:
            broken.append(error)
            continue
        if sensor.name in found:
            broken.append(SensorBroken(f"{point.value}: the name {sensor.name!r} is taken"))
        else:
            found[sensor.name] = sensor
    return Found(tuple(found.values()), tuple(broken))


def _asked_for(settings: FleetSettings) -> Iterator[Sensor]:
    """Those that are there only where fleet.yaml gives them something to do."""
    if settings.schedules or settings.watch_files or settings.watch:
        yield FleetSchedules(settings)
    if settings.notify:
        yield FleetNotices(settings)


def _load(point: EntryPoint, settings: FleetSettings) -> Sensor:
    """The sensor behind an entry point: a class or function that is called without arguments."""
    try:
        sensor = point.load()()
        name, every_s = str(sensor.name), float(sensor.every_s)
        verbs = [str(verb) for verb in dict(sensor.verbs)]
        good = bool(name) and every_s > 0 and callable(sensor.run) and bool(verbs)
    except Exception as error:  # whatever stands in it, our own sensors run on
        raise SensorBroken(
            f"{point.value}: cannot be used: {type(error).__name__}: {error}",
            hint="mend or uninstall the package that offers it",
        ) from error
    if not good:
        raise SensorBroken(f"{point.value}: needs a name, every_s above 0, verbs and run()")
    own = [verb for verb in verbs if verb not in EVERY_SENSORS]
    if own and not isinstance(sensor, Answering):
        raise SensorBroken(f"{point.value}: offers {', '.join(own)} and has no answer() to it",
                           hint="a word beside status and run is answered by the sensor itself")
    if own and not iscoroutinefunction(sensor.answer):
        raise SensorBroken(f"{point.value}: its answer() is no coroutine",
                           hint="write: async def answer(self, hub, verb, words)")
    entry = settings.sensors.get(name)
    if entry is not None:
        sensor.every_s = entry.every_s
    loaded: Sensor = sensor
    return loaded
