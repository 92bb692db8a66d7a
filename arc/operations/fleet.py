"""Pauses and resumes the whole fleet: every node, and the hub's own moving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.errors import ArcError
from arc.owing import say_word

from . import Told
from .everybody import partial

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.links import Link

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
    """All at once: a node that is slow or gone keeps the word from no other.

    Who cannot be told now is told when it is back; until it was, the journal remembers.
    """
    names = sorted(name for name in hub.links if name != INBOX)
    words = hub.journal.words
    if not dry_run:
        words.owe((node.name for node in hub.settings.nodes), do, reason=reason, by=by)
    fields: JsonObject = {"reason": reason, "by": by, "dry_run": dry_run}
    found = await asyncio.gather(*(_tell(hub, hub.links[name], do, fields) for name in names))
    said = dict(zip(names, found, strict=True))
    heard = {name: state for name, state in said.items() if isinstance(state, str)}
    nodes: list[JsonValue] = [{"node": name, "state": state} for name, state in heard.items()]
    failed = tuple(partial(name, error) for name, error in said.items()
                   if isinstance(error, ArcError))  # fmt: skip
    later: list[JsonValue] = [] if dry_run else [word.node for _, word in words.owed()]
    told: JsonObject = {"nodes": nodes, "later": later, "dry_run": dry_run}
    return Told(told, 3 if failed else 0, failed)


async def _tell(hub: Hub, link: Link, do: str, fields: JsonObject) -> str | ArcError:
    """The node's state after the word, or why it could not be told."""
    try:
        async with hub.saying[link.name]:  # of two words a node hears the later one last
            state = await say_word(link, do, fields)
            if not fields["dry_run"]:
                hub.journal.words.told([link.name], do)
            return state
    except ArcError as error:
        return error
