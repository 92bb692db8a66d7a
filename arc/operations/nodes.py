"""Lists the nodes, and shows one whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.decisions.view import NodeSeen
from arc.links.hostkeys import HostKey, HostKeys
from arc.looking import look

from . import Told
from .everybody import check_node
from .status import status

if TYPE_CHECKING:
    from arc.hub import Hub


async def nodes_list(hub: Hub, args: JsonObject) -> Told:
    """Every node of fleet.yaml: how it is reached, whose work it does, and how it is."""
    told = await status(hub, {})
    found = told.data["nodes"]
    assert isinstance(found, list), "status tells of every node"
    keys = HostKeys(hub.settings.state / "known_hosts").read()
    nodes: list[JsonValue] = [
        {**one, **_entry(hub, str(one["node"]), keys)} for one in found if isinstance(one, dict)
    ]
    return Told({"nodes": nodes}, told.exit, told.partial)


def _entry(hub: Hub, name: str, keys: Mapping[str, HostKey]) -> JsonObject:
    entry = hub.settings.node(name)
    if entry is None:
        return {}
    where = "local" if entry.local else f"{entry.user or ''}@{entry.host}:{entry.port}".lstrip("@")
    pinned = keys.get(name)
    return {"where": where, "never": list[JsonValue](entry.never),
            "host_key": str(pinned) if pinned and not entry.local else None}  # fmt: skip


async def nodes_show(hub: Hub, args: JsonObject) -> Told:
    """One node whole: its report, its agents, what was last known of it, its alerts."""
    name = Fields(args).node("node")
    check_node(hub, name)
    seen = await look(hub)
    node = seen.view.node(name)
    told = await nodes_list(hub, {})
    listed = told.data["nodes"]
    assert isinstance(listed, list), "every node is listed"
    line = next(one for one in listed if isinstance(one, dict) and one["node"] == name)
    met = hub.journal.nodes.met().get(name)
    data: JsonObject = {
        **line,
        "last_met": None if met is None else {"at": iso(met.at), "version": met.version,
                                              "incarnation": met.incarnation,
                                              "clock_off_s": met.clock_off_s},
        "last_open": last_open(hub, name),
        "alerts": [{"rule": one.rule, "because": one.because}
                   for one in hub.journal.nodes.standing() if one.node == name],
        **(_report(node) if isinstance(node, NodeSeen) else {}),
    }  # fmt: skip
    partial = tuple(one for one in told.partial if one["node"] == name)
    return Told(data, exit=3 if partial else 0, partial=partial)


def last_open(hub: Hub, name: str) -> JsonObject | None:
    """How many tasks were not over there when it answered last; None: it never did."""
    known = hub.journal.nodes.last_open(name)
    if known is None:
        return None
    age_s = (hub.clock.now() - known[1]).total_seconds()
    return {"count": known[0], "at": iso(known[1]), "age_s": round(max(age_s, 0.0), 1)}


def _report(node: NodeSeen) -> JsonObject:
    report = node.report
    return {
        "incarnation": report.incarnation, "generation": report.generation,
        "written_at": report.written_at, "took_s": round(node.took_s, 4),
        "agents": [
            {"name": agent.name, "state": agent.state, "slots": agent.slots,
             "running": agent.running, "skills": list[JsonValue](agent.skills),
             "paused": agent.paused, "missing": agent.missing,
             "last_heartbeat": agent.last_heartbeat}
            for agent in report.agents
        ],
        "skills": list[JsonValue](report.skills),
        "capabilities": list[JsonValue](report.capabilities),
        "disk_free_bytes": report.disk_free_bytes, "disk_total_bytes": report.disk_total_bytes,
        "needs_you": list[JsonValue](report.needs_you), "last_task": report.last_task,
        "movable": report.movable_count, "counts": dict(report.counts),
    }  # fmt: skip
