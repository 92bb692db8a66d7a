"""Tells what the hub knows at this moment without asking any node: what an open page lives by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from agent_node.clock import iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.beside import Beside
from arc.config_settings import limits_by_policy
from arc.decisions.failing import NodeFactsSeen
from arc.decisions.memory import Memory
from arc.decisions.tallying import UNIT
from arc.decisions.view import NodeSeen, NodeUnseen
from arc.looking import INBOX, Look, remembered
from arc.tally import Tally

from . import Told
from .budgets import COSTS, fleet_day, money
from .graphs_now import graph_counts, graphs_of
from .needs import all_needs, needs_you, stores_with_graphs
from .sensing import sensor_lines
from .status import inbox_line, seen_line, stranded_of, unseen_line

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.settings import FleetSettings

AGAIN_S = 5.0  # what the clock alone changes (a sensor is late, a day begins) is seen within this
MOVES_SHOWN = 20
REBALANCE = "fleet-rebalance"
_AGES = ("age_s", "idle_s")  # they grow by themselves: whoever reads `at` can count


@dataclass(eq=False)
class Remembered:
    """What was told last, so that a page that asks each second costs next to nothing."""

    stamp: tuple[object, ...] = ()
    look_stamp: tuple[object, ...] = ()
    number: int = 0  # grows with every change
    data: JsonObject = field(default_factory=dict)
    nodes: JsonObject = field(default_factory=dict)
    needs: list[JsonValue] = field(default_factory=list)
    stores: frozenset[str] = frozenset()  # that have graphs
    inbox: JsonObject | None = None
    policies: JsonObject = field(default_factory=dict)  # what each goes by


_REMEMBERED: WeakKeyDictionary[Hub, Remembered] = WeakKeyDictionary()


async def page_now(hub: Hub, args: JsonObject) -> Told:
    """Everything the hub knows, with the moment it was seen; `unchanged` for who knows it already.

    `known` is the `version` of an earlier answer. Nothing is asked of any node.
    """
    known = Fields(args).text_or("known", "", 64)
    last = _REMEMBERED.setdefault(hub, Remembered())
    stamp = (hub.last_look_s, hub.journal.changes, id(hub.settings), hub.complaint,
             hub.schedule is None, hub.clock.boottime() // AGAIN_S)  # fmt: skip
    if stamp != last.stamp:
        data = await _everything(hub, last)
        last.number += data != last.data
        last.stamp, last.data = stamp, data
    version = f"{hub.lease.instance}.{hub.lease.term}.{id(last):x}.{last.number}"
    if known == version:
        return Told({"version": version, "unchanged": True})
    return Told({"version": version, "unchanged": False, **last.data})


async def _everything(hub: Hub, last: Remembered) -> JsonObject:
    look_stamp = (hub.last_look_s, id(hub.settings), frozenset(hub.journal.words.suspended()))
    if look_stamp != last.look_stamp:
        _see(hub, last)
        last.look_stamp = look_stamp
    beside = await _beside(hub, last)
    run, move = hub.journal.runs.last_numbers()
    view = hub.last_view
    looked_at = iso(view.at) if view is not None else None
    return {
        "fleet": hub.settings.fleet, "policy": hub.settings.policy, "hub": _hub(hub),
        "looked_at": looked_at, "limits": _limits(hub.settings),
        "policies": last.policies,
        "header": {**_header(hub, last), "fleet_day": await _fleet_day(hub)},
        "needs_you": await all_needs(hub, last.needs, beside), "nodes": last.nodes,
        "inbox": last.inbox, "graphs": graph_counts(hub, beside),
        "stranded": stranded_of(hub), "sensors": _without_ages(sensor_lines(hub)),
        "moves": _moves(hub),
        "cursors": {"run": run, "move": move, "look": looked_at, "rows": hub.journal.changes},
    }  # fmt: skip


async def _beside(hub: Hub, last: Remembered) -> Beside:
    """What nodes said when they were asked last; of graphs the hub's own queue says it now."""
    graphs, unread = await graphs_of(hub.links, [INBOX])
    beside = hub.beside.of_stores(last.stores - {INBOX})
    return beside.with_graphs(INBOX, None if INBOX in unread else graphs[INBOX])


async def _fleet_day(hub: Hub) -> JsonObject | None:
    """What the limit of the fleet's day counts; only a fleet that has one asks for it."""
    return None if hub.settings.budget_per_day is None else await fleet_day(hub)


