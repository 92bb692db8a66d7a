"""Tells what a sensor did last and in its last ten runs, for `arc skills run … -- status`."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject
from arc.errors import ArcError, SensorBroken, WrongUse, fault_of, machine_failed
from arc.schedule import Schedule
from arc.sensor import Answering

from . import Told
from .sensing import run_whole, sensor_lines

if TYPE_CHECKING:
    from arc.hub import Hub

TEN = 10
WORDS_MAX, WORD_MAX = 100, 1000  # after a verb, and characters of a verb
SAID_MAX = 256 * 1024  # characters of an answer
ANSWER_S = 300.0  # what another package's sensor may take for one

log = logging.getLogger("arc.skills")


async def skills_show(hub: Hub, args: JsonObject) -> Told:
    """The words of one sensor."""
    name = Fields(args).text("sensor", 64)
    sensor = (hub.schedule or Schedule(hub)).sensor(name)
    return Told({"sensors": [{"sensor": name, "verbs": dict(sensor.verbs)}]})


async def skills_answer(hub: Hub, args: JsonObject) -> Told:
    """What a sensor of another package says to one of its own words, as text."""
    asked = Fields(args)
    name, verb = asked.text("sensor", 64), asked.text("verb", WORD_MAX)
    sensor = (hub.schedule or Schedule(hub)).sensor(name)
    if verb not in sensor.verbs or not isinstance(sensor, Answering):
        raise WrongUse(f"{name} has no word {verb!r} of its own")
    words = [str(word) for word in asked.entries("words", WORDS_MAX)]
    said = await _guarded(hub, name, sensor, verb, words)
    return Told({"sensor": name, "verb": verb, "said": said[:SAID_MAX],
                 "cut": max(len(said) - SAID_MAX, 0)})  # fmt: skip


async def _guarded(
    hub: Hub, name: str, sensor: Answering, verb: str, words: Sequence[str]
) -> str:
    """The sensor's own text or, whatever it raises, an error that names the sensor."""
    try:
        async with asyncio.timeout(ANSWER_S) as limit:
            said = await sensor.answer(hub, verb, words)
    except ArcError:
        raise
    except Exception as error:  # whatever it is, this answer alone ends; the hub runs on
        if limit.expired():
            text = f"{name}: cut off: no answer to {verb} after {ANSWER_S:.0f} s"
            raise SensorBroken(text) from error
        if (failed := machine_failed(error)) is not None:
            raise failed from error
        place = fault_of(error)
        log.exception("answer_failed", extra={"sensor": name, "because": place})
        raise SensorBroken(f"{name}: it could not answer {verb}: {type(error).__name__} in {place}",
                           hint="tell whoever made the package that offers it") from error
    if not isinstance(said, str):
        raise SensorBroken(f"{name}: what it said to {verb} is no text")
    return said


async def skills_status(hub: Hub, args: JsonObject) -> Told:
    """The last run whole, what it cost, when the next is due, and the totals of the last ten.

    Without a run yet, `last` is null.
    """
    name = Fields(args).text("sensor", 64)
    (hub.schedule or Schedule(hub)).sensor(name)
    line = next(one for one in sensor_lines(hub) if isinstance(one, dict) and one["sensor"] == name)
    runs = hub.journal.runs.last(name, TEN)
    last = hub.journal.runs.run(runs[0].id) if runs else None
    outcomes = Counter(run.report.outcome for run in runs)
    data: JsonObject = {
        "sensor": name, "line": line, "last": run_whole(last) if last else None,
        "totals": {
            "runs": len(runs), "outcomes": dict(outcomes),
            "moved": sum(run.report.acted for run in runs),
            "planned": sum(run.report.decided for run in runs),
            "requests": sum(run.report.requests for run in runs),
            "took_s": round(sum(run.report.took_s for run in runs), 3),
        },
    }  # fmt: skip
    return Told(data)
