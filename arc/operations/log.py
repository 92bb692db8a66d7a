"""Reads the hub's log: what happened, when and where, never a task's own words."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.journal_runs import LogLine, Run

from . import Told

if TYPE_CHECKING:
    from arc.hub import Hub

LINES_MAX = 10_000
PAGE = 5_000
DAY = timedelta(days=1)


async def log(hub: Hub, args: JsonObject) -> Told:
    """The newest lines since a moment (a day ago), oldest first: events, runs, and their moves.

    `next` is where a follower goes on: it gives it back as `after` and `after_run`.
    """
    asked = Fields(args)
    limit = asked.limit(200, LINES_MAX)
    follows = asked.has("after") or asked.has("after_run")
    since = parse_iso(asked.text("since", 40)) if asked.has("since") else None
    if since is None and not follows:
        since = hub.clock.now() - DAY
    lines, last_line = _lines(hub, since, asked.after("after"), limit)
    runs, last_run = _runs(hub, since, asked.after("after_run"), limit)
    found = sorted([*lines, *runs], key=lambda one: str(one["at"]))
    shown: list[JsonValue] = [*found[-limit:]]
    return Told({"lines": shown, "more": len(found) > limit,
                 "next": {"after": last_line, "after_run": last_run}})  # fmt: skip


def _lines(
    hub: Hub, since: datetime | None, after: int, limit: int
) -> tuple[list[JsonObject], int]:
    """One more than asked for, so that it shows whether there were others."""
    newest: deque[LogLine] = deque(maxlen=limit + 1)
    while True:
        page = hub.journal.runs.lines(since=since, after=after, limit=PAGE)
        newest.extend(page)
        if page:
            after = page[-1].id
        if len(page) < PAGE:
            return [_line(one) for one in newest], after


def _line(one: LogLine) -> JsonObject:
    return {"at": iso(one.at), "event": one.event, "sensor": one.sensor, "run": one.run,
            "node": one.node, "task": one.task, "fields": one.fields}  # fmt: skip


def _runs(
    hub: Hub, since: datetime | None, after: int, limit: int
) -> tuple[list[JsonObject], int]:
    """Every run as a line, and one more for each of its moves."""
    runs = [
        run
        for sensor in hub.sensors
        for run in hub.journal.runs.last(sensor.name, limit + 1)
        if run.id > after and (since is None or run.at >= since)
    ]
    lines = [line for run in runs for line in (_run(run), *_moves(hub, run))]
    return lines, max([after, *(run.id for run in runs)])


def _run(run: Run) -> JsonObject:
    report = run.report
    return {"at": iso(run.at), "event": f"run_{report.outcome}", "sensor": report.sensor,
            "run": run.id, "node": "", "task": "",
            "fields": {"summary": report.summary, "took_s": round(report.took_s, 3)}}  # fmt: skip


def _moves(hub: Hub, run: Run) -> list[JsonObject]:
    whole = hub.journal.runs.run(run.id) if run.report.acted else None
    return [
        {"at": iso(run.at), "event": f"task_{one.outcome}", "sensor": run.report.sensor,
         "run": run.id, "node": one.idle, "task": one.uid,
         "fields": {"from": one.busy, "to": one.idle, "rule": one.rule, "because": one.because}}
        for one in (whole.report.moves if whole else ())
    ]  # fmt: skip