def _see(hub: Hub, last: Remembered) -> None:
    """What the last look saw; read anew only when there was another one."""
    met, now = hub.journal.nodes.met(), hub.clock.now()
    facts = {name: NodeFactsSeen(unseen_s=(now - one.at).total_seconds())
             for name, one in met.items()}  # fmt: skip
    view, inbox = remembered(hub)
    seen = Look(hub, Tally(hub.links, hub.clock), view,
                inbox or NodeUnseen(INBOX, "not_asked", "not asked yet"), facts, Memory())
    last.needs = needs_you(seen) if hub.last_view is not None else []
    last.stores = stores_with_graphs(seen)
    last.nodes = {one.name: _stamped(hub, one, seen_line(hub, one)) for one in view.seen}
    last.nodes |= {one.name: _unaged(unseen_line(one)) for one in view.unseen}
    last.inbox = None if inbox is None else inbox_line(inbox)
    last.policies = limits_by_policy(hub.settings)


def _stamped(hub: Hub, node: NodeSeen, line: JsonObject) -> JsonObject:
    """The line with the moment at which it was true, in the place of ages."""
    at = hub.clock.now() - timedelta(seconds=node.age_s)
    return {"at": iso(at), **_unaged(line)}


def _unaged(line: JsonObject) -> JsonObject:
    return {name: one for name, one in line.items() if name not in _AGES}


def _without_ages(lines: list[JsonValue]) -> list[JsonValue]:
    return [{name: one for name, one in line.items() if name not in ("ago_s", "under_way_s")}
            for line in lines if isinstance(line, dict)]  # fmt: skip


def _hub(hub: Hub) -> JsonObject:
    paused = hub.journal.words.fleet_paused()
    word: JsonValue = None
    if paused is not None:
        word = {"by": paused.by, "reason": paused.reason, "at": iso(paused.at)}
    return {"name": hub.settings.hub, "running": hub.schedule is not None, "term": hub.lease.term,
            "paused": word}  # fmt: skip


def _limits(settings: FleetSettings) -> JsonObject:
    """What the pictures draw lines at; what each policy goes by stands in `policies`."""
    steal, entry = settings.steal, settings.sensors.get(REBALANCE)
    return {
        "busy_over": steal.busy_over, "idle_min_s": steal.idle_min_s, "per_node": steal.per_node,
        "steal_from": steal.steal_from, "anyone_from": steal.anyone_from,
        "per_cycle": steal.per_cycle,
        "every_s": entry.every_s if entry else None,
        "stale_after_s": settings.health.stale_after_s, "hops": steal.hops_allowed,
        "gain_min_s": steal.gain_min_s, "transfer_s": steal.transfer_s,
        "task_takes_s": steal.default_task_s,
    }  # fmt: skip


def _header(hub: Hub, last: Remembered) -> JsonObject:
    """The first line of the page. What a silent node has is not counted, for nobody knows it."""
    seen = [one for one in last.nodes.values() if isinstance(one, dict) and one.get("seen")]
    count = Counter({"pending": 0, "running": 0})
    for one in seen:
        for name in ("pending", "running"):
            number = one.get(name)
            count[name] += number if isinstance(number, int) else 0
    inbox = last.inbox.get("pending") if last.inbox else None
    cycle = next(iter(hub.journal.runs.last(REBALANCE)), None)
    spent = sum(hub.journal.tallies.of_today(COSTS).values())
    return {
        "nodes": len(last.nodes), "seen": len(seen), "waiting": count["pending"], "inbox": inbox,
        "running": count["running"],
        "moved_last_cycle": cycle.report.acted if cycle else None,
        "moved_24h": hub.journal.runs.count_moved(hub.clock.now() - timedelta(days=1)),
        "spent_today_usd": money(spent), "budget_per_day_usd": hub.settings.budget_per_day,
    }  # fmt: skip


def _moves(hub: Hub) -> list[JsonValue]:
    since = hub.clock.now() - timedelta(days=1)
    return [
        {"at": iso(line.at), "uid": line.move.uid, "from": line.move.busy, "to": line.move.idle,
         "why": line.move.why, "outcome": line.move.outcome, "rule": line.move.rule,
         "because": line.move.because}
        for line in hub.journal.runs.moves(since=since, limit=MOVES_SHOWN)
    ]  # fmt: skip


assert UNIT == 10**6, "what is counted of money is in millionths"
