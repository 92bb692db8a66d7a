"""Pauses and resumes the whole fleet: every node, and the hub's own moving."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.errors import ArcError
from arc.owing import say_for_fleet
from arc.stood import noted, word_before

from . import Told
from .everybody import partial

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.links import Link

INBOX = "inbox"


async def fleet_pause(hub: Hub, args: JsonObject) -> Told:
    """Nothing new starts or moves anywhere; what runs goes on.

    The hub stops moving first, whatever nodes answer; who could not be told is named. Where the
    fleet is paused already, a word without a reason leaves the first one; another replaces it. What
    is paused or drains by a word of its own stays as it is, now and when the fleet is resumed.
    """
    asked = Fields(args)
    said, by = asked.text_or("reason", "", 1000), asked.text_or("by", "human:unknown")
    before = hub.journal.words.fleet_paused()
    missed = {word.node for do, word in hub.journal.words.owed() if do == "pause"}
    heard = frozenset(hub.links if before is not None else ()) - missed
    same = before is not None and said in {"", before.reason}
    reason = before.reason if before is not None and same else said
    since = hub.journal.runs.said_since("", ["fleet_paused"], over=["fleet_resumed"])
    stood: JsonObject = {"reason": reason, **word_before(before, "paused", since=since),
                         **({"already": True} if same else {})}  # fmt: skip
    if not asked.flag("dry_run"):
        if not same:
            hub.journal.words.pause_fleet(reason=reason, by=by)
        hub.journal.runs.log("fleet_paused", fields={"by": by, "reason": reason, **noted(stood)})
    word = _Word("pause", said, by, owed=reason, heard=heard)
    told = await _tell_all(hub, word, dry_run=asked.flag("dry_run"))
    return replace(told, data={**told.data, "state": "paused", **stood})


async def fleet_resume(hub: Hub, args: JsonObject) -> Told:
    """Work starts and moves again where the fleet's pause stopped it; what is paused or drains by a
    word of its own stays so, and is named.
    """
    asked = Fields(args)
    reason, by = asked.text_or("reason", "", 1000), asked.text_or("by", "human:unknown")
    paused = hub.journal.words.fleet_paused() is not None
    if not asked.flag("dry_run"):
        hub.journal.words.resume_fleet()
        hub.journal.runs.log("fleet_resumed", fields={"by": by, "reason": reason})
    heard = frozenset(hub.links if paused else ())
    word = _Word("resume", reason, by, owed=reason, heard=heard)
    return await _tell_all(hub, word, dry_run=asked.flag("dry_run"))


@dataclass(frozen=True)
class _Word:
    """What all nodes are told; `owed` is the reason for those that missed an earlier word, too.
    `heard` are those that the fleet's pause reached, as far as nothing else was noted.
    """

    do: str
    reason: str
    by: str
    owed: str
    heard: frozenset[str]


async def _tell_all(hub: Hub, word: _Word, *, dry_run: bool) -> Told:
    """All at once: a node that is slow or gone keeps the word from no other.

    Who cannot be told now is told when it is back; until it was, the journal remembers.
    """
    names = sorted(name for name in hub.links if name != INBOX)
    words = hub.journal.words
    if not dry_run:
        words.owe((node.name for node in hub.settings.nodes), word.do, reason=word.owed, by=word.by)
    fields: JsonObject = {"reason": word.reason, "by": word.by, "dry_run": dry_run}
    found = await asyncio.gather(*(_tell(hub, hub.links[name], word, fields) for name in names))
    said = dict(zip(names, found, strict=True))
    nodes: list[JsonValue] = [{"node": name, **heard} for name, heard in said.items()
                              if not isinstance(heard, ArcError)]  # fmt: skip
    failed = tuple(partial(name, error) for name, error in said.items()
                   if isinstance(error, ArcError))  # fmt: skip
    later: list[JsonValue] = [] if dry_run else [one.node for _, one in words.owed()]
    told: JsonObject = {"nodes": nodes, "later": later, "dry_run": dry_run}
    return Told(told, 3 if failed else 0, failed)


async def _tell(
    hub: Hub, link: Link, word: _Word, fields: JsonObject
) -> JsonObject | ArcError:
    """The node's state after the word and what it had been told before, or why it was not told."""
    try:
        async with hub.saying[link.name]:  # of two words a node hears the later one last
            heard = await say_for_fleet(
                hub, link, word.do, fields, heard=link.name in word.heard)
            if not fields["dry_run"]:
                hub.journal.words.told([link.name], word.do)
    except ArcError as error:
        return error
    new = word.do == "pause" and bool(heard.get("was")) and not heard.get("already")
    if new and not fields["dry_run"]:
        hub.journal.runs.log("node_paused", node=link.name, fields={
            "by": str(fields["by"]), "reason": str(fields["reason"]), **noted(heard)})
    return heard
