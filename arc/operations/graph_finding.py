"""Finds the one graph a person means, in whichever queue it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.text import WHOLE_SHORT, first_of, safe_text
from agent_node.ulid import is_ulid
from arc.errors import Ambiguous, ArcError, NodeRefused, NotFound, NotFoundYet
from arc.graph_answers import GraphLine, GraphSeen, MemberSeen, read_graph, read_graphs

from .everybody import ask_all, not_found_yet
from .finding import Found, find_task

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.links import Link

PAGE = 1000
PAGES_MAX = 10  # of one queue: graphs that are looked through for a part of an id
MEMBERS_PAGE = 2000
TITLE_SHOWN = 60
HINT_S = 4.0  # a hint beside an error is worth no longer wait
# What a node says that is too old to keep graphs: it has none.
TOO_OLD = frozenset({"unknown_request"})


@dataclass(frozen=True)
class GraphFound:
    """A graph and the store that keeps it; the errors are of nodes that could not be asked."""

    seen: GraphSeen
    failed: dict[str, ArcError]
    alone: bool = False  # a task that is in no graph

    @property
    def home(self) -> str:
        """The store that keeps it."""
        return self.seen.line.home


async def all_graphs(
    links: Mapping[str, Link], fields: JsonObject, *, pages: int = 1
) -> tuple[list[GraphLine], dict[str, ArcError]]:
    """The graphs of these stores, newest first in each; who could not be asked, and why."""
    found: list[GraphLine] = []
    failed: dict[str, ArcError] = {}
    wanted = sorted(links)
    said = await asyncio.gather(*(_graphs_of(links[name], fields, pages) for name in wanted))
    for name, one in zip(wanted, said, strict=True):
        if isinstance(one, ArcError):
            failed[name] = one
        else:
            found += one
    return found, failed


async def _graphs_of(link: Link, fields: JsonObject, pages: int) -> list[GraphLine] | ArcError:
    """A node that is too old to keep graphs has none."""
    found: list[GraphLine] = []
    asked = dict(fields)
    try:
        for _ in range(pages):
            lines, following = read_graphs(link.name, await link.ask("graphs", dict(asked)))
            found += lines
            if following is None:
                break
            asked["after"] = following
    except NodeRefused as error:
        return error if error.rule not in TOO_OLD else []
    except ArcError as error:
        return error
    return found


async def find_graph(hub: Hub, part: str) -> GraphFound:
    """The graph that is meant by this beginning or end of its id, or of the uid of a task: then the
    graph to which the task belongs, or the task as a graph of one.
    """
    wanted = part.strip().upper()
    lines: list[GraphLine] = []
    failed: dict[str, ArcError] = {}
    if not is_ulid(wanted):
        lines, failed = await all_graphs(hub.links, {"limit": PAGE}, pages=PAGES_MAX)
        lines = [one for one in lines if one.id.startswith(wanted) or one.id.endswith(wanted)]
    if len({one.id for one in lines}) > 1:
        raise Ambiguous(f"{part}: could be any of these graphs:\n{_candidates(lines)}",
                        hint="give more of the id")  # fmt: skip
    found = await _whole(hub, lines[0].id if lines else wanted)
    if found is not None:
        return replace(found, failed={**failed, **found.failed})
    return await _of_task(hub, part, failed)


async def find_task_not_graph(hub: Hub, part: str) -> Found:
    """The task that is meant; where no task is called so and a graph is, the error points to it."""
    try:
        return await find_task(hub, part)
    except (NotFound, NotFoundYet) as error:
        line = await _graph_called(hub, part)
        if line is None:
            raise
        title = f' "{safe_text(line.title, TITLE_SHOWN)}"' if line.title else ""
        raise type(error)(f"{error}; {line.id} is a graph{title}",
                          hint=f"arc dag show {line.id}") from error  # fmt: skip


async def _graph_called(hub: Hub, part: str) -> GraphLine | None:
    """The one graph that this may mean; None: none, several, or nobody could say."""
    try:
        async with asyncio.timeout(HINT_S):
            found = await find_graph(hub, part)
    except (ArcError, TimeoutError):
        return None
    return None if found.alone else found.seen.line


async def _whole(hub: Hub, dag: str) -> GraphFound | None:
    """The graph of this id with all its members; None: no store that answered keeps it."""
    if not is_ulid(dag):
        return None
    answers = await ask_all(hub, "graph", {"dag": dag, "limit": 1}, read_graph)
    homes = [name for name, one in answers.said.items()
             if one.line.id == dag and not _is_one_task(one)]  # fmt: skip
    failed = {name: error for name, error in answers.failed.items()
              if not isinstance(error, NodeRefused)}  # fmt: skip
    return GraphFound(await whole_graph(hub, homes[0], dag), failed) if homes else None


def _is_one_task(seen: GraphSeen) -> bool:
    """Whether it is a task that is in no graph, told as a graph of one."""
    return [one.uid for one in seen.members] == [seen.line.id]


async def whole_graph(hub: Hub, home: str, dag: str) -> GraphSeen:
    """All members of a graph, page by page."""
    link = hub.links[home]
    asked: JsonObject = {"dag": dag, "limit": MEMBERS_PAGE}
    seen = read_graph(home, await link.ask("graph", asked))
    members, following = list(seen.members), seen.next
    while following is not None:
        page = read_graph(home, await link.ask("graph", {**asked, "after": following}))
        members += page.members
        following = page.next if page.members else None  # a list that says nothing new has ended
    if seen.next is None:
        return seen
    roots, leaves = _ends_of(members)
    return replace(seen, members=tuple(members), roots=roots, leaves=leaves, next=None)


def _ends_of(members: Sequence[MemberSeen]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Roots and leaves of all members together: a page knows those of its own members alone."""
    inside = {one.uid for one in members}
    needed = {edge.uid for one in members for edge in one.edges}
    roots = tuple(one.uid for one in members
                  if not any(edge.uid in inside for edge in one.edges))  # fmt: skip
    return roots, tuple(one.uid for one in members if one.uid not in needed)


async def _of_task(hub: Hub, part: str, failed: dict[str, ArcError]) -> GraphFound:
    """The graph of the task that is meant."""
    try:
        task = await find_task(hub, part, kind="graph or task")
    except NotFound as error:
        if failed:
            what = f"{part}: no node that answered has such a graph or task"
            raise not_found_yet(what, failed) from error
        raise NotFound(f"{part}: no graph and no task of this fleet begins or ends so",
                       hint=f"arc dag list --all shows the graphs; {WHOLE_SHORT}") from error
    if task.task.dag is not None:
        found = await _whole(hub, task.task.dag)
        if found is not None:
            return found
        raise not_found_yet(f"{task.uid} belongs to the graph {task.task.dag}, which no queue that "
                            "answered keeps", failed | dict(task.answers.failed), task.not_asked)
    return GraphFound(await whole_graph(hub, task.node, task.uid), failed, alone=True)


def _candidates(lines: list[GraphLine]) -> str:
    said = {one.id: f"  {one.id}  {one.state}  {one.home}  {safe_text(one.title, 60)}"
            for one in lines}  # fmt: skip
    return first_of([*said.values()])
