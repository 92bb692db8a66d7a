"""Tells how the fleet is: what needs a person first, then every node, the queue and the sensors."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.explain import lasting
from arc.decisions.failing import NodeFactsSeen, attracts_no_work
from arc.decisions.node_rules import missing_there, some_agent_takes_work
from arc.decisions.view import NodeSeen, NodeUnseen
from arc.decisions.why_states import NO_HUB
from arc.looking import Look, look

from . import Told
from .graphs_now import graph_counts
from .needs import all_needs, ask_beside, needs_you
from .outranked import outranked
from .sensing import sensor_lines

if TYPE_CHECKING:
    from arc.hub import Hub

MOVES_SHOWN = 5
HEALTH = "fleet-health"
START = "arc up   ·   as a service: arc unit"


async def status(hub: Hub, args: JsonObject) -> Told:
    """One fresh look at every node; nothing is changed by it."""
    seen = await look(hub)
    nodes: list[JsonValue] = [seen_line(hub, one, seen.facts.get(one.name))
                              for one in seen.view.seen]  # fmt: skip
    nodes += [unseen_line(one, seen.facts.get(one.name)) for one in seen.view.unseen]
    nodes.sort(key=lambda one: str(one["node"]) if isinstance(one, dict) else "")
    paused = hub.journal.words.fleet_paused()
    word: JsonValue = None
    if paused is not None:
        word = {"by": paused.by, "reason": paused.reason, "at": iso(paused.at)}
    silent = seen.view.silent
    beside = await ask_beside(seen)
    data: JsonObject = {
        "fleet": hub.settings.fleet, "policy": hub.settings.policy,
        "hub": {"name": hub.settings.hub, "running": hub.schedule is not None,
                "term": hub.lease.term, "paused": word,
                "owed": [{"node": said.node, "do": do} for do, said in hub.journal.words.owed()
                         if hub.settings.node(said.node) is not None]},
        "needs_you": [*_without_a_hub(hub, seen),
                      *await all_needs(hub, needs_you(seen), beside)],
        "graphs": graph_counts(hub, beside),
        "nodes": nodes,
        "inbox": inbox_line(seen.inbox),
        "stranded": stranded_of(hub),
        "sensors": sensor_lines(hub),
        **_moves(hub),
    }  # fmt: skip
    unread = tuple(_partial(one) for one in silent)
    return Told(data, exit=3 if unread else 0, partial=unread)


def _without_a_hub(hub: Hub, seen: Look) -> list[JsonValue]:
    """That nobody sends anything anywhere, where there is anybody to send to or anything to send.
    This comes first: what stands below it changes by no cycle. Not where another hub is obeyed:
    then it is no hub that is missing.
    """
    waits = isinstance(seen.inbox, NodeSeen) and seen.inbox.report.pending_count
    if hub.schedule is not None or not (hub.settings.nodes or waits) or outranked(seen):
        return []
    return [{"node": "hub", "text": f"{NO_HUB}; nodes work on", "try": START}]


def seen_line(hub: Hub, node: NodeSeen, facts: NodeFactsSeen | None = None) -> JsonObject:
    """One node that answered; `facts` say whether what it runs fails, where they are known."""
    report = node.report
    since = parse_iso(report.idle_since) if report.idle_since else None
    idle_s = (parse_iso(report.written_at) - since).total_seconds() + node.age_s if since else None
    return {
        "node": node.name, "seen": True, "state": state_of(node), "pending": report.pending_count,
        "running": report.running_count, "free_slots": report.free_slots, "slots": report.slots,
        "idle": report.idle, "idle_since": report.idle_since,
        "idle_s": None if idle_s is None else round(idle_s, 1),
        "oldest_ready_s": report.oldest_ready_s, "counts": dict(report.counts),
        "doubts": len(report.doubts), "age_s": round(node.age_s, 1),
        "owns": list(node.role.owns), "also": list(node.role.also),
        "reason": "; ".join(filter(None, (reason_of(node), _fails(hub, node, facts)))),
        "version": report.version, "dispatcher": report.dispatcher,
        "clock_off_s": node.clock_off_s, "disk_free_bytes": report.disk_free_bytes,
    }  # fmt: skip


def state_of(node: NodeSeen) -> str:
    """One word for a node that answered: what it was told, else what it does."""
    report = node.report
    if report.state != "active":
        return report.state
    if report.dispatcher != "running":
        return "stopped"
    if not report.running_count and not some_agent_takes_work(node):
        return "no_agent"
    return "idle" if report.idle else "working"


def reason_of(node: NodeSeen) -> str:
    """Why it is as it is: what a person said, whether its daemon runs, and what it cannot run."""
    stopped = node.report.dispatcher != "running"
    daemon = f"its daemon does not run: {node.role.how_to_start(node.name)}" if stopped else ""
    return "; ".join(filter(None, (node.report.reason, daemon, _no_agent(node))))


def _no_agent(node: NodeSeen) -> str:
    gone = missing_there(node)
    return "no agent there takes work" if not gone and state_of(node) == "no_agent" else gone


def _fails(hub: Hub, node: NodeSeen, facts: NodeFactsSeen | None) -> str:
    """Why a node that fails is given nothing, and until when: it is idle, and looks well."""
    if facts is None:
        return ""
    objection = attracts_no_work(node, facts, hub.settings.health)
    if objection is None:
        return "it failed, and gets one task until that has ended well" if facts.on_trial else ""
    because = f"given no work, {objection.rule}: {objection.because}"
    if facts.again_s is not None and facts.again_s > 0 and "tried with" not in because:
        because += f"; it is tried with one task in {lasting(facts.again_s)}"
    return because


def unseen_line(node: NodeUnseen, facts: NodeFactsSeen | None = None) -> JsonObject:
    """One node of which nothing is known now, why, and how long ago this hub heard of it."""
    state = "suspended" if node.rule == "suspended" else "unseen"
    ago_s = facts.unseen_s if facts else None
    return {"node": node.name, "seen": False, "state": state, "rule": node.rule,
            "reason": node.because, "code": node.code, "owns": list(node.role.owns),
            "also": list(node.role.also),
            "age_s": None if ago_s is None else round(ago_s, 1)}  # fmt: skip


def inbox_line(inbox: NodeSeen | NodeUnseen) -> JsonObject:
    """The hub's own queue."""
    if isinstance(inbox, NodeUnseen):
        return {"seen": False, "reason": inbox.because, "code": inbox.code}
    report = inbox.report
    return {"seen": True, "pending": report.pending_count, "counts": dict(report.counts),
            "oldest_ready_s": report.oldest_ready_s}  # fmt: skip


