"""Adds the work that schedules, changed files and failures ask for, each occasion once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject
from agent_node.text import counted
from arc.adding import AddedWork, Wanted, add_work
from arc.decisions.schedules import due
from arc.decisions.watching import failing_of, why_now
from arc.errors import ArcError
from arc.journal_work import CRON, FILES, WATCH
from arc.sensor import SensorReport, skipped
from arc.settings import FleetSettings, ScheduleEntry, WatchEntry

from .reporting import paused
from .watched_files import files_now

if TYPE_CHECKING:
    from arc.hub import Hub

EVERY_S = 30.0
NOTED_S = 3600.0


@dataclass
class Round:
    """What one round did, for its report."""

    added: list[JsonObject] = field(default_factory=list)
    missed: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def note(self, kind: str, name: str, what: AddedWork, because: str) -> None:
        """One occasion, and what became of it."""
        self.added.append({
            "kind": kind, "name": name, "uid": what.uid, "outcome": what.outcome,
            "because": what.because or because,
        })  # fmt: skip
        if what.outcome == "refused":
            self.problems.append(f"{name}: refused by the hub's own queue: {what.because}")


class FleetSchedules:
    """Every thirty seconds: what is due, what has changed, and what failed too often.

    Each occasion has a key of its own, so that a hub which dies between adding and writing it down
    adds nothing twice. After a time without a hub (or with a paused fleet) a schedule gets one task
    for the newest time that passed, or none, as its `catch_up` says.
    """

    name = "fleet-schedules"
    gives_away = False
    verbs: Mapping[str, str] = {
        "status": "what the last round added",
        "run": "look now",
    }
    quiet = True  # a round that finds nothing to do is not written down

    def __init__(self, settings: FleetSettings) -> None:
        entry = settings.sensors.get(self.name)
        self.every_s = entry.every_s if entry else EVERY_S

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        """One round over every source of work."""
        stopped = paused(hub, self.name)
        if stopped is not None:
            return stopped
        settings, done = hub.settings, Round()
        for schedule in settings.schedules:
            await _scheduled(hub, schedule, now, done)
        for files in settings.watch_files:
            for one in await files_now(hub, files, now, done.problems):
                because = f"{one.seen.path} changed"
                if await _add(hub, (FILES, files.name), one.wanted, because, done):
                    hub.journal.work.saw(files.name, [one.seen])
        for rule in settings.watch:
            await _watched(hub, rule, now, done)
        return _report(self.name, done)


async def _scheduled(hub: Hub, entry: ScheduleEntry, now: datetime, done: Round) -> None:
    spec, work = f"{entry.cron} {entry.zone}", hub.journal.work
    last = work.last(CRON, entry.name)
    if last is None or last.spec != spec:  # what passed before it was written is none of its times
        work.begin(CRON, entry.name, spec, now)
        return
    found = due(entry.cron, entry.zone, last.seen_to, now, catch_up=entry.catch_up)
    if found.missed:
        done.missed[entry.name] = found.missed
    if found.at is not None:
        wanted = wanted_of(entry, found.at, f"cron:{entry.name}:{iso(found.at)}")
        if not await _add(hub, (CRON, entry.name), wanted, "it is due", done):
            return  # asked again in the next round, or together with a newer time
    # A round in which nothing came is written down once in a while: there are many of them.
    if found.at or found.missed or abs((now - last.seen_to).total_seconds()) > NOTED_S:
        work.considered(CRON, entry.name, found.seen_to or now, missed=found.missed)


def wanted_of(entry: ScheduleEntry, at: datetime, key: str) -> Wanted:
    """The work of a schedule for one of its times."""
    return Wanted(key, f"cron:{entry.name}", at, iso(at), entry.task, entry.graph)


async def _watched(hub: Hub, rule: WatchEntry, now: datetime, done: Round) -> None:
    work, limit = hub.journal.work, failing_of(rule.when)
    spec = f"{rule.when} {rule.domain} {rule.node}"
    last = work.last(WATCH, rule.name)
    if last is None or last.spec != spec:
        work.begin(WATCH, rule.name, spec, now)
        return
    because = why_now(limit, work.ends(within_s=limit.within_s), now=now,
                      last=last.last_at, domain=rule.domain, node=rule.node)  # fmt: skip
    if because is None:
        return
    # The same until it is written down that work was added: a repeat finds it there.
    since = f"after {iso(last.last_at)}" if last.last_at else f"from {iso(last.seen_to)}"
    key = f"watch:{rule.name}:{since}"
    wanted = Wanted(key, f"watch:{rule.name}", now, because, rule.task)
    await _add(hub, (WATCH, rule.name), wanted, because, done)


async def _add(
    hub: Hub, source: tuple[str, str], wanted: Wanted, because: str, done: Round
) -> bool:
    """Whether it is there now; what was refused is asked for again in the next round."""
    kind, name = source
    try:
        found = await add_work(hub, wanted)
    except ArcError as error:  # the other sources have their turn
        found = AddedWork("", "refused", error.code, str(error))
    done.note(kind, name, found, because)
    if found.outcome == "refused":
        return False
    hub.journal.work.added(kind, name, at=wanted.at, uid=found.uid, outcome=found.outcome,
                           because=because)  # fmt: skip
    if found.outcome == "added":
        hub.journal.runs.log("work_added", sensor=FleetSchedules.name, task=found.uid,
                             fields={"from": wanted.origin})  # fmt: skip
    return True


def _report(name: str, done: Round) -> SensorReport:
    fresh = [one for one in done.added if one["outcome"] == "added"]
    if not done.added and not done.missed:
        nothing = skipped(name, "; ".join(["nothing is due", *done.problems[:3]]))
        return replace(nothing, details={"problems": [*done.problems]})
    parts = [f"{counted(len(fresh), 'piece')} of work added"]
    parts += [f"{source}: {counted(many, 'time')} passed without a hub"
              for source, many in sorted(done.missed.items())]  # fmt: skip
    parts += done.problems[:3]
    details: JsonObject = {"added": [*done.added], "missed": dict(done.missed),
                           "problems": [*done.problems]}  # fmt: skip
    return SensorReport(name, "failed" if _only_refused(done) else "done", "; ".join(parts),
                        decided=len(done.added), acted=len(fresh), details=details)  # fmt: skip


def _only_refused(done: Round) -> bool:
    return bool(done.added) and all(one["outcome"] == "refused" for one in done.added)
