"""Looks up what a blocked task waits for, wherever in the fleet that is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_node.budget import DAG, DAILY, key_of
from agent_node.clock import iso
from agent_node.fields import is_money
from agent_node.readiness import edges_of
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import Task
from agent_node.text import safe_text
from agent_node.ulid import is_ulid
from arc.asking import read_shown
from arc.decisions.why_waiting import NOWHERE, OVER, UNSEEN, Hold, Needed, Waiting, why_it_waits
from arc.errors import ArcError, NotFound, NotFoundYet

from .everybody import link_of
from .finding import Found, find_task

if TYPE_CHECKING:
    from arc.hub import Hub

LOOKED_MAX = 20  # of the tasks that it waits for; the others are counted
TEXT_MAX = 500
BLOCKED, LEFT = "PENDING", "MOVED"


async def waiting_of(hub: Hub, found: Found) -> JsonObject:
    """What `why` adds for a task that is blocked; nothing for every other one."""
    if found.task.state != BLOCKED:
        return {}
    task = await _as_of_now(hub, found)
    edges = edges_of(task.depends_on, of=task.uid)
    needed = await asyncio.gather(*(_needed(hub, edge.needs, edge.on_failure)
                                    for edge in edges[:LOOKED_MAX]))  # fmt: skip
    answer = why_it_waits(task.uid, needed, holds_of(task))
    return {} if answer is None else _out(answer, more=len(edges) - len(needed))


async def _as_of_now(hub: Hub, found: Found) -> Task:
    """Where it waits for money its node is asked once more, for it then looks into its books: a
    list has the figures of when the task was set aside. One that does not answer now told those.
    """
    task = found.task
    if not any(isinstance(one, dict) and one.get("enough_usd") for one in task.blocked_by):
        return task
    try:
        said = await link_of(hub, found.node).ask("show", {"uid": task.uid})
        now = read_shown(found.node, task.uid, said).task
    except ArcError:
        return task
    return now if now.state == BLOCKED else task


async def _needed(hub: Hub, uid: str, on_failure: str) -> Needed:
    try:
        found = await find_task(hub, uid)
    except NotFound:
        return Needed(uid, on_failure, NOWHERE)
    except NotFoundYet:
        return Needed(uid, on_failure, UNSEEN)
    task = found.task
    ended = hub.journal.ends.of([uid]).get(uid) if task.state == LEFT else None
    if ended is not None:  # on a node that is away by now
        return Needed(uid, on_failure, ended.state, ended.node, task.subject, iso(ended.at))
    return Needed(uid, on_failure, str(task.state), found.node, task.subject, task.completed_at)


def holds_of(task: Task) -> list[Hold]:
    """What keeps it beside its edges, in its node's own words."""
    return [
        Hold(safe_text(str(one["rule"]), 64), safe_text(str(one.get("text") or ""), TEXT_MAX),
             *_of_money(one))
        for one in task.blocked_by if isinstance(one, dict) and one.get("rule")
    ]  # fmt: skip


def _of_money(one: JsonObject) -> tuple[str, bool]:
    """How a scope is allowed more, and whether that alone helps; nothing of every other hold."""
    scope, enough = str(one.get("scope")), one.get("enough_usd")
    if not (isinstance(enough, str) and is_money(enough)):
        return "", False
    dag, for_good = scope.removeprefix(DAG), one.get("comes_back") is False
    if scope in DAILY:
        return key_of(scope, enough), for_good
    if dag == scope or not is_ulid(dag):
        return "", False
    return f"arc dag budget {dag} {enough}", for_good


def _out(answer: Waiting, *, more: int) -> JsonObject:
    edges: list[JsonValue] = [
        {"uid": one.uid, "on_failure": one.on_failure, "state": one.state, "node": one.node,
         "subject": one.subject, "ended_at": one.ended_at, "says": says}
        for one, says in answer.edges
    ]  # fmt: skip
    return {"verdict": answer.verdict, "result": answer.says, "by_hand": [*answer.verbs],
            "waits_for": edges, "waits_for_more": max(more, 0)}  # fmt: skip


async def has_gone_on(hub: Hub, found: Found, said: JsonObject) -> Found | None:
    """The task as it is now, if all that it waited for has ended and it waits no more: it was read
    before they were, and a short graph ends in between. None: it still waits, or cannot be found
    once more, and then what was found stands.
    """
    edges = said.get("waits_for")
    if not isinstance(edges, list) or not edges or said["waits_for_more"]:
        return None
    if not all(isinstance(one, dict) and one["state"] in OVER for one in edges):
        return None
    try:
        again = await find_task(hub, found.uid)
    except (NotFound, NotFoundYet):
        return None
    return None if again.task.state == BLOCKED else again
