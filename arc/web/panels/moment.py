"""Tells how the fleet was at one moment of the past: what the header shows while time is moved."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import UNKNOWN, Sample

from .asked import window_of
from .causes import by_cause_of

if TYPE_CHECKING:
    from arc.history import History

LOOKED_BACK = timedelta(minutes=30)  # older than this a look says nothing about the moment
DAY = timedelta(days=1)
INBOX = "inbox"  # the hub's own queue, which is no node


def data(history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
    """Every node's last look before the moment, with its age then; older ones are unknown."""
    at = window_of(query, now).until
    last: dict[str, Sample] = {}
    for one in history.samples(at - LOOKED_BACK, at + timedelta(milliseconds=1)):
        if one.at <= at:
            last[one.node] = one
    stranded = history.stranded(at - DAY, at)
    then = [one for one in stranded if one.since <= at <= one.until]
    feeds = history.feeds(at - DAY, at)
    spent = history.spent(at - DAY, at)
    forgotten = sorted({one.name for one in history.nodes() if one.since <= at} - {INBOX, *last})
    nodes: list[JsonValue] = [_node(one, at) for _, one in sorted(last.items())]
    known = [one for one in last.values() if one.state != UNKNOWN]
    return {
        "at": iso(at), "nodes": nodes, "known": len(known),
        "forgotten": list[JsonValue](forgotten),
        "waiting": sum(one.pending for one in known), "running": sum(one.running for one in known),
        "moved_24h": sum(one.moves for one in feeds),
        "stranded_24h_s": round(sum(one.seconds_in(at - DAY, at) for one in stranded), 1),
        "stranded_now": [one.node for one in then], "by_cause": by_cause_of(stranded, at - DAY, at),
        "stranded_because": [{"node": one.node, "cause": one.cause, "rule": one.rule,
                              "uid": one.uid, "beside": one.beside} for one in then],
        "cost_24h_usd": format(sum(map(sum, spent.nodes.values())), ".4f"),
    }  # fmt: skip


def _node(one: Sample, at: datetime) -> JsonObject:
    idle_s = (at - one.idle_since).total_seconds() if one.idle_since else None
    return {
        "node": one.node, "state": one.state, "because": one.because,
        "pending": one.pending, "running": one.running, "slots": one.slots,
        "free": one.free, "idle_s": None if idle_s is None else round(max(idle_s, 0.0), 1),
        "age_s": round(max((at - one.until).total_seconds(), 0.0), 1),
    }  # fmt: skip
