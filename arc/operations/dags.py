"""Lists graphs and shows one whole: its levels, its members wherever they are, its money."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.fields import one_of
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from agent_node.task import Task
from agent_node.text import safe_text
from arc.asking import read_listed
from arc.decisions.levels import Placed, levels_of
from arc.errors import ArcError
from arc.graph_answers import STATES, TITLE_MAX, GraphLine, GraphSeen, MemberSeen
from arc.links import Link

from . import Told
from .everybody import partial
from .graph_finding import all_graphs, find_graph
from .tasks import OPEN

if TYPE_CHECKING:
    from arc.hub import Hub

LIST_MAX = 1000
AWAY = "MOVED"
PAGE, PAGES_MAX = 1000, 10  # of each node's open tasks, for where members are
PROGRESS_MAX = 200  # characters
UNFINISHED = ("running", "failed")  # what a list shows unless all are asked for


async def dag_list(hub: Hub, args: JsonObject) -> Told:
    """The graphs of the hub and of every node: those that run or failed, or all of them."""
    asked = Fields(args)
    states = [*asked.words("states")]
    for state in states:
        one_of(*STATES)(state, "state")
    wanted: list[JsonValue] = [*(states or (STATES if asked.flag("all") else UNFINISHED))]
    limit = asked.limit(200, LIST_MAX)
    lines, failed = await all_graphs(hub.links, {"states": wanted, "limit": limit})
    lines.sort(key=lambda one: (one.created_at or "", one.id), reverse=True)
    data: JsonObject = {
        "dags": [line_out(one) for one in lines[:limit]], "more": len(lines) > limit,
        "unread": [*sorted(failed)], "all": bool(asked.flag("all")),
    }  # fmt: skip
    return Told(data, 3 if failed else 0, _partial(failed))


def line_out(one: GraphLine) -> JsonObject:
    """One graph as the envelope has it."""
    return {
        "id": one.id, "home": one.home, "title": one.title, "state": one.state, "by": one.by,
        "reason": one.reason, "key": one.key, "created_at": one.created_at,
        "ended_at": one.ended_at, "total": one.total, "open": one.open, "bad": one.bad,
        "counts": dict(one.counts), "budget_usd": one.budget_usd, "spent_usd": one.spent_usd,
        "reserved_usd": one.reserved_usd, "cost_unknown": cost_unknown(one), "then": one.then,
        "after": one.follows,
    }  # fmt: skip


def cost_unknown(one: GraphLine) -> int:
    """Of how many members its home does not know what they cost: they left, and no end was told."""
    return one.counts.get(AWAY, 0)


def _partial(failed: dict[str, ArcError]) -> tuple[JsonObject, ...]:
    return tuple(partial(name, error) for name, error in sorted(failed.items()))


async def dag_show(hub: Hub, args: JsonObject) -> Told:
    """One graph, or a task that is in none as a graph of one."""
    found = await find_graph(hub, Fields(args).text("dag", 64))
    seen = found.seen
    there, failed = await where_they_are(hub, seen)
    failed |= found.failed
    short_of = {name for name in failed if _matters(seen, name)}
    names = {one.uid: one.name or _subject(one, there.get(one.uid)) for one in seen.members}
    data: JsonObject = {
        **line_out(seen.line), "alone": found.alone,
        "tasks": [_task(one, placed, there.get(one.uid)) for one, placed in _placed(seen)],
        "roots": [*seen.roots], "leaves": [*seen.leaves],
        "critical_path": [*seen.critical_path],
        "names": {**names}, "waits_for": _outside(seen, names),
    }  # fmt: skip
    return Told(data, 3 if short_of else 0, _partial(failed))


def _matters(seen: GraphSeen, name: str) -> bool:
    """Whether something of the graph may be there: a member went there, or nobody knows where."""
    return any(one.state == AWAY and one.node in (name, None) for one in seen.members)


def _placed(seen: GraphSeen) -> list[tuple[MemberSeen, Placed]]:
    """Members level by level, in each as the graph names them."""
    needs = {one.uid: [edge.uid for edge in one.edges] for one in seen.members}
    placed = {one.uid: one for one in levels_of(needs)}
    pairs = [(one, placed[one.uid]) for one in seen.members]
    return sorted(pairs, key=lambda pair: pair[1].level)


@dataclass(frozen=True)
class There:
    """Where an open member is now, and in which state; None: that was not told."""

    node: str
    state: str
    progress: str | None = None
    subject: str | None = None


async def where_they_are(
    hub: Hub, seen: GraphSeen
) -> tuple[dict[str, There], dict[str, ArcError]]:
    """Each open member that left home, as the node has it that has it now; who did not answer."""
    away = {one.uid for one in seen.members if one.state == AWAY}
    names = sorted(hub.links.keys() - {seen.line.home}) if away else []
    said = await asyncio.gather(*(_open_ones(hub.links[name], away) for name in names))
    there: dict[str, There] = {}
    failed: dict[str, ArcError] = {}
    for name, one in zip(names, said, strict=True):
        if isinstance(one, ArcError):
            failed[name] = one
        else:
            there |= one
    heard = hub.journal.ends.all_of(away - there.keys())  # and home has yet to be told
    return {one.uid: There(one.node, one.state) for one in heard} | there, failed


async def _open_ones(link: Link, wanted: set[str]) -> dict[str, There] | ArcError:
    found: dict[str, There] = {}
    asked: JsonObject = {"states": [*OPEN], "limit": PAGE}
    try:
        for _ in range(PAGES_MAX):
            page = read_listed(link.name, await link.ask("list", dict(asked)))
            found |= {task.uid: _there(link.name, task)
                      for task in page.tasks if task.uid in wanted}  # fmt: skip
            if page.next is None or len(found) == len(wanted):
                break
            asked["after"] = page.next
    except ArcError as error:
        return error
    return found


def _there(node: str, task: Task) -> There:
    said = str(task.progress)[:PROGRESS_MAX] if task.progress else ""
    return There(node, str(task.state), said, safe_text(task.subject, TITLE_MAX))


def _subject(one: MemberSeen, there: There | None) -> str | None:
    """As its home has it, else as the node has it that has the task now; None: nobody told."""
    return one.subject or (there.subject if there else None)


def _task(one: MemberSeen, placed: Placed, there: There | None) -> JsonObject:
    return {
        "uid": one.uid, "name": one.name or None, "subject": _subject(one, there),
        "state": there.state if there else one.state, "level": placed.level,
        "node": there.node if there else one.node, "at_home": one.subject is not None,
        "because": one.because, "progress": there.progress if there else None,
        "weight": one.weight, "critical": one.critical,
        "depends_on": [{"uid": edge.uid, "on_failure": edge.on_failure, "came": edge.came}
                       for edge in one.edges],
    }  # fmt: skip


def _outside(seen: GraphSeen, names: Mapping[str, str | None]) -> list[JsonValue]:
    """What the graph waits for that is no part of it, and how many members wait for each."""
    count = Counter(edge.uid for one in seen.members for edge in one.edges
                    if edge.came is None and edge.uid not in names)  # fmt: skip
    return [{"uid": uid, "tasks": many} for uid, many in count.most_common()]
