"""Lists the transfers that are not over, and ends them; after a quarantine, uid by uid."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_node.clock import iso
from agent_node.moves import Fenced
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.errors import NeedsWord
from arc.fencing import settle_uid
from arc.settlements import settled_of
from arc.settling import Settlement, settle
from arc.survey import survey

from . import Told, exit_of
from .everybody import not_asked, partial_of
from .finding import find_task
from .nodes_fence import everybody, told_of

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.reowning import Reowning


async def doubts_list(hub: Hub, args: JsonObject) -> Told:
    """Every transfer that some node does not count as over, as each end tells it; and the tasks
    that had been moved to a queue which another one has replaced.
    """
    view = await survey(hub.links, roles=hub.roles(), clock=hub.clock)
    doubts: list[JsonValue] = [
        {"node": node.name, "xfer": one.xfer, "uid": one.uid, "side": one.side,
         "state": one.state, "peer": one.peer, "age_s": round(one.age_s, 1)}
        for node in view.seen for one in node.report.doubts
    ]  # fmt: skip
    parked: list[JsonValue] = [
        {"node": node.name, "parked": node.report.counts["PARKED"]}
        for node in view.seen if node.report.counts.get("PARKED")
    ]  # fmt: skip
    partial = partial_of(view.silent)
    lost: list[JsonValue] = [
        {"node": one.node, "uid": uid, "since": iso(one.at)}
        for one in hub.journal.lives.standing() for uid in one.lost
    ]  # fmt: skip
    data: JsonObject = {"doubts": doubts, "parked": parked, "lost": lost,
                        "unread": _names(partial)}  # fmt: skip
    return Told(data, 3 if partial else 0, partial, not_asked(hub))


async def doubts_settle(hub: Hub, args: JsonObject) -> Told:
    """End what can be ended. With tasks named: decide where each of them lives, and only there.

    To own a task again is a person's word that no other copy of it runs: it takes `yes`. With
    `dry_run` both ends are asked what they would say, and nothing is changed.
    """
    asked = Fields(args)
    parts = asked.words("tasks")
    if parts:
        return await _settle_uids(hub, parts, asked)
    dry_run = asked.flag("dry_run")
    async with hub.moving:
        view = await survey(hub.links, roles=hub.roles(), clock=hub.clock)
        settled = await settle(hub.links, view, dry_run=dry_run)
    if not dry_run:
        _write_down(hub, settled, asked)
    left = any(one.outcome != "settled" for one in settled)
    partial = partial_of([*view.silent, *(node for one in settled for node in one.unseen)])
    lines: list[JsonValue] = [_line(one) for one in settled]
    data: JsonObject = {"settled": lines, "unread": _names(partial), "dry_run": dry_run}
    return Told(data, 3 if partial or left else 0, partial, not_asked(hub))


def _write_down(hub: Hub, settled: Sequence[Settlement], asked: Fields) -> None:
    """Where each task lives since, for whoever asks who had it last; and who said so."""
    moves = settled_of(settled)
    hub.journal.runs.add_moves(moves)
    for one in moves:
        hub.journal.runs.log("task_settled", node=one.idle, task=one.uid, fields={
            "from": one.busy, "to": one.idle, "rule": one.rule, "because": one.because,
            **_word(asked)})  # fmt: skip


def _word(asked: Fields) -> JsonObject:
    return {"by": asked.text_or("by", ""), "reason": asked.text_or("reason", "", 1000)}


async def _settle_uids(hub: Hub, parts: tuple[str, ...], asked: Fields) -> Told:
    if not asked.flag("yes") and not asked.flag("dry_run"):
        raise NeedsWord(
            "a task that is owned again may run again: it takes your word that it does not run"
            " elsewhere", hint="--yes says so; --dry-run only looks")  # fmt: skip
    found = await asyncio.gather(*(find_task(hub, part) for part in parts))
    fenced = [Fenced(one.node, one.incarnation) for one in hub.journal.words.fences()]
    done: list[Reowning] = []
    async with hub.moving:
        view = await survey(hub.links, roles=hub.roles(), clock=hub.clock)
        for one in found:
            became = await settle_uid(hub.links, view, one.uid, everybody=everybody(hub),
                                      fenced=fenced, dry_run=asked.flag("dry_run"))  # fmt: skip
            done.append(became)
            _note(hub, became, asked)
    told = [told_of(one) for one in done]
    partial = partial_of(node for one in done for node in one.unseen)
    return Told({"tasks": [*told], "dry_run": asked.flag("dry_run")},
                exit_of(told, unread=bool(partial)), partial)  # fmt: skip


def _note(hub: Hub, became: Reowning, asked: Fields) -> None:
    if not asked.flag("dry_run"):
        if became.outcome == "reowned":
            hub.journal.ends.forget(became.uid)  # a person's word counts, not what was heard
        if became.outcome != "refused":
            hub.journal.lives.decided([became.uid])
        said: JsonObject = {"outcome": became.outcome, **_word(asked)}
        hub.journal.runs.log("task_settled", task=became.uid, node=became.node, fields=said)


def _line(one: Settlement) -> JsonObject:
    return {
        "xfer": one.xfer, "uid": one.uid, "giver": one.giver, "taker": one.taker,
        "outcome": one.outcome, "now": one.now, "rule": one.rule, "because": one.because,
    }  # fmt: skip


def _names(partial: tuple[JsonObject, ...]) -> list[JsonValue]:
    return [one["node"] for one in partial]
