"""Pauses and resumes the whole fleet: every node, and the hub's own moving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue

from . import Told
from .everybody import ask_all, incarnation_of, partial

if TYPE_CHECKING:
    from arc.hub import Hub

INBOX = "inbox"


async def fleet_pause(hub: Hub, args: JsonObject) -> Told:
    """Nothing new starts or moves anywhere; what runs goes on.

    The hub stops moving first, whatever nodes answer; who could not be told is named.
    """
    asked = Fields(args)
    reason, by = asked.text_or("reason", "", 1000), asked.text_or("by", "human:unknown")
    if not asked.flag("dry_run"):
        hub.journal.words.pause_fleet(reason=reason, by=by)
        hub.journal.runs.log("fleet_paused", fields={"by": by, "reason": reason})
    return await _tell_all(hub, "pause", reason, by, dry_run=asked.flag("dry_run"))


async def fleet_resume(hub: Hub, args: JsonObject) -> Told:
    """Work starts and moves again, also on nodes that were paused one by one."""
    asked = Fields(args)
    reason, by = asked.text_or("reason", "", 1000), asked.text_or("by", "human:unknown")
    if not asked.flag("dry_run"):
        hub.journal.words.resume_fleet()
        hub.journal.runs.log("fleet_resumed", fields={"by": by, "reason": reason})
    return await _tell_all(hub, "resume", reason, by, dry_run=asked.flag("dry_run"))


async def _tell_all(hub: Hub, do: str, reason: str, by: str, *, dry_run: bool) -> Told:
    names = [name for name in hub.links if name != INBOX]
    lives = await ask_all(hub, "status", {}, lambda _, said: said.get("incarnation"), names=names)
    nodes: list[JsonValue] = []
    partials = list(lives.partial)
    for name in sorted(lives.said):
        fields: JsonObject = {"reason": reason, "by": by, "dry_run": dry_run,
                              **await incarnation_of(hub.links[name])}  # fmt: skip
        told = await ask_all(hub, do, fields, lambda _, said: str(said.get("state")), names=[name])
        nodes += [{"node": node, "state": state} for node, state in told.said.items()]
        partials += [partial(node, error) for node, error in told.failed.items()]
    return Told({"nodes": nodes, "dry_run": dry_run}, 3 if partials else 0, tuple(partials))
