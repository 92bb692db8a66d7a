"""Cancels a graph: its members at home at once, those elsewhere by word, who is away later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_node.requests import Fields
from agent_node.strict import JsonObject
from arc.errors import NeedsWord, WrongUse
from arc.graph_answers import GraphCancelled, read_graph_cancelled
from arc.graph_cancels import carry_out_cancels

from . import Told
from .everybody import incarnation_of, link_of, not_asked, partial
from .graph_finding import GraphFound, find_graph

if TYPE_CHECKING:
    from arc.hub import Hub

REASON_MAX = 1000


async def dag_cancel(hub: Hub, args: JsonObject) -> Told:
    """Every member that is open ends or is being stopped, wherever it is. Members on nodes that do
    not answer are told when they are back, also by a hub that was started anew; then the exit
    code is 3. Repeating it is safe.
    """
    asked = Fields(args)
    reason = asked.text_or("reason", "", REASON_MAX)
    by, dry_run = asked.text_or("by", "human:unknown"), asked.flag("dry_run")
    if not (reason or dry_run):
        raise NeedsWord("dag cancel: a whole graph takes a word why: --reason '…'")
    found = await find_graph(hub, asked.text("dag", 64))
    if found.alone:
        raise WrongUse(f"{found.seen.line.id} is a task that is in no graph",
                       hint=f"arc tasks cancel {found.seen.line.id}")  # fmt: skip
    word: JsonObject = {"dag": found.seen.line.id, "reason": reason, "by": by}
    async with hub.moving:  # so that no member is missed on its way from node to node
        trial = await _at_home(hub, found, {**word, "dry_run": True})
        if dry_run:
            return _told(found, trial, dry_run=True)
        # Owed before anything is done: a hub that dies half way goes on when it is back.
        hub.journal.outbox.owe_cancels(trial.elsewhere, by=by, reason=_because(found, reason))
        done = await _at_home(hub, found, word)
        hub.journal.outbox.owe_cancels(done.elsewhere, by=by, reason=_because(found, reason))
        links = {name: link for name, link in hub.links.items() if name != found.home}
        carried = await carry_out_cancels(hub, links, all_there=not not_asked(hub))
    hub.journal.runs.log("dag_cancelled", fields={"dag": done.id, "by": by, "reason": reason})
    told = _told(found, done, dry_run=False)
    owed = [one.uid for one in hub.journal.outbox.owed_cancels() if one.uid in done.elsewhere]
    outcome = {uid: carried.done[uid] for uid in done.elsewhere if uid in carried.done}
    told.data.update({"elsewhere": {**outcome}, "owed": [*owed]})
    silent = tuple(partial(name, error) for name, error in sorted(carried.failed.items()))
    return replace(told, exit=3 if owed else 0, partial=silent if owed else (),
                   warnings=not_asked(hub) if owed else ())  # fmt: skip


def _because(found: GraphFound, reason: str) -> str:
    return f"its graph {found.seen.line.id} was cancelled: {reason}"[:REASON_MAX]


async def _at_home(hub: Hub, found: GraphFound, word: JsonObject) -> GraphCancelled:
    link = link_of(hub, found.home)
    asked = {**word, **await incarnation_of(link)}
    return read_graph_cancelled(link.name, await link.ask("graph_cancel", asked))


def _told(found: GraphFound, done: GraphCancelled, *, dry_run: bool) -> Told:
    line = found.seen.line
    return Told({
        "dag": done.id, "title": line.title, "home": found.home, "state": done.state,
        "was": line.state, "cancelled": done.cancelled, "stopping": done.stopping,
        "open_elsewhere": len(done.elsewhere), "dry_run": dry_run,
    })  # fmt: skip
