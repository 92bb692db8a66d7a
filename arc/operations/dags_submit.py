"""Takes a graph into the hub's own queue, whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_node.budget import NOTHING as NO_MONEY
from agent_node.budget import URGENT, amount_of, text_of
from agent_node.deadlines import passed_already
from agent_node.errors import BadInput
from agent_node.graph_document import following, minted
from agent_node.graphs import THEN_MAX, Graph
from agent_node.readiness import all_edges
from agent_node.requests import Fields
from agent_node.strict import JsonObject
from agent_node.unknown_fields import checked_graph, unknown_in_graph
from arc.errors import BadGraph, NotFound, NotFoundYet
from arc.graph_answers import Submitted, read_submitted
from arc.journal_ends import TaskEnd
from arc.looking import INBOX

from . import Told
from .everybody import incarnation_of, naming
from .falling import members_that_fall
from .finding import Found, find_task
from .nobodys import nobodys
from .sensing import router_turn
from .too_dear import too_dear_a_day

if TYPE_CHECKING:
    from arc.hub import Hub

REFUSED = 1
PIECE = 200  # tasks that are waited for and looked up before the next ones are
OUTSIDE_MAX = 10_000  # of them that one request may name
AT_ONCE = 8
SHOWN_MAX = 20
NOTHING = "nothing was added"
ROUTER = "fleet-router"
GRAPHS = "fleet-graphs"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "DEAD_LETTERED")


async def dag_submit(hub: Hub, args: JsonObject) -> Told:
    """Every name, edge and field is checked before the queue is asked; a repeat of the same
    document with its ids, or under its key, makes no second graph.
    """
    asked = Fields(args)
    by, dry_run = asked.text_or("by", "human:unknown"), asked.flag("dry_run")
    given = asked.inside("graph").values
    document = minted(given, hub.mint)
    graph = _checked(document, hub, by)
    found = {one.uid: one for one in await know_outside(hub, outside_of(graph))}
    fields: JsonObject = {"graph": document, "by": by, "dry_run": dry_run,
                          **await incarnation_of(hub.inbox)}  # fmt: skip
    with nullcontext() if dry_run else naming(graph.id, _look_for(graph, given)):
        said = read_submitted(INBOX, await hub.inbox.ask("submit", fields))
    if said.outcome == "added" and not dry_run:
        hub.homes[said.dag] = INBOX
        hub.journal.runs.log("dag_submitted", fields={"dag": said.dag, "tasks": said.tasks,
                                                      "by": by})  # fmt: skip
        goes_on(hub, "a graph began")
        if outside_of(graph):
            waits_at(hub, INBOX)
    told = _told(hub, graph, said, document, dry_run=dry_run)
    if said.outcome != "added":
        return told
    if dry_run and not given.get("id"):  # the next time it gets another one
        told = replace(told, data={**told.data, "dag": None})
    falls = members_that_fall(graph, found, dry_run=dry_run)
    return replace(told, warnings=(*falls, *told.warnings))


def _look_for(graph: Graph, given: JsonObject) -> str:
    """How to see whether it was added, and what the same document does if it is given once more."""
    again = ("the same again is safe: its key or id is never added twice"
             if given.get("key") or given.get("id") else
             "the same again may add it twice, which a key of its own rules out")  # fmt: skip
    return f"arc dag show {graph.id} says whether it was added; {again}"


def _with_following(graph: Graph) -> Iterator[Graph]:
    for _ in range(THEN_MAX):
        yield graph
        if graph.then is None:
            return
        graph = following(graph.id, graph.then)


def _as_tasks(graph: Graph) -> Iterator[JsonObject]:
    """What `nobodys` looks at, of this graph and of those that follow it."""
    for one in (one for some in _with_following(graph) for one in some.members):
        task = one.task
        yield {"name": one.name, "domain": task.domain, "skills": [*task.skills],
               "needs": [*task.needs], "validate": task.validate,
               "deadline": task.deadline}  # fmt: skip


def _too_dear(graph: Graph, *, dry_run: bool) -> Iterator[str]:
    """A graph whose whole budget is less than one of its tasks may cost never starts that one."""
    for one in _with_following(graph):
        limit = one.budget_usd
        costs = [(amount_of(member.task.max_cost_usd), member.name) for member in one.members
                 if member.task.max_cost_usd is not None
                 and not (one.urgent_overdraft and member.task.priority <= URGENT)]  # fmt: skip
        dear = [name for cost, name in costs if limit is not None and cost > amount_of(limit)]
        if dear:
            more = f" and {len(dear) - 1} more" if len(dear) > 1 else ""
            enough = text_of(sum((cost for cost, _ in costs), NO_MONEY))
            yield (f"task {dear[0]}{more} may cost more than the {limit} USD of the whole graph,"
                   f" and never starts with that: raise its budget_usd ({enough} is enough for all"
                   f" once), or say arc dag budget {'ID' if dry_run else one.id} {enough}")


def _checked(document: JsonObject, hub: Hub, by: str) -> Graph:
    try:
        return checked_graph(document, mint=hub.mint, source=by)
    except BadInput as error:
        raise _bad(error) from error


def _bad(error: BadInput) -> BadGraph:
    """All that is wrong with it, each by its place in the document."""
    faults = error.faults or (error,)
    end = "\n" if len(faults) > 1 else "; "
    problems: tuple[JsonObject, ...] = tuple(
        {"code": BadGraph.code, "message": str(one), "where": one.field} for one in faults
    )
    return BadGraph(f"{error}{end}{NOTHING}", where=faults[0].field, problems=problems)


def goes_on(hub: Hub, because: str) -> None:
    """What became READY by it is routed at once; from now on ends are listened for."""
    hub.awaiting, hub.tied_at = True, hub.clock.boottime()
    if hub.schedule is not None:
        hub.schedule.soon(ROUTER, because, woken=frozenset({INBOX}))


def waits_at(hub: Hub, store: str) -> None:
    """A task there waits for others: ends are listened for, and those there are by now are told at
    once. The store is asked anew, for what it said last does not know of it.
    """
    hub.awaiting, hub.tied_at = True, hub.clock.boottime()
    hub.stirred.add(store)
    if hub.schedule is not None:
        hub.schedule.soon(GRAPHS, f"a task waits on {store}", woken=frozenset({INBOX, store}))


def _turn(hub: Hub) -> JsonObject:
    """The router's turn; for a graph that was added it is now (see `goes_on`), where it runs."""
    turn = router_turn(hub)
    at_once: JsonObject = {"in_s": 0.0, "at": None, "because": "a graph's roots go at once"}
    return turn if turn["in_s"] is None else at_once


