"""Judges every node's health, tells what is new about it, and counts stranded time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node import __version__
from agent_node.strict import JsonObject
from agent_node.text import counted
from arc.decisions.alerts import Alert, Edge, edge
from arc.decisions.health import Judgement, judge_health
from arc.endings import tell_heard
from arc.looking import Look, facts_of, look, memory_of
from arc.operations.needs import ask_beside
from arc.sensor import Decided, SensorReport
from arc.settings import FleetSettings

from .hearing import hear_all
from .reporting import costs
from .stranding import count_stranded

if TYPE_CHECKING:
    from arc.hub import Hub

EVERY_S = 300.0


class FleetHealth:
    """Every five minutes, whatever else is disabled or paused; it moves nothing.

    1. Read every node's report, all at once. 2. Hear what ended on each, and what runs how long;
    givers are told the ends of what they had given away. 3. Judge. 4. Tell what began and what
    ended since the last run: each trouble once, at most three of a node and day. 5. Ask what the
    reports do not hold of what waits for a person, for pages that ask no node. 6. Count for how
    long free slots and work that fits them were kept apart.
    """

    name = "fleet-health"
    gives_away = False
    verbs: Mapping[str, str] = {
        "status": "each node as it was judged last: its state, idle since when, what is wrong",
        "check": "run now",
    }

    def __init__(self, settings: FleetSettings) -> None:
        entry = settings.sensors.get(self.name)
        self.every_s = entry.every_s if entry else EVERY_S

    async def run(self, hub: Hub, now: datetime) -> SensorReport:
        """One look at everything."""
        seen = await look(hub, known=hub.late)
        heard = await hear_all(hub, seen)
        ends = await tell_heard(hub, seen.whole, seen.links, tuple(heard.ends))
        facts = facts_of(hub, seen.view)
        seen = replace(seen, facts=facts, memory=memory_of(hub, seen.view, facts))
        judged = judge_health(seen.view, facts, hub.settings.health, version=__version__)
        news = edge(hub.journal.nodes.standing(), judged)
        told = hub.journal.nodes.note(news)
        _log(hub, news)
        await ask_beside(seen)
        stranded = await count_stranded(hub, seen, sensor=self.name, every_s=self.every_s)
        return _report(self.name, seen, judged, news, told, {
            **stranded, "unheard": {**heard.unheard}, "ends_told": ends})  # fmt: skip


def _log(hub: Hub, news: Edge) -> None:
    for event, alerts in (("alert_began", news.began), ("alert_ended", news.ended)):
        for alert in alerts:
            hub.journal.runs.log(event, sensor=FleetHealth.name, node=alert.node,
                                 fields={"rule": alert.rule})  # fmt: skip


def _report(
    name: str, seen: Look, judged: Sequence[Judgement], news: Edge, told: Sequence[Alert],
    more: JsonObject,
) -> SensorReport:  # fmt: skip
    troubles = tuple(
        Decided(node.node, found.rule, 1, found.because)
        for node in judged for found in node.troubles
    )  # fmt: skip
    blind = not seen.view.seen and bool(seen.view.silent)
    details: JsonObject = {
        "nodes": [_of(node) for node in judged],
        "told": list(lines_of(told)),
        "ended": [{"node": one.node, "rule": one.rule} for one in news.ended],
        **more, **seen.tally.told(),
    }  # fmt: skip
    return SensorReport(
        name, "could_not_look" if blind else "done", _summary(seen, judged, told, news),
        looked=len(seen.view.seen), unseen=len(seen.view.silent), decided=len(judged),
        acted=len(told), requests=seen.tally.requests, details=details, decisions=troubles,
    )  # fmt: skip


def _summary(
    seen: Look, judged: Sequence[Judgement], told: Sequence[Alert], news: Edge
) -> str:
    by_state: dict[str, list[str]] = defaultdict(list)
    for node in judged:
        by_state[node.state].append(node.node)
    states = ", ".join(f"{len(names)} {state}" for state, names in sorted(by_state.items()))
    ended = [f"over: {one.node}: {one.rule}" for one in news.ended]
    return "; ".join(
        [f"{counted(len(judged), 'node')}: {states or 'none'}", *lines_of(told), *ended,
         *costs(seen)])  # fmt: skip


def lines_of(alerts: Sequence[Alert]) -> tuple[str, ...]:
    """One line for each rule, however many nodes it is about: a dead switch is one message."""
    by_rule: dict[str, list[Alert]] = defaultdict(list)
    for alert in alerts:
        by_rule[alert.rule].append(alert)
    return tuple(
        f"{', '.join(one.node for one in some)}: {_without_name(some[0])}"
        + (" (and alike)" if len(some) > 1 else "")
        for some in by_rule.values()
    )  # fmt: skip


def _without_name(alert: Alert) -> str:
    """Its reason; the line names the node already."""
    return alert.because.removeprefix(f"{alert.node}: ")


def _of(node: Judgement) -> JsonObject:
    return {
        "node": node.node, "state": node.state, "idle": node.idle, "idle_since": node.idle_since,
        "pending": node.pending, "running": node.running, "needs_you": list(node.needs_you),
        "troubles": [{"rule": one.rule, "because": one.because} for one in node.troubles],
    }  # fmt: skip
