"""Carries a person's word to one node: pause, resume, drain; and the hub's own: suspend."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from agent_node.clock import iso, parse_iso
from agent_node.lines import encode
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State
from arc.asking import read_listed
from arc.decisions.draining import PINNED, pinned_there
from arc.decisions.view import NodeSeen, NodeUnseen, QueueUnseen
from arc.errors import ArcError, NeedsWord, WrongUse
from arc.journal_words import OWN
from arc.looking import look
from arc.planning import drain_of
from arc.schedule import Schedule
from arc.stood import noted, stood_in
from arc.survey import survey

from . import Told
from .everybody import check_node, incarnation_of, link_of, nothing_changed, partial_of
from .plan import counts_of, kept_of, steps

if TYPE_CHECKING:
    from arc.hub import Hub

SECONDS_MAX = 30 * 86_400.0
REBALANCE = "fleet-rebalance"
PAGE, PAGES_MAX = 1000, 10  # of waiting tasks, for those that are pinned
TRIAL_S = 30.0  # for all pages of a queue together: nothing of the fleet moves meanwhile
NAMES_S = 10.0  # for the pages with what is pinned, together: the answer waits for them
ROOM = 2 * 1024 * 1024  # bytes of each list of tasks: an answer is one line
PAST = {"pause": "paused", "resume": "resumed", "drain": "draining"}


async def nodes_pause(hub: Hub, args: JsonObject) -> Told:
    """The node takes nothing new and keeps its queue; what runs goes on."""
    return await _tell(hub, "pause", args)


async def nodes_resume(hub: Hub, args: JsonObject) -> Told:
    """The node takes work again; one that was suspended is asked again."""
    asked = Fields(args)
    name = asked.node("node")
    if name not in hub.journal.words.suspended():  # the word may outlive the node's entry
        check_node(hub, name)
        return await _tell(hub, "resume", args)
    if not asked.flag("dry_run"):
        hub.journal.words.unsuspend(name)
        hub.journal.runs.log("node_unsuspended", node=name, fields=_said(asked))
        await hub.follow_words()
    return Told({"node": name, "state": "asked again", "was": "suspended",
                 "dry_run": asked.flag("dry_run")})  # fmt: skip


async def nodes_drain(hub: Hub, args: JsonObject) -> Told:
    """Its waiting tasks go to others, at once; what runs may finish.

    The last node that takes work is drained only with `yes`; a dry run shows what it would be, and
    what would become of each waiting task.
    """
    asked = Fields(args)
    name = asked.node("node")
    check_node(hub, name)
    dry_run = asked.flag("dry_run")
    last = None if asked.flag("yes") else await _the_last(hub, name)
    if last is not None and not dry_run:
        raise last
    told = await _tell(hub, "drain", args)
    if last is not None:
        told = replace(told, warnings=(f"{last}; {last.hint}",))
    if not dry_run:
        schedule = hub.schedule or Schedule(hub)
        await schedule.until_free(REBALANCE)  # one that began before may not have seen it
        report = await schedule.run_now(REBALANCE, f"{name} drains")
        looked = report.outcome in {"done", "skipped"}
        told.data.update(summary=report.summary, planned=report.decided if looked else None)
        if not asked.has("agent"):  # of an agent alone no task leaves the node
            told.data["left"] = await _left(hub, name)
    elif not asked.has("agent"):
        told.data["drain"], unread = await _trial(hub, name)
        told = replace(told, exit=3 if unread else 0, partial=unread)
    return told


async def _trial(hub: Hub, name: str) -> tuple[JsonObject, tuple[JsonObject, ...]]:
    """Where each of its waiting tasks would go, or by which rule it would stay; or why that is not
    known. And who could not be read for it: this node, or one that might take something.
    """
    silent: Sequence[NodeUnseen] = ()
    try:
        async with hub.moving, asyncio.timeout(TRIAL_S):  # moves half way would be counted twice
            seen = await look(hub)
            silent = seen.view.silent
            plan = await drain_of(seen, name)
    except TimeoutError:
        plan = QueueUnseen(name, "silent", f"{name}: its queue was not read in {TRIAL_S:g} s")
    if isinstance(plan, QueueUnseen):
        unread = NodeUnseen(name, plan.rule, plan.because, plan.code)
        return ({"known": False, "rule": plan.rule, "because": plan.because},
                partial_of((*silent, unread)))  # fmt: skip
    pinned = any(one.rule == "pinned" for one in plan.counts)
    stays = [*kept_of(plan.kept, len(plan.kept)), *(await _pinned(hub, name) if pinned else [])]
    paused = hub.journal.words.fleet_paused()
    trial: JsonObject = {
        "known": True, "moves": _with_room(steps(plan.steals)), "moves_count": len(plan.steals),
        "stays": _with_room(stays), "counts": counts_of(plan.counts),
        "fleet_paused": paused is not None,
    }  # fmt: skip
    return trial, partial_of(silent)


async def _left(hub: Hub, name: str) -> JsonObject:
    """What still waits there behind the run, with the tasks that no drain moves; or why that is
    not known.
    """
    view = await survey({name: link_of(hub, name)}, roles=hub.roles(), clock=hub.clock)
    node = view.node(name)
    if not isinstance(node, NodeSeen):
        unseen = node or NodeUnseen(name, "node_answers", "it was not asked")
        return {"known": False, "rule": unseen.rule, "because": unseen.because}
    pinned = pinned_there(node)
    return {
        "known": True, "pending": node.report.pending_count, "running": node.report.running_count,
        "pinned": pinned, "stays": _with_room(await _pinned(hub, name)) if pinned else [],
        "fleet_paused": hub.journal.words.fleet_paused() is not None,
    }  # fmt: skip


def _with_room(entries: Sequence[JsonValue]) -> list[JsonValue]:
    """The first of them, as many as one answer has room for; the counts have all."""
    ends = accumulate(len(encode(one).encode()) for one in entries)
    return [one for one, end in zip(entries, ends, strict=True) if end <= ROOM]


async def _pinned(hub: Hub, name: str) -> list[JsonValue]:
    """The waiting tasks that a node counts as pinned and names to nobody who would move them; of
    those that cannot be read the count stands alone.
    """
    found: list[JsonValue] = []
    asked: JsonObject = {"states": [str(State.READY)], "limit": PAGE}
    link, now = link_of(hub, name), asyncio.get_running_loop().time
    until = now() + NAMES_S
    with suppress(ArcError):
        for _ in range(PAGES_MAX):
            asking = link.ask("list", dict(asked), timeout_s=max(until - now(), 0.1))
            page = read_listed(name, await asking)
            found += [{"uid": one.uid, "subject": one.subject, "priority": one.priority,
                       "node": name, "rule": "not_pinned", "because": PINNED}
                      for one in page.tasks if one.pinned]  # fmt: skip
            if page.next is None:
                break
            asked["after"] = page.next
    return found


async def _the_last(hub: Hub, name: str) -> NeedsWord | None:
    """What speaks against draining this node without a word; None: another one takes work."""
    seen = await look(hub)
    others = [node.name for node in seen.view.seen
              if node.name != name and node.report.state == "active"
              and node.report.dispatcher == "running"]  # fmt: skip
    if others:
        return None
    return NeedsWord(f"no other node takes work now; if {name} drains, everything waits",
                     hint="--yes drains it all the same")  # fmt: skip


async def nodes_suspend(hub: Hub, args: JsonObject) -> Told:
    """From now on the node is not even asked: no questions, no moves, no alarms. It works on."""
    asked = Fields(args)
    name = asked.node("node")
    check_node(hub, name)
    until = parse_iso(asked.text("until", 40)) if asked.has("until") else None
    if until is not None and until <= hub.clock.now():
        raise WrongUse(f"--until {asked.text('until', 40)} lies in the past")
    if not asked.flag("dry_run"):
        hub.journal.words.suspend(name, reason=asked.text_or("reason", "", 1000), by=_by(asked),
                                  until=until)  # fmt: skip
        hub.journal.runs.log("node_suspended", node=name, fields={
            **_said(asked), **({"until": iso(until)} if until else {})})
        await hub.follow_words()
    return Told({"node": name, "state": "suspended", "reason": asked.text_or("reason", "", 1000),
                 "until": iso(until) if until else None,
                 "dry_run": asked.flag("dry_run")})  # fmt: skip


async def _tell(hub: Hub, do: str, args: JsonObject) -> Told:
    asked = Fields(args)
    name = asked.node("node")
    check_node(hub, name)
    link = link_of(hub, name)
    fields: JsonObject = {
        "reason": asked.text_or("reason", "", 1000), "by": _by(asked),
        "dry_run": asked.flag("dry_run"),
    }  # fmt: skip
    with nothing_changed():
        fields |= await incarnation_of(link)
    fields |= _agent(asked)
    deadline = asked.seconds("deadline_s", SECONDS_MAX)
    if do == "drain":
        fields["then"] = asked.word("then", "wait", "requeue") if asked.has("then") else "wait"
        if deadline is not None:
            fields["deadline_s"] = deadline
    async with hub.saying[name]:
        with nothing_changed():
            said = Fields(await link.ask(do, fields))
        stood = stood_in(said.values)
        if do == "resume":  # what a node was told before is over then
            stood.pop("was", None)
        if not asked.flag("dry_run") and not asked.has("agent"):
            hub.journal.words.told([name])  # this word is newer than one that the fleet was told
            hub.journal.words.say_whose(name, None if do == "resume" else OWN)
    if not asked.flag("dry_run"):
        fields = {**_said(asked), **_agent(asked), **noted(stood)}
        if do != "resume":  # a word without a reason leaves the one that was given
            fields["reason"] = said.text_or("reason", "", 1000)
        hub.journal.runs.log(f"node_{PAST[do]}", node=name, fields=fields)
    return Told({
        "node": name, "agent": said.maybe_text("agent"), "state": said.text("state", 40),
        "reason": said.text_or("reason", "", 1000), "dry_run": asked.flag("dry_run"),
        **stood,
    })  # fmt: skip


def _said(asked: Fields) -> JsonObject:
    """Who said it and why, as the log keeps it."""
    return {"by": _by(asked), "reason": asked.text_or("reason", "", 1000)}


def _agent(asked: Fields) -> JsonObject:
    """Which agent alone it was said of; without it, of the whole node."""
    return {"agent": asked.node("agent")} if asked.has("agent") else {}


def _by(asked: Fields) -> str:
    return asked.text_or("by", "human:unknown")