def _told(
    hub: Hub, graph: Graph, said: Submitted, document: JsonObject, *, dry_run: bool
) -> Told:
    refused = said.outcome == "refused"
    tasks = [*_as_tasks(graph)]
    new = tasks if said.outcome == "added" else []
    paths: JsonObject = {
        "roots": [*(said.roots or graph.roots)], "leaves": [*(said.leaves or graph.leaves)],
        "critical_path": [*(said.critical_path or graph.critical_path)],
    }  # fmt: skip
    return Told({
        "dag": said.dag or graph.id, "outcome": said.outcome, "title": graph.title,
        "rule": said.because.rule if said.because else "",
        "because": said.because.text if said.because else "",
        "tasks": said.tasks or len(graph.members), "dry_run": dry_run, **paths,
        "names": {one.task.uid: one.name for one in graph.members},
        "budget_usd": graph.budget_usd, "then": graph.then is not None,
        "hub_running": hub.schedule is not None, "router": _turn(hub),
    }, exit=REFUSED if refused else 0,
       warnings=(*nobodys(hub, INBOX, tasks), *passed_already(new, hub.clock.now()),
                 *_too_dear(graph, dry_run=dry_run),
                 *too_dear_a_day(hub, [member.task for one in _with_following(graph)
                                       for member in one.members]),
                 *unknown_in_graph(document)))  # fmt: skip


def outside_of(graph: Graph) -> tuple[str, ...]:
    """The tasks that members wait for and that are no members, each once."""
    inside = {one.task.uid for one in graph.members}
    return tuple(dict.fromkeys(
        edge.needs for one in graph.members
        for edge in all_edges(one.task.depends_on, one.task.context_refs, of=one.task.uid)
        if edge.needs not in inside
    ))  # fmt: skip


async def know_outside(hub: Hub, uids: Sequence[str]) -> list[Found]:
    """Each of these tasks, by its uid or a part of it; `NotFound` names those that no node has, for
    whatever waited for them would wait for ever. Ends that are seen here need no event any more.
    """
    if len(uids) > OUTSIDE_MAX:
        raise BadInput(f"{len(uids)} tasks outside of it are waited for or referred to; "
                       f"{OUTSIDE_MAX} at most are looked up")  # fmt: skip
    gate, found = asyncio.Semaphore(AT_ONCE), list[Found]()
    for start in range(0, len(uids), PIECE):
        some = uids[start : start + PIECE]
        said = await asyncio.gather(*(_find(hub, uid, gate) for uid in some))
        unknown = [one for one in said if isinstance(one, NotFound | NotFoundYet)]
        if unknown:
            raise _nowhere(unknown)
        found += [one for one in said if isinstance(one, Found)]
    _note_ends(hub, found)
    return found


def _nowhere(unknown: Sequence[NotFound | NotFoundYet]) -> NotFound | NotFoundYet:
    said = "\n".join(f"it would wait for ever for {one}" for one in unknown[:SHOWN_MAX])
    if any(isinstance(one, NotFoundYet) for one in unknown):
        hint = next(one.hint for one in unknown if isinstance(one, NotFoundYet))
        return NotFoundYet(said, hint=f"{NOTHING}; {hint}")
    return NotFound(said, hint=NOTHING)


async def _find(
    hub: Hub, uid: str, gate: asyncio.Semaphore
) -> Found | NotFound | NotFoundYet:
    try:
        async with gate:
            return await find_task(hub, uid)
    except (NotFound, NotFoundYet) as error:
        return error


def _note_ends(hub: Hub, found: Iterable[Found]) -> None:
    now = hub.clock.now()
    known = {one.uid for one in hub.journal.ends.all_of(one.uid for one in found)}
    hub.journal.ends.note(
        TaskEnd(one.node, one.uid, str(one.task.state), now, one.task.failure_reason or "")
        for one in found if one.task.state in ENDED and one.uid not in known
    )  # fmt: skip