def stranded_of(hub: Hub) -> JsonObject:
    """Today's stranded seconds, by cause and by node."""
    by_cause: dict[str, float] = {}
    by_node: dict[str, float] = {}
    for (node, cause), seconds in hub.journal.nodes.stranded(days=0).items():
        by_cause[cause] = by_cause.get(cause, 0.0) + seconds
        by_node[node] = by_node.get(node, 0.0) + seconds
    last = next(iter(hub.journal.runs.last(HEALTH)), None)
    now = last.report.details.get("stranded") if last else None
    return {"now": now if isinstance(now, list) else [], "seen_at": iso(last.at) if last else None,
            "today_s": round(sum(by_cause.values()), 1),
            "by_cause": {cause: round(one, 1) for cause, one in sorted(by_cause.items())},
            "by_node": {node: round(one, 1) for node, one in sorted(by_node.items())}}  # fmt: skip


def _moves(hub: Hub) -> JsonObject:
    since = hub.clock.now() - timedelta(days=1)
    runs = hub.journal.runs
    return {
        "moved_24h": runs.count_moved(since),
        "moves": [
            {"at": iso(line.at), "uid": line.move.uid, "from": line.move.busy,
             "to": line.move.idle, "why": line.move.why, "because": line.move.because}
            for line in runs.moves(since=since, limit=MOVES_SHOWN, outcome="moved")
        ],
    }  # fmt: skip


def _partial(node: NodeUnseen) -> JsonObject:
    return {"node": node.name, "error": {"code": node.code, "message": node.because}}
