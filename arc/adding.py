"""Adds the work that a schedule, a file or a rule asks for, through the one door and only once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.graph_document import read_graph
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.ulid import new_ulid

from .asking import read_added, reading
from .errors import NotFound
from .operations.dags_submit import know_outside, outside_of
from .operations.ties import NoSuchGraph, tied

if TYPE_CHECKING:
    from .hub import Hub

SAID_MAX = 500
UNKNOWN, BAD = "unknown_task", "bad_task"  # as a queue itself would say
# How a queue says that the same occasion is there under other words. Of the same moment the uid is
# the same as well. Of a graph, a key or a uid that is taken is that of one of its tasks.
CONFLICTS = ("key_conflict", "uid_conflict")
GRAPH_CONFLICTS = ("graph_conflict",)


@dataclass(frozen=True)
class Wanted:
    """One piece of work: a task or a graph, under a key that the same occasion always has."""

    key: str
    origin: str  # cron:NAME, file:NAME or watch:NAME
    at: datetime  # the occasion; uids are made from it and from the key
    ref: str
    task: JsonObject | None = None
    graph: JsonObject | None = None


@dataclass(frozen=True)
class AddedWork:
    """What became of it. `exists`: an earlier look had added it already."""

    uid: str
    outcome: str  # added | exists | refused
    rule: str = ""
    because: str = ""


async def add_work(hub: Hub, wanted: Wanted, *, dry_run: bool = False) -> AddedWork:
    """Add it to the hub's own queue; asking again is safe, for the key and every uid are the same.

    A key that is taken by other content is the same occasion under words that were changed since:
    it was added, and is not added again. What would wait for a task that no node has is refused;
    `NotFoundYet` where a node that might have it does not answer.
    """
    if wanted.graph is not None:
        return await _submit(hub, wanted, wanted.graph, dry_run=dry_run)
    task: JsonObject = {
        "ref": wanted.ref, **(wanted.task or {}), "uid": uid_for(wanted), "key": wanted.key,
        "origin": wanted.origin, "source": wanted.origin,
    }  # fmt: skip
    try:
        whole = (await tied(hub, [task])).tasks
    except (NotFound, BadInput) as error:
        was = await _add(hub, [task], wanted, dry_run=True)  # before what it waited for was gone
        return was if was.outcome != "added" else _cannot_wait(was.uid, error)
    return await _add(hub, whole, wanted, dry_run=dry_run)


async def _add(
    hub: Hub, tasks: list[JsonValue], wanted: Wanted, *, dry_run: bool
) -> AddedWork:
    fields: JsonObject = {"tasks": tasks, "by": wanted.origin, "whole": True, "dry_run": dry_run}
    said = read_added(hub.inbox.name, await hub.inbox.ask("add", await _meant(hub, fields)))
    found = said[0] if said else None
    if found is None:
        return AddedWork("", "refused", "no_answer", "the hub's own queue said nothing of it")
    because = found.because
    return _once(AddedWork(found.uid, found.outcome, because.rule if because else "",
                           because.text if because else ""), CONFLICTS)  # fmt: skip


def _cannot_wait(uid: str, error: NotFound | BadInput) -> AddedWork:
    """Refused by the rule that its error stands for: a task or a graph that is not there, a graph
    that takes nothing any more, or what cannot be read or looked up.
    """
    rule = BAD if isinstance(error, BadInput) else UNKNOWN
    return AddedWork(uid, "refused", error.rule if isinstance(error, NoSuchGraph) else rule,
                     str(error)[:SAID_MAX])  # fmt: skip


def _once(added: AddedWork, conflicts: tuple[str, ...]) -> AddedWork:
    taken = added.outcome == "refused" and added.rule in conflicts
    return AddedWork(added.uid, "exists", added.rule, added.because) if taken else added


async def _submit(
    hub: Hub, wanted: Wanted, graph: JsonObject, *, dry_run: bool
) -> AddedWork:
    document = with_uids(wanted, graph)
    try:
        await know_outside(hub, _outside_of(document, hub, wanted))
    except (NotFound, BadInput) as error:
        was = await _hand_in(hub, wanted, document, dry_run=True)
        return was if was.outcome != "added" else _cannot_wait(was.uid, error)
    return await _hand_in(hub, wanted, document, dry_run=dry_run)


def _outside_of(document: JsonObject, hub: Hub, wanted: Wanted) -> tuple[str, ...]:
    """None of a document that is no graph: its queue refuses that, and says why."""
    try:
        return outside_of(read_graph(document, mint=hub.mint, source=wanted.origin))
    except BadInput:
        return ()


async def _hand_in(
    hub: Hub, wanted: Wanted, document: JsonObject, *, dry_run: bool
) -> AddedWork:
    fields: JsonObject = {"graph": document, "by": wanted.origin, "dry_run": dry_run}
    said = await hub.inbox.ask("submit", await _meant(hub, fields))
    with reading(hub.inbox.name, "submit"):
        answer = Fields(said)
        outcome = answer.word("outcome", "added", "exists", "refused")
        why = answer.inside("because") if answer.has("because") else Fields({})
        return _once(AddedWork(
            answer.text_or("dag", "", 64), outcome, why.text_or("rule", "", 64),
            str(why.values.get("text") or "")[:SAID_MAX],
        ), GRAPH_CONFLICTS)  # fmt: skip


async def _meant(hub: Hub, fields: JsonObject) -> JsonObject:
    met = await hub.inbox.meet()
    return {**fields, "incarnation": met.incarnation}


def uid_for(wanted: Wanted, part: str = "") -> str:
    """The uid that this part of this occasion always has."""
    made = sha256(f"{wanted.key}\n{part}".encode()).digest()[:10]
    return new_ulid(max(int(wanted.at.timestamp() * 1000), 0), made)


def with_uids(wanted: Wanted, graph: JsonObject, above: str = "graph") -> JsonObject:
    """The graph with its key, its id and a uid for each task; those that follow it, too."""
    tasks = graph.get("tasks")
    named: JsonValue = tasks
    if isinstance(tasks, dict):
        named = {name: _with_uid(wanted, one, f"{above}/{name}") for name, one in tasks.items()}
    elif isinstance(tasks, list):
        named = [_with_uid(wanted, one, f"{above}/{n}") for n, one in enumerate(tasks)]
    made: JsonObject = {**graph, "id": uid_for(wanted, above), "tasks": named}
    if above == "graph":
        made["key"] = wanted.key
    if isinstance(following := graph.get("then"), dict):
        made["then"] = with_uids(wanted, following, f"{above}/then")
    return made


def _with_uid(wanted: Wanted, task: JsonValue, part: str) -> JsonValue:
    if not isinstance(task, dict):
        return task
    return {"origin": wanted.origin, "source": wanted.origin, **task, "uid": uid_for(wanted, part)}
