"""Warns that nothing starts on a node which was just given tasks: why, since when, what to type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.text import ago
from arc.decisions.node_rules import missing_there
from arc.decisions.view import NodeSeen
from arc.looking import INBOX, remembered
from arc.survey import survey

from .fleet_word import how_to_resume

if TYPE_CHECKING:
    from arc.hub import Hub

ASK_S = 2.0  # a warning is worth no longer wait; without an answer stands what was seen last
_PAUSED, _DRAINS = ("node_paused", "fleet_paused"), ("node_draining",)
_WORDS = {"paused": _PAUSED, "draining": _DRAINS, "drained": _DRAINS}  # that make it so
_RESUMED = ("node_resumed", "fleet_resumed")


async def nothing_starts(hub: Hub, node: str) -> tuple[str, ...]:
    """A sentence where a task that was given to this node waits for a person; else nothing.

    It is asked for this, once: an order to the node by another way, a minute ago, counts too.
    """
    link = hub.links.get(node)
    if link is None or node == INBOX:
        return ()
    view = await survey({node: link}, roles=hub.roles(), clock=hub.clock, deadline_s=ASK_S)
    now, before = view.node(node), remembered(hub)[0].node(node)
    if isinstance(now, NodeSeen):
        return tuple(filter(None, [_why(hub, now)]))
    if not isinstance(before, NodeSeen) or not (said := _why(hub, before)):
        return ()
    return (f"as it was seen {ago(before.age_s)}, {said}",)


def _why(hub: Hub, node: NodeSeen) -> str:
    name, report = node.name, node.report
    if report.state in ("draining", "drained"):
        return (f"{name} is {report.state}{_since(hub, node, report.state)}: it starts nothing "
                f"new, and what waits there goes to others; arc nodes resume {name} ends that")
    if report.state == "quarantined":
        return (f"{name} is quarantined{_since(hub, node, report.state)}: nothing starts there "
                f"until a person decided. On {name}: {node.role.typed('release')}")
    if report.state != "active":
        return (f"{name} is {report.state}{_since(hub, node, report.state)}: nothing starts there "
                f"until {how_to_resume(hub, name)}")  # fmt: skip
    if report.dispatcher != "running":
        return (f"{name}'s daemon does not run{_since(hub, node, 'stopped')}: nothing starts there "
                f"until it does: {node.role.how_to_start(name)}")  # fmt: skip
    if report.agents and all(one.paused for one in report.agents):
        if gone := missing_there(node):
            return (f"{name}, {gone}: nothing starts there until it is installed, or node.toml "
                    f"names another; arc doctor --node {name}")
        return (f"every agent of {name} is paused: nothing starts there until one is resumed: "
                f"arc nodes resume {name} --agent {report.agents[0].name}")  # fmt: skip
    return ""


def _since(hub: Hub, node: NodeSeen, state: str) -> str:
    """Since when it was seen so or was told to be, as far as that is known; and the reason."""
    words = _WORDS.get(state, ())
    over = [one for one in (*_PAUSED, *_DRAINS, *_RESUMED) if one not in words]
    told = hub.journal.runs.said_since(node.name, words, over=over) if words else None
    at = hub.journal.history.samples.so_since(node.name, state, told)
    because = f" ({node.report.reason})" if node.report.reason and state != "stopped" else ""
    return (f" since {iso(at)}" if at else "") + because
