"""Hears what happened on the nodes since the last time: what ended, and what runs for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent_node.clock import parse_iso
from agent_node.strict import JsonObject
from agent_node.task import Task
from arc.asking import read_events, read_listed
from arc.decisions.view import NodeSeen
from arc.errors import ArcError
from arc.journal_ends import FINAL, TaskEnd
from arc.journal_nodes import Ended
from arc.looking import Look

if TYPE_CHECKING:
    from arc.hub import Hub

PAGE = 1000
PAGES_MAX = 5  # of one node and run; a long history is heard over several runs
RUNNING_MAX = 100
ENDS = {"task_completed": True, "task_failed": False}
RUNNING = ("CLAIMED", "RUNNING", "VALIDATING")
ELSEWHERE = "task_ended_elsewhere"  # a giver's note, and no end of its own


@dataclass(frozen=True)
class Heard:
    """Of nodes that could not be heard why, by name; and the tasks that ended well since."""

    unheard: dict[str, str]
    ends: tuple[TaskEnd, ...] = ()


async def hear_all(hub: Hub, seen: Look) -> Heard:
    """Hear every node that was seen, and write down what ended there."""
    nodes = [node for node in seen.view.seen if node.name in seen.links]
    ends: list[TaskEnd] = []
    said = await asyncio.gather(*(_hear(hub, seen, node, ends) for node in nodes))
    unheard = {node.name: why for node, why in zip(nodes, said, strict=True) if why}
    return Heard(unheard, tuple(ends))


async def _hear(hub: Hub, seen: Look, node: NodeSeen, ends: list[TaskEnd]) -> str:
    try:
        await _hear_events(hub, seen, node, ends)
        await _hear_running(hub, seen, node)
    except ArcError as error:
        return str(error)
    return ""


async def _hear_events(hub: Hub, seen: Look, node: NodeSeen, ends: list[TaskEnd]) -> None:
    """Read on from where the last run ended; a node that came back anew is read from its start."""
    life = node.report.incarnation
    after = hub.journal.nodes.heard_up_to(node.name, life)
    for _ in range(PAGES_MAX):
        asked: JsonObject = {"after_seq": after, "limit": PAGE}
        events = read_events(node.name, await seen.links[node.name].ask("events", asked))
        after = max([after, *(int(str(event["seq"])) for event in events)])
        ends += _note_ends(hub, node, events)  # before it counts as heard
        ended = [_ended(hub, node, event) for event in events if event["event"] in ENDS]
        hub.journal.nodes.hear(node.name, life, after, ended)
        if len(events) < PAGE:  # a page that was cut for its size is read on from in the next run
            return


def _note_ends(hub: Hub, node: NodeSeen, events: Sequence[JsonObject]) -> list[TaskEnd]:
    """The last word on each task counts: one that was cancelled may have been retried since."""
    last = {str(event.get("uid")): event for event in events
            if event.get("uid") and event.get("state") and event["event"] != ELSEWHERE}
    ends = [TaskEnd(node.name, uid, str(event["state"]), _at(hub, node, event))
            for uid, event in last.items() if _is_end(event)]  # fmt: skip
    hub.journal.ends.note(ends)
    hub.journal.ends.take_back(node.name, last.keys() - {one.uid for one in ends})
    return [one for one in ends if one.state == FINAL]


def _is_end(event: JsonObject) -> bool:
    """An attempt that failed may be tried again; a person's word that a parked task failed is an
    end.
    """
    state = event["state"]
    return state in (FINAL, "CANCELLED") or (state == "FAILED" and event.get("was") == "PARKED")


def _at(hub: Hub, node: NodeSeen, event: JsonObject) -> datetime:
    """When it was by the hub's clock: the node's stamp, less what its clock is off."""
    now = hub.clock.now()
    return min(_moment(event, now, node.clock_off_s or 0.0), now)


def _ended(hub: Hub, node: NodeSeen, event: JsonObject) -> Ended:
    return Ended(
        seq=int(str(event["seq"])), at=_at(hub, node, event),
        uid=str(event.get("uid", "")), well=ENDS[str(event["event"])],
    )  # fmt: skip


def _moment(event: JsonObject, now: datetime, off_s: float) -> datetime:
    try:
        return parse_iso(str(event.get("at"))) - timedelta(seconds=off_s)
    except (ValueError, OverflowError):
        return now  # a stamp that is none: when we heard of it is the best that is known


async def _hear_running(hub: Hub, seen: Look, node: NodeSeen) -> None:
    hub.longest.pop(node.name, None)
    if not node.report.running_count:
        return
    asked: JsonObject = {"states": list(RUNNING), "limit": RUNNING_MAX}
    listed = read_listed(node.name, await seen.links[node.name].ask("list", asked))
    written = parse_iso(node.report.written_at)
    ages = [(_age_s(task, written), task.uid) for task in listed.tasks if task.started_at]
    if ages:
        seconds, uid = max(ages)
        hub.longest[node.name] = (uid, seconds)


def _age_s(task: Task, written: datetime) -> float:
    """By the node's own clock at both ends."""
    return max((written - parse_iso(str(task.started_at))).total_seconds(), 0.0)
