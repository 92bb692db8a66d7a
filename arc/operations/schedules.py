"""Lists where work comes from by itself, and lets a schedule's work begin now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.adding import Wanted, add_work
from arc.decisions.schedules import next_time
from arc.errors import NotFound
from arc.journal_work import CRON, FILES, WATCH, LastAdded
from arc.settings import FilesEntry, FleetSettings, ScheduleEntry, WatchEntry

from . import Told

if TYPE_CHECKING:
    from arc.hub import Hub

REFUSED = 1
NEXT_SHOWN = 5

Source = ScheduleEntry | FilesEntry | WatchEntry


async def schedules_list(hub: Hub, args: JsonObject) -> Told:
    """Every source of work in fleet.yaml: when it adds work next, and what it did last."""
    return Told({"sources": [_line(hub, one) for one in _sources(hub.settings)], **_known(hub)})


async def schedules_show(hub: Hub, args: JsonObject) -> Told:
    """One source whole, with the work that it adds and, of a schedule, its next times."""
    source = _named(hub, Fields(args).text("name", 64))
    data = _line(hub, source)
    data["task"] = source.task
    if isinstance(source, ScheduleEntry):
        data["graph"] = source.graph
        data["times"] = _times(hub, source)
    return Told({**data, **_known(hub)})


def _known(hub: Hub) -> JsonObject:
    """What holds of all sources; a hub that runs knows fleet.yaml as it was when it read it."""
    return {"hub_running": hub.schedule is not None, "paused": _paused(hub),
            "read_at": iso(hub.read_at) if hub.schedule and hub.read_at else None,
            "complaint": hub.complaint}  # fmt: skip


def _times(hub: Hub, entry: ScheduleEntry) -> list[JsonValue]:
    found: list[JsonValue] = []
    at = hub.clock.now()
    while len(found) < NEXT_SHOWN and (following := next_time(entry.cron, entry.zone, at)):
        found.append(iso(following))
        at = following
    return found


async def schedules_run(hub: Hub, args: JsonObject) -> Told:
    """The work of one source now, under a key of its own; its times stay what they are."""
    asked = Fields(args)
    source, by = _named(hub, asked.text("name", 64)), asked.text_or("by", "human:unknown")
    now, kind = hub.clock.now(), _kind(source)
    graph = source.graph if isinstance(source, ScheduleEntry) else None
    prefix = "file" if kind == FILES else kind
    wanted = Wanted(f"{prefix}:{source.name}:now:{hub.mint()}", f"{prefix}:{source.name}", now,
                    f"by hand: {by}"[:200], source.task, graph)  # fmt: skip
    dry_run = asked.flag("dry_run")
    found = await add_work(hub, wanted, dry_run=dry_run)
    if found.outcome == "added" and not dry_run:
        hub.journal.runs.log("work_added", task=found.uid,
                             fields={"from": wanted.origin, "by": by})  # fmt: skip
    data: JsonObject = {
        "name": source.name, "kind": kind, "uid": found.uid, "outcome": found.outcome,
        "rule": found.rule, "because": found.because, "key": wanted.key, "dry_run": dry_run,
        "what": "graph" if graph is not None else "task", "hub_running": hub.schedule is not None,
    }  # fmt: skip
    return Told(data, exit=REFUSED if found.outcome == "refused" else 0)


def _sources(settings: FleetSettings) -> tuple[Source, ...]:
    return (*settings.schedules, *settings.watch_files, *settings.watch)


def _named(hub: Hub, name: str) -> Source:
    """The source of this name, or `NotFound` with those that there are, as far as the hub knows."""
    for one in _sources(hub.settings):
        if one.name == name:
            return one
    known = ", ".join(sorted(one.name for one in _sources(hub.settings))) or "none"
    read = f", as the hub read it {iso(hub.read_at)}" if hub.schedule and hub.read_at else ""
    raise NotFound(f"no schedule, watched file or watch rule is called {name!r}",
                   hint=f"fleet.yaml has{read}: {known}")  # fmt: skip


def _kind(source: Source) -> str:
    if isinstance(source, ScheduleEntry):
        return CRON
    return FILES if isinstance(source, FilesEntry) else WATCH


def _line(hub: Hub, source: Source) -> JsonObject:
    kind = _kind(source)
    last = hub.journal.work.last(kind, source.name)
    return {"name": source.name, "kind": kind, **_when(hub, source), **_last(last)}


def _when(hub: Hub, source: Source) -> JsonObject:
    if isinstance(source, ScheduleEntry):
        following = next_time(source.cron, source.zone, hub.clock.now())
        return {"when": source.cron, "zone": source.zone, "catch_up": source.catch_up,
                "next": iso(following) if following else None,
                "what": "graph" if source.graph is not None else "task"}  # fmt: skip
    if isinstance(source, FilesEntry):
        return {"when": source.path, "next": None, "what": "task"}
    where = "".join([f" in {source.domain}" if source.domain else "",
                     f" on {source.node}" if source.node else ""])  # fmt: skip
    return {"when": f"{source.when}{where}", "next": None, "what": "task"}


def _last(last: LastAdded | None) -> JsonObject:
    """What it did last; all null where it has done nothing yet."""
    said: JsonObject = {"since": None, "last_at": None, "uid": None, "outcome": None,
                        "because": None, "missed": 0}  # fmt: skip
    if last is None:
        return said
    said |= {"since": iso(last.seen_to), "missed": last.missed}
    if last.last_at is not None:
        said |= {"last_at": iso(last.last_at), "uid": last.uid, "outcome": last.outcome,
                 "because": last.because}  # fmt: skip
    return said


def _paused(hub: Hub) -> bool:
    return hub.journal.words.fleet_paused() is not None
