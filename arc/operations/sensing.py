"""Tells of each sensor when it ran last, how that went, and when it runs next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.envelope import Exit
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.why_states import NO_HUB, PAUSED
from arc.errors import LinkError
from arc.journal_runs import Run
from arc.looking import remembered
from arc.sensor import QUIET_S, Sensor, SensorReport, is_quiet

if TYPE_CHECKING:
    from arc.hub import Hub

ROUTER = "fleet-router"
LATE = 2.5  # intervals without a run, or within one, after which a sensor counts as late


def sensor_lines(hub: Hub) -> list[JsonValue]:
    """One entry for each sensor, the broken ones of other packages last."""
    lines: list[JsonValue] = [
        {**_line(hub, sensor), "verbs": dict(sensor.verbs)}
        for sensor in hub.sensors
    ]
    lines += [{"sensor": "?", "state": "broken", "summary": str(error), "code": error.code,
               "hint": error.hint} for error in hub.broken]  # fmt: skip
    return lines


def _line(hub: Hub, sensor: Sensor) -> JsonObject:
    name, every_s = sensor.name, sensor.every_s
    entry = hub.settings.sensors.get(name)
    enabled = entry is None or entry.enabled
    last = next(iter(hub.journal.runs.last(name)), None)
    schedule = hub.schedule
    ago = _ago_s(hub, last) if last else None
    upcoming = schedule.next_run(name) if schedule else None
    under_way = schedule.under_way_s(name) if schedule else None
    return {
        "sensor": name, "every_s": every_s, "enabled": enabled,
        "state": _state(last, ago, max(every_s, QUIET_S) if is_quiet(sensor) else every_s,
                        enabled=enabled, runs=schedule is not None, going_s=under_way or 0.0),
        "last": None if last is None else run_of(last), "ago_s": ago,
        "next": iso(upcoming) if upcoming else None, "under_way_s": under_way,
        "summary": last.report.summary if last else "has not run yet",
    }  # fmt: skip


def _ago_s(hub: Hub, last: Run) -> float:
    """By the wall only what an earlier hub wrote down: a clock put back makes no run a late one."""
    known = hub.schedule.written_s(last.report.sensor) if hub.schedule else None
    return max((hub.clock.now() - last.at).total_seconds(), 0.0) if known is None else known


def _state(
    last: Run | None, ago: float | None, every_s: float, *, enabled: bool, runs: bool,
    going_s: float,
) -> str:  # fmt: skip
    """In a word. A run that goes on for too long is late, whatever was written down meanwhile of
    the runs that were skipped for it.
    """
    if not enabled:
        return "disabled"
    if going_s > LATE * every_s:
        return "late"
    if last is None or ago is None:
        return "new"
    if last.report.outcome in {"failed", "could_not_look"}:
        return last.report.outcome
    return "late" if runs and ago > LATE * every_s else "on time" if runs else "no hub"


def router_turn(hub: Hub) -> JsonObject:
    """When what is in the hub's queue is looked at by itself, for whoever has just added to it.

    `in_s` 0: at once, by the policy; None: not by itself, and `because` says why.
    """
    schedule, paused = hub.schedule, hub.journal.words.fleet_paused()
    if schedule is None:
        return {"in_s": None, "at": None, "because": NO_HUB}
    if paused is not None:
        return {"in_s": None, "at": None, "because": PAUSED}
    at = schedule.next_run(ROUTER)
    if at is None:
        return {"in_s": None, "at": None, "because": f"the sensor {ROUTER} is disabled"}
    if hub.settings.steal.swift:
        return {"in_s": 0.0, "at": None, "because": "policy swift"}
    in_s = max((at - hub.clock.now()).total_seconds(), 0.0)
    return {"in_s": round(in_s, 1), "at": iso(at), "because": ""}


def unread_by(hub: Hub, report: SensorReport) -> tuple[JsonObject, ...]:
    """Whom the run that has just ended could not read, as it stands in an envelope; of a run that
    saw all, or failed, nobody.
    """
    if report.exit_code != Exit.PARTIAL:
        return ()
    view, _ = remembered(hub)
    away = {one.name: (one.code, one.because) for one in view.silent or view.unseen}
    nodes = report.details.get("nodes")
    for one in nodes if isinstance(nodes, list) else ():
        if isinstance(one, dict) and one.get("rule") == "queue_was_read":
            away.setdefault(str(one["node"]), ("", f"its queue: {one.get('because')}"))
    return tuple({"node": name, "error": {"code": code or LinkError.code, "message": because}}
                 for name, (code, because) in sorted(away.items()))  # fmt: skip


def run_of(run: Run) -> JsonObject:
    """One run in numbers, without its reasons."""
    report = run.report
    return {
        "run": run.id, "at": iso(run.at), "because": run.because, "outcome": report.outcome,
        "summary": report.summary, "looked": report.looked, "unseen": report.unseen,
        "decided": report.decided, "acted": report.acted, "requests": report.requests,
        "took_s": round(report.took_s, 3), "skipped": report.skipped, "code": report.code,
    }  # fmt: skip


def run_whole(run: Run) -> JsonObject:
    """One run with every move and every reason that was kept of it."""
    return {
        **run_of(run),
        "details": run.report.details,
        "decisions": [
            {"node": one.node, "rule": one.rule, "count": one.count, "because": one.because,
             "uid": one.uid}
            for one in run.report.decisions
        ],
        "moves": [
            {"xfer": one.xfer, "uid": one.uid, "priority": one.priority, "from": one.busy,
             "to": one.idle, "outcome": one.outcome, "why": one.why, "rule": one.rule,
             "because": one.because}
            for one in run.report.moves
        ],
        "cut": run.cut,
    }  # fmt: skip
