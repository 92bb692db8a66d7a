"""Serves the page of a made fleet inside this process, by the product's own server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from arc.errors import ArcError
from arc.history import History
from arc.operations import Told
from arc.web.app import create_app
from arc.web.panels.causes import by_cause_of
from arc.web.past import Past
from arc.web.serving import bound, serve
from arc.web.surroundings import WebSettings
from tests.web.past_made import NAMES, NOW, PastMade, a_night

UID = "01JQ0000000000000000000000"


@dataclass
class HubMade:
    """Answers as a hub does, from what a test put here; `tasks.list of iris`: where
    iris is asked.
    """

    answers: dict[str, JsonObject | Told | ArcError] = field(default_factory=dict)
    now: JsonObject = field(default_factory=dict)
    version: int = 1
    away: ArcError | None = None
    asked: list[tuple[str, JsonObject, str]] = field(default_factory=list)

    async def ask(self, op: str, args: JsonObject, *, by: str, timeout_s: float) -> Told:
        if self.away is not None:
            raise self.away
        if op == "page.now":
            version = str(self.version)
            if args.get("known") == version:
                return Told({"version": version, "unchanged": True})
            return Told({"version": version, "unchanged": False, **self.now})
        self.asked.append((op, args, by))
        answer = self.answers.get(f"{op} of {args.get('node')}", self.answers.get(op, {}))
        if isinstance(answer, ArcError):
            raise answer
        return answer if isinstance(answer, Told) else Told(answer)

    def changed(self, **changes: JsonValue) -> None:
        """Something else is true from now on."""
        self.now = {**self.now, **changes}
        self.version += 1


@dataclass
class ClockMade:
    at: datetime = NOW

    def now(self) -> datetime:
        return self.at


class Served:
    """The page, its hub and its past; it can be stopped and come back under the same address."""

    def __init__(
        self, past: PastMade | None = None, *, actions: bool = False, large: History | None = None,
        at: datetime = NOW, token: bytes | None = None,
    ) -> None:  # fmt: skip
        self.past = past or a_night()
        self.history = large or self.past
        self.hub = a_hub([node.name for node in self.history.nodes() if node.name != "inbox"])
        self.clock = ClockMade(at)
        self.settings = WebSettings(fleet=Path("/nowhere/fleet.yaml"), state=Path("/nowhere"),
                                    port=0, actions=actions, token=token)  # fmt: skip
        self._running: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}/"

    async def start(self) -> None:
        door = bound(self.settings)
        self.settings = replace(self.settings, port=door.getsockname()[1])
        self._stop = asyncio.Event()
        past = Past(self.history)  # type: ignore[arg-type]
        page = create_app(self.settings, self.hub, past, clock=self.clock)
        self._running = asyncio.create_task(serve(page, door, self._stop))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        if self._running is None:
            return
        self._stop.set()
        async with asyncio.timeout(10):
            await self._running
        self._running = None


def a_hub(names: list[str] | tuple[str, ...] = NAMES) -> HubMade:
    """A hub that says what `page.now` says, of nodes that are well."""
    hub = HubMade()
    hub.now = {
        "fleet": "arc0", "policy": "arc0", "hub": {"name": "arc", "running": True, "paused": None},
        "limits": {"busy_over": 5, "idle_min_s": 120.0, "per_node": 3, "per_cycle": 10,
                   "every_s": 300.0, "steal_from": 5, "stale_after_s": 600.0},
        "policies": {
            "arc0": {"idle_min": "2m", "busy_over": 5, "steal_from": "P5", "anyone_from": "P8",
                     "per_node": 3, "per_cycle": 10, "every": "5m", "on_idle": False},
            "swift": {"every": "1m", "gain_min": "30s", "hops": 2, "transfer": "5s",
                      "task_takes": "10m"}},
        "header": {"nodes": len(names), "seen": len(names), "waiting": 29, "inbox": 2, "running": 4,
                   "moved_last_cycle": 3, "moved_24h": 31, "spent_today_usd": "131.18",
                   "budget_per_day_usd": "200", "fleet_day": {
                       "limit_usd": "200", "spent_usd": "120", "reserved_usd": "4.00",
                       "counted_usd": "124.00", "counted_since": "2026-03-10T02:05:00Z"}},
        "needs_you": [
            {"node": "iris", "text": "1 parked: its outcome is unknown",
             "try": "arc tasks list --state PARKED"},
            {"node": "forge", "text": "its daemon does not run; 2 tasks waiting there",
             "try": "on forge: agent-node start"},
        ],
        "nodes": {name: {"node": name, "seen": True, "state": "working", "pending": 3,
                         "running": 1, "slots": 1, "owns": ["infra"], "version": "0.1.0"}
                  for name in names},
        "inbox": {"seen": True, "pending": 2}, "graphs": {},
        "stranded": {"now": [], "today_s": 732.0, "by_cause": {}, "by_node": {}},
        "sensors": [{"sensor": "fleet-router", "state": "on time", "summary": "nothing to do"},
                    {"sensor": "fleet-health", "state": "on time", "every_s": 1800.0}],
        "moves": [], "cursors": {"run": 1, "move": 1, "look": "x", "rows": 1},
    }  # fmt: skip
    hub.answers = {"tasks.list": {"tasks": [a_row(number) for number in range(12)], "more": False,
                                  "unread": [], "next": None},
                   "budget": {"scopes": [
                       {"store": "iris", "scope": "node", "limit_usd": "30.00"}]},
                   "tasks.show": a_task(), "why.task": a_why(), "why.node": a_node_why(),
                   "nodes.logs": {"uid": UID, "node": "iris", "attempt": 1, "text": "a line\n",
                                  "next": 7, "size": 7, "ended": True}}  # fmt: skip
    return hub


def tells_its_past(served: Served) -> None:
    """The hub says of now what this past ends with: no picture has two figures of one thing."""
    history, now = served.history, served.clock.at
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    last = {one.node: one for one in history.samples(now - timedelta(minutes=10), now)
            if one.state != "unknown"}  # fmt: skip
    day = now - timedelta(days=1)
    cycle = max((run.at for run in history.runs(day, now, sensor="fleet-rebalance")), default=now)
    stranded = history.stranded(midnight, now)
    by_cause = by_cause_of(stranded, midnight, now)
    spent = sum(sum(costs) for costs in history.spent(midnight, now).nodes.values())
    names = [one.name for one in history.nodes() if one.name != "inbox"]
    told: JsonObject = {
        "nodes": len(names), "seen": len(last), "inbox": 0,
        "waiting": sum(one.pending for one in last.values()),
        "running": sum(one.running for one in last.values()),
        "moved_last_cycle": sum(one.arrived for one in history.moves(cycle, now)),
        "moved_24h": sum(one.moves for one in history.feeds(day, now)),
        "spent_today_usd": format(spent, ".2f"), "budget_per_day_usd": None,
    }  # fmt: skip
    nodes: Any = served.hub.now["nodes"]
    served.hub.changed(
        header=told, inbox={"seen": True, "pending": 0},
        nodes={name: {**one, "pending": last[name].pending, "running": last[name].running}
               for name, one in nodes.items() if name in last},
        stranded={"now": [], "by_node": {}, "by_cause": by_cause, "seen_at": iso(now),
                  "today_s": sum(one.seconds_in(midnight, now) for one in stranded)},
    )  # fmt: skip


def a_row(number: int, **more: JsonValue) -> JsonObject:
    subjects = ("Summarise the SIP thread", "fix auth", "rotate the log files")
    return {
        "uid": f"01JQ00000000000000000000{number:02d}", "subject": subjects[number % 3],
        "priority": 1 + number % 10, "node": "iris", "state": "READY", "skills": ["research"],
        "domain": "research", "rule": "low_enough_priority",
        "because": "P2; we steal P5 and lower", **more,
    }  # fmt: skip


def a_task(**more: JsonValue) -> JsonObject:
    return {
        "uid": UID, "node": "iris", "copies": {"iris": "READY"}, "order": {},
        "task": {"uid": UID, "subject": "Summarise the SIP thread", "body": "all of it",
                 "priority": 6, "state": "READY", "skills": ["research"], "domain": "research",
                 **more},
        "attempts": [{"n": 1, "on": "iris", "agent": "iris", "outcome": "failed",
                      "duration_s": 45.0, "error_kind": "invalid_output", "cost_usd": "0.12",
                      "message": "not JSON"}],
        "moves": [], "events": [], "hub_moves": [],
        "kept": [{"run": 7, "node": "iris", "rule": "low_enough_priority",
                  "because": "P2; we steal P5 and lower"}],
    }  # fmt: skip


def a_why() -> JsonObject:
    return {
        "verdict": "WAIT", "result": "0 of 4 nodes can take it", "receivers": 0,
        "checks": [{"rule": "still_ready", "met": True, "said": ""},
                   {"rule": "not_stolen_before", "met": False, "said": "already stolen once"}],
        "steps": [{"rule": "another_node", "alone": 4, "left": 4, "dropped": []},
                  {"rule": "nothing_to_do", "alone": 1, "left": 0, "dropped": [
                      {"node": "loom", "because": "loom: 1 running", "changeable": True}]}],
        "ways": [{"to": "loom", "changes": [{"kind": "domain", "says": "loom also owned research",
                                             "command": "arc nodes edit loom --also research"}]}],
        "by_hand": ["arc tasks move 000000 --to loom"], "moves": None, "life": None,
        "could_not_look": None, "history": {"cycles": 8, "since": None, "could_not_look": 0},
    }  # fmt: skip


def a_node_why() -> JsonObject:
    return {
        "node": "iris", "part": "busy",
        "receives": [{"rule": "nothing_to_do", "met": False, "said": "1 running, 9 waiting"}],
        "gives": [{"rule": "busy_node_is_busy", "met": True, "said": ""}], "gets": [], "loses": [],
        "elsewhere": [{"rule": "never_this_domain", "count": 3, "because": ""}],
        "stranded": None, "could_not_look": [], "evidence": {"seen": 5, "oldest_report_s": 4.0},
    }  # fmt: skip
