"""Adds tasks, and carries a person's word about them to the nodes that have them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

from agent_node.clock import parse_iso
from agent_node.commands import Changed
from agent_node.deadlines import passed_already
from agent_node.errors import BadInput
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import State, task_from
from agent_node.text import counted
from agent_node.unknown_fields import unknown_fields
from arc.asking import read_added, read_changed
from arc.entitling import tying
from arc.errors import ArcError, WrongUse
from arc.links import Link

from . import Told, exit_of
from .dags_submit import waits_at
from .everybody import incarnation_of, link_of, naming, nothing_changed, partial
from .falling import with_what_falls
from .finding import Found, find_task
from .going_on import at_its_time
from .nobodys import nobodys
from .nothing_starts import nothing_starts
from .sensing import router_turn
from .ties import tied
from .too_dear import too_dear

if TYPE_CHECKING:
    from arc.hub import Hub

BATCH_MAX = 1000
LOGGED_MAX = 50  # tasks of one order that the log names one by one; of more it has the number
PAST = {"set": "set", "cancel": "cancelled", "retry": "retried", "resolve": "resolved"}
TASKS_MAX = 100_000
REFUSED = 1


async def tasks_add(hub: Hub, args: JsonObject) -> Told:
    """New tasks for the hub's own queue, or straight for one node: all of them or none.

    Every task is checked before the first one leaves, and where they take more than one request,
    the node is asked first whether it would take them all. A repeat is safe where a task brings a
    uid or a key.
    """
    asked = Fields(args)
    node, dry_run = asked.maybe_node("to") or "inbox", asked.flag("dry_run")
    given = await tied(hub, asked.entries("tasks", TASKS_MAX))
    tasks = [_checked(hub, entry, f"tasks[{place}]" if len(given.tasks) > 1 else "")
             for place, entry in enumerate(given.tasks)]  # fmt: skip
    link, by = link_of(hub, node), _by(args)
    if not dry_run:
        tying(hub)(node, tasks)
    results: list[JsonObject] = []
    for trial in (True, False) if len(tasks) > BATCH_MAX and not dry_run else (dry_run,):
        results = await _add_all(link, tasks, by, dry_run=trial, again=_again(given.tasks))
        if any(one["outcome"] == "refused" for one in results):
            if trial and not dry_run:  # nothing of it was added
                results = [_with_the_others(one) for one in results]
            break
    results = with_what_falls(results, tasks, given.found)
    refused = any(one["outcome"] == "refused" for one in results)
    if not dry_run and any(task.get("depends_on") or task.get("context_refs") for task in tasks):
        waits_at(hub, node)
    waits = () if refused else await nothing_starts(hub, node)
    new = [task for task, one in zip(tasks, results, strict=False) if one["outcome"] == "added"]
    dear = () if refused else await too_dear(hub, node, new)
    return Told({"node": node, "results": [*results], "dry_run": dry_run,
                 "hub_running": hub.schedule is not None, "router": router_turn(hub)},
                exit=REFUSED if refused else 0,
                warnings=(*unknown_fields(tasks), *nobodys(hub, node, tasks), *_too_late(tasks),
                          *passed_already(new, hub.clock.now()), *dear, *waits))


def _too_late(tasks: list[JsonObject]) -> Iterator[str]:
    late = sum(parse_iso(str(task["deadline"])) <= parse_iso(str(task["not_before"]))
               for task in tasks if task.get("deadline") and task.get("not_before"))  # fmt: skip
    if late:
        yield f"{counted(late, 'task')} may not start before the deadline has passed"


def _with_the_others(one: JsonObject) -> JsonObject:
    if one["outcome"] == "refused":
        return one
    because = "another task was refused, so none was added"
    return {**one, "outcome": "refused", "rule": "whole", "because": because}


async def _add_all(
    link: Link, tasks: list[JsonObject], by: str, *, dry_run: bool, again: str
) -> list[JsonObject]:
    """Request after request. Only of the first one is it certain that without it nothing is new."""
    results: list[JsonObject] = []
    for start in range(0, len(tasks), BATCH_MAX):
        some = tasks[start : start + BATCH_MAX]
        uid, look = str(some[0]["uid"]), _look_for(tasks, start)
        with (nothing_changed() if dry_run or not start else nullcontext(),
              nullcontext() if dry_run else naming(uid, f"{look}; {again}", begun=start > 0)):
            results += await _add(link, some, by, dry_run=dry_run)
    return results


def _look_for(tasks: list[JsonObject], start: int) -> str:
    """How to see whether this request was carried out: each brings all of its tasks, or none."""
    end = min(start + BATCH_MAX, len(tasks))
    says = f"arc tasks show {tasks[start]['uid']} says whether"
    if len(tasks) == 1:
        return f"{says} it was added"
    before = f"tasks 1 to {start} were added; " if start else ""
    more = f", and of the {len(tasks) - end} after them none was" if end < len(tasks) else ""
    return f"{before}{says} tasks {start + 1} to {end} were, all of them or none{more}"


def _again(entries: list[JsonValue]) -> str:
    """What the same order does if it is given once more. A uid that is drawn is another then."""
    named = (isinstance(one, dict) and (one.get("key") or one.get("uid")) for one in entries)
    if all(named):
        return "the same again is safe: its key or uid is never added twice"
    return "the same again may add it twice, which a key of its own rules out (--key)"


async def _add(link: Link, tasks: list[JsonObject], by: str, *, dry_run: bool) -> list[JsonObject]:
    fields: JsonObject = {"tasks": [*tasks], "by": by, "whole": True, "dry_run": dry_run,
                          **await incarnation_of(link)}  # fmt: skip
    return [
        {"uid": one.uid, "outcome": one.outcome, "node": link.name,
         "rule": one.because.rule if one.because else "",
         "because": one.because.text if one.because else ""}
        for one in read_added(link.name, await link.ask("add", fields))
    ]  # fmt: skip


def _checked(hub: Hub, entry: JsonValue, place: str) -> JsonObject:
    """The task as it will be sent: with a uid of its own, so that a lost answer may be repeated.
    `place` is where it stands among several.
    """
    if not isinstance(entry, dict):
        raise BadInput("each task is an object", place)
    task = {"uid": hub.mint(), **entry}
    try:
        task_from(task)
    except BadInput as error:
        raise BadInput(str(error), place) from error
    return task


def _by(args: JsonObject) -> str:
    return Fields(args).text_or("by", "human:unknown")


async def tasks_set(hub: Hub, args: JsonObject) -> Told:
    """Change fields of waiting tasks."""
    fields = Fields(args).mapping("fields")
    return await _tell_each(hub, "set", args, {"fields": fields})


async def tasks_cancel(hub: Hub, args: JsonObject) -> Told:
    """End waiting tasks, and stop running ones."""
    return await _tell_each(hub, "cancel", args, {})


async def tasks_retry(hub: Hub, args: JsonObject) -> Told:
    """Let ended tasks run again."""
    return await _tell_each(hub, "retry", args, {})


async def tasks_resolve(hub: Hub, args: JsonObject) -> Told:
    """Say what became of parked or dead tasks: done, failed or cancelled."""
    word = Fields(args).word("as", "done", "failed", "cancelled")
    return await _tell_each(hub, "resolve", args, {"as": word})


async def _tell_each(hub: Hub, do: str, args: JsonObject, more: JsonObject) -> Told:
    """All tasks are found before anything is done to one of them; one request a node."""
    asked = Fields(args)
    parts = asked.words("tasks")
    if not parts:
        raise WrongUse(f"{do}: names no task")
    found = await asyncio.gather(*(find_task(hub, part) for part in parts))
    by_node: dict[str, dict[str, Found]] = defaultdict(dict)
    for one in found:
        by_node[one.node][one.uid] = one
    results: list[JsonObject] = []
    unread: list[JsonObject] = []
    for node, tasks in sorted(by_node.items()):
        fields: JsonObject = {
            "uids": list[JsonValue](tasks), "reason": asked.text_or("reason", "", 1000),
            "by": _by(args), "dry_run": asked.flag("dry_run"), **more,
        }  # fmt: skip
        try:
            link = link_of(hub, node)
            with nothing_changed() if len(by_node) == 1 else nullcontext():
                said = await link.ask(do, {**fields, **await incarnation_of(link)})
            results += _results(node, do, said, tasks)
        except ArcError as error:
            if len(by_node) == 1:
                raise
            unread.append(partial(node, error))
    if not asked.flag("dry_run"):
        _log(hub, do, args, results)
        if do == "retry":
            _live_again(hub, results)
    return Told({"do": do, "results": [*results], "dry_run": asked.flag("dry_run")},
                exit_of(results, unread=bool(unread)), tuple(unread))  # fmt: skip


def _live_again(hub: Hub, results: list[JsonObject]) -> None:
    """Heard ends that are none any more: a fence a minute later must not lose these tasks."""
    for one in results:
        if one["outcome"] in ("changed", "already"):  # already: by a word on the node itself
            hub.journal.ends.take_back(str(one["node"]), [str(one["uid"])])
            hub.journal.outbox.cancelled([str(one["uid"])])  # what was owed is not meant any more


def _log(hub: Hub, do: str, args: JsonObject, results: list[JsonObject]) -> None:
    asked = Fields(args)
    said: JsonObject = {"by": _by(args), "reason": asked.text_or("reason", "", 1000)}
    if asked.has("as"):
        said["as"] = asked.text("as", 20)
    done = [one for one in results if one["outcome"] in ("changed", "stopping")]
    if len(done) > LOGGED_MAX:
        hub.journal.runs.log(f"tasks_{PAST[do]}", fields={"count": len(done), **said})
        return
    for one in done:
        hub.journal.runs.log(f"task_{PAST[do]}", node=str(one["node"]), task=str(one["uid"]),
                             fields=said)  # fmt: skip


def _outcome(one: Changed, before: Found | None, over: State | None) -> str:
    """What was so before is no change: a second cancel cancels nothing. Nodes that do not say so
    are known by the state in which the task was found.
    """
    was_so = over is not None and before is not None and before.task.state == over
    return "already" if one.outcome == "changed" and (one.already or was_so) else one.outcome


def _later(do: str, one: Changed) -> str:
    """That a task keeps its time, of which somebody may expect now that it runs at once."""
    says = at_its_time(one.task).get("result") if one.task and do == "retry" else None
    return f"{says}; at once with: arc tasks set {one.uid} not_before=" if says else ""


def _results(node: str, do: str, said: JsonObject, tasks: dict[str, Found]) -> list[JsonObject]:
    over = State.CANCELLED if do == "cancel" else None
    return [
        {"uid": one.uid, "node": node,
         "outcome": _outcome(one, tasks.get(one.uid), over),
         "subject": tasks[one.uid].task.subject if one.uid in tasks else "",
         "state": str(one.task.state) if one.task else str(tasks[one.uid].task.state),
         "rule": one.because.rule if one.because else "",
         "because": one.because.text if one.because else _later(do, one)}
        for one in read_changed(node, do, said)
    ]  # fmt: skip
