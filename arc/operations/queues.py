"""Reads queues whole, as far as an answer to a person needs them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agent_node.strict import JsonObject
from arc.asking import queued, read_listed
from arc.decisions.view import NodeSeen, Queue, QueuedTask, Queues, QueueUnseen
from arc.errors import ArcError
from arc.links import Link
from arc.looking import Look
from arc.unseen import rule_of

PAGE = 1000
FIRST_MAX = 10_000  # tasks of the node that is asked about
OTHERS_MAX = 1000  # and of every other one


async def whole_queues(seen: Look, *, first: str) -> Queues:
    """The READY tasks of every node that has some, urgent or not, movable or not.

    Of very long queues the beginning; the rest stands in their totals. They are in the order in
    which `candidates` gives them to a plan: what is said of the next plan is then true of it.
    """
    nodes = [node for node in seen.view.seen
             if node.report.pending_count and node.name in seen.links]  # fmt: skip
    found = await asyncio.gather(*(
        _queue(seen.links[node.name], node, FIRST_MAX if node.name == first else OTHERS_MAX)
        for node in nodes
    ))  # fmt: skip
    swift = seen.hub.settings.steal.swift
    return {queue.node: _ordered(queue, urgent_first=swift) for queue in found}


def _ordered(queue: Queue | QueueUnseen, *, urgent_first: bool) -> Queue | QueueUnseen:
    if isinstance(queue, QueueUnseen):
        return queue
    urgent = sorted(queue.tasks, key=lambda task: task.priority)  # stable: who came first is first
    if urgent_first:
        return replace(queue, tasks=tuple(urgent))
    return replace(queue, tasks=tuple(reversed(urgent)), last_first=True)


async def _queue(link: Link, node: NodeSeen, most: int) -> Queue | QueueUnseen:
    tasks: list[QueuedTask] = []
    after: int | None = None
    try:
        while len(tasks) < most:
            asked: JsonObject = {"states": ["READY"], "limit": PAGE}
            if after is not None:
                asked["after"] = after
            page = read_listed(node.name, await link.ask("list", asked))
            tasks += map(queued, page.tasks)
            after = page.next
            if after is None:
                return Queue(node.name, tuple(tasks), {}, len(tasks), len(tasks))
    except ArcError as error:
        return QueueUnseen(node.name, rule_of(error), str(error), error.code)
    total = max(node.report.pending_count, len(tasks))
    return Queue(node.name, tuple(tasks), {}, total, total)
