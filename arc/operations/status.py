"""Tells how the fleet is: what needs a person first, then every node, the queue and the sensors."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agent_node import __version__
from agent_node.clock import iso, parse_iso
from agent_node.strict import JsonObject, JsonValue
from agent_node.text import counted
from arc.circling import circles_now
from arc.decisions.health import judge_health
from arc.decisions.view import NodeSeen, NodeUnseen
from arc.doubted import doubted_ends
from arc.looking import INBOX, Look, look

from . import Told
from .dead_kinds import with_kinds
from .graphs_now import graphs_now
from .leftovers import leftovers
from .notices import untold
from .sensing import sensor_lines

if TYPE_CHECKING:
    from arc.hub import Hub

MOVES_SHOWN = 5
NO_AGENT = "no agent here has"  # of the hub's own queue, where nothing is ever run
NO_DAEMON = "no daemon has run here yet"
_LIVE = {"dispatcher_runs", "node_answers"}
_SAID_BY_THE_NODE = {"nobody_is_waited_for", "not_quarantined"}  # in its own words, above
HEALTH = "fleet-health"
# Rules under which a node is unseen because somebody has to decide something.
_FOR_A_PERSON = {"host_key", "login", "no_node", "wrong_node", "unreadable"}
_TRY = {"host_key": "arc explain ARC-SSH-HOSTKEY", "login": "arc explain ARC-SSH-LOGIN"}


async def status(hub: Hub, args: JsonObject) -> Told:
    """One fresh look at every node; nothing is changed by it."""
    seen = await look(hub)
    nodes: list[JsonValue] = [seen_line(hub, one) for one in seen.view.seen]
    nodes += [unseen_line(one) for one in seen.view.unseen]
    nodes.sort(key=lambda one: str(one["node"]) if isinstance(one, dict) else "")
    paused = hub.journal.words.fleet_paused()
    word: JsonValue = None
    if paused is not None:
        word = {"by": paused.by, "reason": paused.reason, "at": iso(paused.at)}
    silent = seen.view.silent
    graphs = await graphs_now(hub, [one.name for one in seen.whole.seen if one.name in hub.links
                                    and one.report.graphs_count != 0])  # fmt: skip
    data: JsonObject = {
        "fleet": hub.settings.fleet, "policy": hub.settings.policy,
        "hub": {"name": hub.settings.hub, "running": hub.schedule is not None,
                "term": hub.lease.term, "paused": word,
                "owed": [{"node": said.node, "do": do} for do, said in hub.journal.words.owed()
                         if hub.settings.node(said.node) is not None]},
        "needs_you": [*complaints(hub), *await with_kinds(seen, needs_you(seen)),
                      *await leftovers(hub), *doubted_ends(hub), *circles_now(hub),
                      *graphs.needs_you, *untold(hub)],
        "graphs": graphs.counts,
        "nodes": nodes,
        "inbox": inbox_line(seen.inbox),
        "stranded": stranded_of(hub),
        "sensors": sensor_lines(hub),
        **_moves(hub),
    }  # fmt: skip
    unread = tuple(_partial(one) for one in silent)
    return Told(data, exit=3 if unread else 0, partial=unread)


def needs_you(seen: Look) -> list[JsonValue]:
    """Everything that waits for a person, the worst first: where, what, and what to type."""
    said: list[JsonValue] = [
        {"node": node.name, "text": node.because,
         "try": _TRY.get(node.rule, f"arc doctor --node {node.name}")}
        for node in seen.view.unseen if node.rule in _FOR_A_PERSON
    ]  # fmt: skip
    for one in (*seen.view.seen, *([seen.inbox] if isinstance(seen.inbox, NodeSeen) else [])):
        said += [{"node": one.name, "text": text, "try": _try(one.name, text)}
                 for text in one.report.needs_you
                 if one.name != INBOX or not (NO_AGENT in text or NO_DAEMON in text)]  # fmt: skip
    said += _troubles(seen)
    for doubt in seen.settled:
        if doubt.outcome == "needs_person":
            said.append({"node": doubt.giver, "text": f"{doubt.uid}: {doubt.because}",
                         "try": "arc doubts list"})  # fmt: skip
    return said


def complaints(hub: Hub) -> list[JsonValue]:
    """What is wrong with fleet.yaml since it was changed; nothing: it is obeyed."""
    if not hub.complaint:
        return []
    return [{"node": hub.settings.file.name, "try": "arc config check",
             "text": f"the hub runs on with what it knew, for: {hub.complaint}"}]  # fmt: skip


def _troubles(seen: Look) -> list[JsonValue]:
    """Which nodes do not answer, or have no daemon, as it is now; the rest as the last run for
    health told it. Nothing is said twice, and nothing that is over.
    """
    hub = seen.hub
    unseen = {node.name: node for node in seen.view.unseen}
    told = {node.name: node.report.needs_you for node in seen.view.seen}
    judged = judge_health(seen.view, seen.facts, hub.settings.health, version=__version__)
    found = [(node.node, one.rule, one.because) for node in judged for one in node.troubles
             if one.alarm and one.rule in _LIVE]  # fmt: skip
    found += [(alert.node, alert.rule, alert.because) for alert in hub.journal.nodes.standing()
              if alert.rule not in _LIVE and alert.node in {*hub.roles(), INBOX}]  # fmt: skip
    said: list[JsonValue] = []
    for node, rule, because in found:
        if rule in _SAID_BY_THE_NODE and node in told:
            continue
        if node in unseen and unseen[node].rule in {*_FOR_A_PERSON, "suspended"}:
            continue  # said above, or by whoever suspended it
        text, command = because, f"arc why --node {node}"
        if rule == "dispatcher_runs":
            if any(NO_DAEMON in one for one in told[node]):
                continue
            text, command = _stopped(seen, node), f"on {node}: agent-node start"
        elif node in unseen:
            command = f"arc doctor --node {node}"
        said.append({"node": node, "text": text, "try": command})
    return said


def _stopped(seen: Look, name: str) -> str:
    node = seen.view.node(name)
    waits = node.report.pending_count if isinstance(node, NodeSeen) else 0
    return f"its daemon does not run; {counted(waits, 'task')} waiting there" if waits else (
        "its daemon does not run, so nothing starts there")


def _try(node: str, text: str) -> str:
    """What to type first about a sentence in which a node asks for a person."""
    if NO_DAEMON in text:
        return f"on {node}: agent-node start"
    for word, command in _BY_WORD.items():
        if word in text:
            return command
    return f"arc nodes show {node}" if node != INBOX else "arc tasks list --node inbox"


_BY_WORD = {
    " dead:": "arc dead list",
    " parked:": "arc tasks list --state PARKED",
    " held ": "arc doubts list",
    " wait for money": "arc budget",
    "quarantined": "arc explain quarantined",
}


def seen_line(hub: Hub, node: NodeSeen) -> JsonObject:
    """One node that answered."""
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
        "reason": reason_of(node), "version": report.version, "dispatcher": report.dispatcher,
        "clock_off_s": node.clock_off_s, "disk_free_bytes": report.disk_free_bytes,
    }  # fmt: skip


def state_of(node: NodeSeen) -> str:
    """One word for a node that answered: what it was told, else what it does."""
    report = node.report
    if report.state != "active":
        return report.state
    if report.dispatcher != "running":
        return "stopped"
    return "idle" if report.idle else "working"


def reason_of(node: NodeSeen) -> str:
    """Why it is as it is: what a person said, and whether its daemon runs at all."""
    stopped = node.report.dispatcher != "running"
    daemon = f"its daemon does not run: on {node.name}: agent-node start" if stopped else ""
    return "; ".join(filter(None, (node.report.reason, daemon)))


def unseen_line(node: NodeUnseen) -> JsonObject:
    """One node of which nothing is known, and why."""
    state = "suspended" if node.rule == "suspended" else "unseen"
    return {"node": node.name, "seen": False, "state": state, "rule": node.rule,
            "reason": node.because, "code": node.code, "owns": list(node.role.owns),
            "also": list(node.role.also)}  # fmt: skip


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
    lines = hub.journal.runs.moves(since=since, limit=1000)
    done = [line for line in lines if line.move.outcome == "moved"]
    return {
        "moved_24h": len(done),
        "moves": [
            {"at": iso(line.at), "uid": line.move.uid, "from": line.move.busy,
             "to": line.move.idle, "why": line.move.why, "because": line.move.because}
            for line in done[:MOVES_SHOWN]
        ],
    }  # fmt: skip


def _partial(node: NodeUnseen) -> JsonObject:
    return {"node": node.name, "error": {"code": node.code, "message": node.because}}
