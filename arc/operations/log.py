"""Reads the hub's log: what happened, when and where, never a task's own words."""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.errors import NotFound, WrongUse
from arc.journal_runs import LogLine, Run
from arc.log_lines import LINES, line_named
from arc.sensor import Moved

from . import Told

if TYPE_CHECKING:
    from arc.hub import Hub

LINES_MAX = 10_000
PAGE = 5_000
RUNS_PAGE = 500
NEAR = 3
SKIPPED = "run_skipped"
DAY = timedelta(days=1)


async def log(hub: Hub, args: JsonObject) -> Told:
    """The newest lines since a moment (a day ago), oldest first: events, runs, and their moves.

    Runs that were skipped are left out unless `all` asks for them, or `event` names them. `next` is
    where a follower goes on: it gives it back as `after` and `after_run`.
    """
    asked = Fields(args)
    limit = asked.limit(200, LINES_MAX)
    follows = asked.has("after") or asked.has("after_run")
    since = parse_iso(asked.text("since", 40)) if asked.has("since") else None
    if since is None and not follows:
        since = hub.clock.now() - DAY
    wanted = Wanted(asked.maybe_text("sensor", 64), _event(hub, asked.maybe_text("event", 64)),
                    everything=asked.flag("all"))  # fmt: skip
    if wanted.sensor is not None and wanted.sensor not in {one.name for one in hub.sensors}:
        known = ", ".join(sorted(one.name for one in hub.sensors))
        raise NotFound(f"no sensor is called {wanted.sensor!r}; there are {known}")
    lines, last_line = _lines(hub, since, asked.after("after"), limit, wanted)
    runs, last_run = _runs(hub, since, asked.after("after_run"), limit, wanted)
    found = sorted([*lines, *runs], key=lambda one: str(one["at"]))
    shown: list[JsonValue] = [*found[-limit:]]
    return Told({"lines": shown, "more": len(found) > limit,
                 "next": {"after": last_line, "after_run": last_run}})  # fmt: skip


def _event(hub: Hub, word: str | None) -> str | None:
    """The lines that are meant; None: any. A word that is no line's, and that nobody ever wrote,
    is wrong use: an empty answer would say that it did not happen.
    """
    if word is None:
        return None
    name = line_named(word)
    if name in LINES:
        return name
    if hub.journal.runs.wrote(word):
        return word
    near = difflib.get_close_matches(name.lower(), LINES, n=NEAR, cutoff=0.5)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    raise WrongUse(
        f"--event: the hub's log has no line {word!r}{meant}",
        hint="docs/events.md lists them all, under The hub's log; what happened to a task on its "
             "node: arc tasks show TASK")  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """Which lines are asked for; None: any."""

    sensor: str | None
    event: str | None
    everything: bool

    def fits(self, line: JsonObject) -> bool:
        """Whether the line is one of them."""
        quiet = line["event"] == SKIPPED and not self.everything and self.event != SKIPPED
        return (not quiet and self.sensor in (None, line["sensor"])
                and self.event in (None, line["event"]))  # fmt: skip


def _lines(
    hub: Hub, since: datetime | None, after: int, limit: int, wanted: Wanted
) -> tuple[list[JsonObject], int]:
    """One more than asked for, so that it shows whether there were others."""
    newest: deque[JsonObject] = deque(maxlen=limit + 1)
    while True:
        page = hub.journal.runs.lines(since=since, after=after, limit=PAGE)
        newest.extend(filter(wanted.fits, map(_line, page)))
        if page:
            after = page[-1].id
        if len(page) < PAGE:
            return [*newest], after


def _line(one: LogLine) -> JsonObject:
    return {"at": iso(one.at), "event": one.event, "sensor": one.sensor, "run": one.run,
            "node": one.node, "task": one.task, "fields": one.fields}  # fmt: skip


def _runs(
    hub: Hub, since: datetime | None, after: int, limit: int, wanted: Wanted
) -> tuple[list[JsonObject], int]:
    """Every run as a line, and one more for each of its moves; where the next ones begin."""
    newest = [one.id for sensor in hub.sensors for one in hub.journal.runs.last(sensor.name)]
    lines = [line for sensor in hub.sensors if wanted.sensor in (None, sensor.name)
             for line in _of_sensor(hub, sensor.name, since, after, limit, wanted)]  # fmt: skip
    return lines, max([after, *newest])


def _of_sensor(
    hub: Hub, sensor: str, since: datetime | None, after: int, limit: int, wanted: Wanted
) -> list[JsonObject]:
    """The newest lines that fit, however many runs that did nothing stand between them."""
    lines: list[JsonObject] = []
    before: int | None = None
    while len(lines) <= limit:
        page = hub.journal.runs.last(sensor, RUNS_PAGE, before=before)
        new = [run for run in page if run.id > after and (since is None or run.at >= since)]
        moves = hub.journal.runs.moves_of([run.id for run in new])
        told = (line for run in new for line in (_run(run), *_moves(run, moves.get(run.id, ()))))
        lines += filter(wanted.fits, told)
        if len(new) < RUNS_PAGE:
            break
        before = new[-1].id
    return lines


def _run(run: Run) -> JsonObject:
    report = run.report
    return {"at": iso(run.at), "event": f"run_{report.outcome}", "sensor": report.sensor,
            "run": run.id, "node": "", "task": "",
            "fields": {"summary": report.summary, "took_s": round(report.took_s, 3)}}  # fmt: skip


def _moves(run: Run, moves: Iterable[Moved]) -> list[JsonObject]:
    return [
        {"at": iso(run.at), "event": f"task_{one.outcome}", "sensor": run.report.sensor,
         "run": run.id, "node": one.idle, "task": one.uid,
         "fields": {"from": one.busy, "to": one.idle, "rule": one.rule, "because": one.because}}
        for one in moves
    ]  # fmt: skip
