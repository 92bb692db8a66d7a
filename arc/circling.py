"""Looks for tasks of several queues that wait for each other, which no queue can see by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.readiness import all_edges
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import Task

from .asking import read_listed
from .decisions.circles import Circle, circles
from .errors import ArcError
from .graph_answers import read_graph
from .links import Link
from .looking import Look

if TYPE_CHECKING:
    from .hub import Hub

PAGE, PAGES_MAX = 1000, 20  # waiting tasks of one queue that are looked at
MEMBERS = 10_000
SHOWN_MAX = 8  # tasks of one circle that are named
EVENT = "tasks_wait_in_a_circle"
BLOCKED = "PENDING"
Where = dict[str, tuple[str, Task]]  # uid: the queue that it waits in


async def look_for_circles(seen: Look) -> None:
    """Remember, for a person, which tasks of different queues wait for each other at this moment.

    Looked for only where an awaited task was found to wait for something itself for long, or while
    a circle is known. A circle of which a queue cannot be asked now stays known.
    """
    hub = seen.hub
    if not (hub.circling or hub.circles):
        return
    hub.circling = False
    names = [one.name for one in seen.whole.seen
             if one.report.counts.get(BLOCKED) and one.name in seen.links]  # fmt: skip
    said = await asyncio.gather(*(blocked(seen.links[name]) for name in names))
    where: Where = {}
    for name, tasks in zip(names, said, strict=True):
        for task in tasks:
            where.setdefault(task.uid, (name, task))
    found = circles(_waits(where))
    real = [one for one in found if await _is_real(seen.links, one, where)]
    known = set(hub.circles)
    hub.circles = unheard_circles(seen) | {
        one: tuple(where[uid][0] for uid in one) for one in real}
    for one in hub.circles.keys() - known:
        hub.journal.runs.log(EVENT, task=one[0], fields={"because": _named(one, hub.circles[one])})


def unheard_circles(seen: Look) -> dict[Circle, tuple[str, ...]]:
    """Those with a task where nobody answers now: nothing was said that breaks them."""
    silent = seen.whole.unheard
    return {one: nodes for one, nodes in seen.hub.circles.items() if not silent.isdisjoint(nodes)}


async def blocked(link: Link) -> list[Task]:
    """What is blocked there, up to a bound; of a queue that fails in between, what it had told."""
    found: list[Task] = []
    asked: JsonObject = {"states": [BLOCKED], "limit": PAGE}
    try:
        for _ in range(PAGES_MAX):
            page = read_listed(link.name, await link.ask("list", asked))
            found += page.tasks
            if page.next is None:
                break
            asked = {**asked, "after": page.next}
    except ArcError:
        return found
    return found


def _waits(where: Where) -> dict[str, set[str]]:
    """For which tasks each may wait: by its edges, by what it is given, and, where it has run
    already, for any that it made.
    """
    waits = {uid: needs_of(task) for uid, (_, task) in where.items()}
    for uid, (_, task) in where.items():
        if task.parent in waits and where[task.parent][1].attempts:
            waits[task.parent].add(uid)
    return waits


def needs_of(task: Task) -> set[str]:
    """The other tasks that it waits for, by its edges and by what it is given."""
    try:
        edges = all_edges(task.depends_on, task.context_refs, of=task.uid)
    except BadInput:
        return set()
    return {edge.needs for edge in edges}


async def _is_real(links: Mapping[str, Link], circle: Circle, where: Where) -> bool:
    """Whether each waits for the next one indeed, as its own queue says; one cannot be asked: no,
    not now.
    """
    pairs = zip(circle, (*circle[1:], circle[0]), strict=True)
    said = await asyncio.gather(*(_waits_for(links[where[uid][0]], uid, after)
                                  for uid, after in pairs))  # fmt: skip
    return all(said)


async def _waits_for(link: Link, uid: str, needs: str) -> bool:
    try:
        graph = read_graph(link.name, await link.ask("graph", {"dag": uid, "limit": MEMBERS}))
    except ArcError:
        return False
    return any(edge.uid == needs and edge.came is None
               for one in graph.members if one.uid == uid for edge in one.edges)  # fmt: skip


def circles_now(hub: Hub) -> list[JsonValue]:
    """A line for each circle that a person has to break, with how."""
    return [
        {"node": nodes[0], "text": f"{_named(one, nodes)}: none of them ever begins",
         "try": f"arc tasks cancel {one[-1]} --reason 'it waits for itself'"}
        for one, nodes in sorted(hub.circles.items())
    ]  # fmt: skip


def _named(circle: Circle, nodes: tuple[str, ...]) -> str:
    shown = [f"{uid} ({node})" for uid, node in zip(circle, nodes, strict=True)][:SHOWN_MAX]
    more = ["…"] if len(circle) > SHOWN_MAX else []
    whole = " waits for ".join([*shown, *more, circle[0]])
    return f"{len(circle)} tasks wait for each other in a circle: {whole}"
