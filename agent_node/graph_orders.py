"""Answers what is asked of graphs, and takes in what the hub tells of ends elsewhere."""

from __future__ import annotations

from typing import cast

from .desk import Desk, Session
from .errors import Refused
from .fields import anything, listing, money, nullable, one_of, text
from .graph_document import read_graph
from .graph_reply import facts_out, noted_out, shown_out, submitted_out
from .graph_words import (
    Awaits,
    Birth,
    CancelGraph,
    EndTold,
    Join,
    ListGraphs,
    NoteEnds,
    ShowGraph,
    Submit,
    TakeBack,
)
from .queries import OpenAttempts
from .requests import REASON_MAX, Fields, Request
from .strict import JsonObject, JsonValue
from .task import ENDED
from .ulid import fresh_ulid

PAGE_MAX = 1000
TASKS_PAGE = 10_000
STATES = ("running", "completed", "failed", "cancelled")
BECAUSE_MAX = 4096
_PLACE_MAX = 2**31


def answer_submit(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A whole graph, or nothing of it."""
    sender = session.sender(request)
    graph = read_graph(request.fields.values.get("graph"), mint=fresh_ulid, source=sender.by)
    return submitted_out(graph, desk.apply(request, Submit(graph, sender)))


def answer_graphs(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A page of graphs, newest first."""
    asked = request.fields
    states = asked.words("states")
    for state in states:
        one_of(*STATES)(state, asked.name_of("states"))
    after = asked.ulid("after") if asked.has("after") else None
    page = desk.store.read(ListGraphs(states, asked.limit(100, PAGE_MAX), after))
    return {"dags": [facts_out(one) for one in page.graphs], "next": page.next}


def answer_graph(desk: Desk, session: Session, request: Request) -> JsonObject:
    """One graph with its members; a task that is in none is a graph of one."""
    asked = request.fields
    dag = asked.text("dag", 64)
    after = asked.maybe_whole("after", -1, _PLACE_MAX)
    query = ShowGraph(dag, asked.limit(TASKS_PAGE, TASKS_PAGE), -1 if after is None else after)
    shown = desk.store.read(query)
    if shown is None:
        raise Refused("not_found", f"{dag}: {desk.settings.name} has no such graph")
    return shown_out(shown)


def answer_graph_cancel(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Every member that has not ended is to end; what runs is stopped after it is written down."""
    asked = request.fields
    reason = asked.text_or("reason", "", REASON_MAX)
    dag = asked.text("dag", 64)
    done = desk.apply(request, CancelGraph(dag, reason, session.sender(request)))
    if done is None:
        raise Refused("not_found", f"{dag}: {desk.settings.name} has no such graph")
    if done.stopping and not request.dry_run:
        for attempt in desk.store.read(OpenAttempts()):
            if attempt.uid in done.stopping:
                desk.host.stop_attempt(attempt.uid, attempt.n, reason or "cancelled")
    return {
        "id": done.id,
        "state": done.state,
        "cancelled": done.cancelled,
        "stopping": len(done.stopping),
        "elsewhere": [*done.elsewhere],
    }


def answer_awaits(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Tasks elsewhere whose end somebody here waits for."""
    asked = request.fields
    limit = asked.limit(PAGE_MAX, TASKS_PAGE)
    after = asked.ulid("after") if asked.has("after") else ""
    uids = desk.store.read(Awaits(after, limit))
    return {"uids": [*uids], "next": uids[-1] if len(uids) == limit else None}


def answer_ended(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Tasks that ended elsewhere; each is noted once, and what waits for it goes on."""
    ends = tuple(map(_end, request.fields.objects("tasks", PAGE_MAX)))
    return noted_out(desk.apply(request, NoteEnds(ends, session.sender(request))))


def _end(entry: Fields) -> EndTold:
    return EndTold(
        uid=entry.ulid("uid"),
        state=entry.word("state", *map(str, ENDED)),
        node=entry.node("node"),
        at=entry.moment("at"),
        output=_maybe(entry, "output", anything),
        artifacts=cast("list[JsonValue] | None", _maybe(entry, "artifacts", listing)),
        cost_usd=cast("str | None", _maybe(entry, "cost_usd", money)),
        because=cast("str | None", _maybe(entry, "because", text(BECAUSE_MAX, one_line=False))),
        sha256=entry.maybe_text("sha256", 64),
    )


def _maybe(entry: Fields, name: str, check: object) -> JsonValue:
    return nullable(check)(entry.values.get(name), entry.name_of(name))  # type: ignore[arg-type]


def answer_alive(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Ends that were told do not hold any more."""
    asked = request.fields
    uids = tuple(
        Fields({"uid": uid}, asked.name_of("uids"), place).ulid("uid")
        for place, uid in enumerate(asked.entries("uids", PAGE_MAX))
    )
    return noted_out(desk.apply(request, TakeBack(uids, session.sender(request))))


def answer_joined(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Tasks that were born elsewhere into graphs whose home is here."""
    births = tuple(
        Birth(
            uid=entry.ulid("uid"),
            dag=entry.text("dag", 64),
            parent=entry.ulid("parent") if entry.has("parent") else None,
            name=entry.maybe_text("name", 64),
            max_cost_usd=cast("str | None", _maybe(entry, "max_cost_usd", money)),
        )
        for entry in request.fields.objects("tasks", PAGE_MAX)
    )
    return noted_out(desk.apply(request, Join(births, session.sender(request))))
