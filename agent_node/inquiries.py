"""Answers the requests that change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from . import __version__
from .attempts import attempt_numbers
from .commands import Because
from .desk import Desk, Session
from .errors import BadInput, Refused
from .fields import integer, one_of
from .logs import PIECE_MAX, STREAMS, read_piece
from .looks import total_bytes
from .narrowing import narrowed_of
from .queries import (
    AttemptsPage,
    Candidates,
    DeadLetters,
    Doubts,
    Events,
    FoldersKept,
    InForce,
    Listed,
    ListTasks,
    Moved,
    ReadyByTier,
    ShowTask,
    Wanting,
)
from .requests import Fields, Request
from .standing import Standing, Standings, node_now, reason_of
from .strict import JsonObject, JsonValue
from .task import State
from .wire import EVENTS, chosen_out, dead_out, doubt_out, fitting, given_out, listed_out, shown_out

PAGE_MAX = 1000
EVENTS_MAX = 10_000
PEERS_MAX = 1000
MATCH_MAX = 26
FOLDERS_TOLD = 20


def answer_status(desk: Desk, session: Session, request: Request) -> JsonObject:
    """The report, computed now, and what nobody outside can see: by what the queue is kept, what
    could not be removed, and by which settings all of it is done.
    """
    report = desk.looks.again()
    in_force, kept = desk.store.read_all((InForce(), FoldersKept()))
    return {**report, "store": in_force, "folders_kept": _folders_kept(kept),
            "settings": {"version": __version__, "sha256": desk.settings_digest}}


def _folders_kept(kept: Mapping[str, str] | None) -> JsonObject | None:
    """How many there are, and the first of them; None where nobody has tried to remove any yet."""
    if kept is None:
        return None
    told: list[JsonValue] = [{"uid": uid, "because": why} for uid, why in sorted(kept.items())]
    return {"count": len(told), "folders": told[:FOLDERS_TOLD]}


def answer_list(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A page of tasks without their bodies."""
    asked = request.fields
    states = asked.words("states")
    for state in states:
        one_of(*State)(state, asked.name_of("states"))
    query = ListTasks(
        states=states,
        limit=asked.limit(100, PAGE_MAX),
        after=asked.after(),
        match=asked.maybe_text("match", MATCH_MAX),
        narrowed=narrowed_of(asked),
        count=asked.flag("count"),
    )
    listed = desk.store.read(query)
    return listed_out(listed, _reasons(desk, listed) if asked.flag("why") else None)


def _reasons(desk: Desk, listed: Listed) -> dict[str, Because | None]:
    """Why each task of a page waits, or stands where it is."""
    known = desk.store.read(Standings(tuple(task.uid for task in listed.tasks)))
    needed = desk.settings.disk_needed(total_bytes(desk.home))
    node = node_now(desk.looks.again(), disk_needed=needed,
                    overdraft=desk.settings.urgent_overdraft)  # fmt: skip
    now = desk.clock.now()
    return {task.uid: reason_of(task, known.get(task.uid, Standing()), node, now=now)
            for task in listed.tasks}  # fmt: skip


def answer_show(desk: Desk, session: Session, request: Request) -> JsonObject:
    """One task with its attempts, its moves and its events; a page of the attempts on request."""
    asked = request.fields
    uid = asked.ulid("uid")
    shown = desk.store.read(ShowTask(uid))
    if shown is None:
        raise Refused("not_found", f"{uid}: {desk.settings.name} never had this task")
    return {**shown_out(shown), **_attempts_asked_for(desk, uid, asked)}


def _attempts_asked_for(desk: Desk, uid: str, asked: Fields) -> JsonObject:
    """In the place of the last hundred: more of them, fewer, or those behind a number."""
    if not asked.has("attempts") and not asked.has("attempts_after"):
        return {}
    limit = asked.whole("attempts", 1, PAGE_MAX) if asked.has("attempts") else 100
    after = asked.maybe_whole("attempts_after", 0, 10**9)
    page = desk.store.read(AttemptsPage(uid, after, limit))
    last = page[-1]["n"] if page and after is not None else None
    more = isinstance(last, int) and desk.store.read(AttemptsPage(uid, last, 1))
    return {"attempts": [*page], "attempts_next": last if more else None}


def answer_log(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A piece of an attempt's output; without a number, of the last attempt that left one."""
    asked = request.fields
    uid = asked.ulid("uid")
    tasks_dir = str(desk.home.tasks)
    n = asked.maybe_whole("attempt", 1, 10**8)
    if n is None:
        n = _last_attempt(tasks_dir, uid)
    stream = asked.word("stream", *STREAMS) if asked.has("stream") else "stdout"
    limit = asked.limit(PIECE_MAX, PIECE_MAX)
    offset = asked.after("offset")
    piece = read_piece(tasks_dir, uid, n, stream=stream, offset=offset, limit=limit)
    return {"text": piece.text, "next": piece.after, "attempt": n, "size": piece.size}


def _last_attempt(tasks_dir: str, uid: str) -> int:
    numbers = attempt_numbers(tasks_dir, uid)
    if not numbers:
        raise Refused("not_found", f"{uid}: no attempt of this task has run here")
    return numbers[-1]


def answer_candidates(desk: Desk, session: Session, request: Request) -> JsonObject:
    """READY tasks that may move to one of the nodes asked for, and why all others stay."""
    asked = request.fields
    query = Candidates(
        why=asked.word("why", "stolen", "routed", "drained", "moved", "retried"),
        wanting=_wanted(asked),
        steal_from=asked.maybe_whole("steal_from", 1, 10),
        order=_order(asked),
        limit=asked.limit(100, PAGE_MAX),
        after=asked.after(),
        keep=_kept(asked),
    )
    return chosen_out(desk.store.read(query))


def _kept(asked: Fields) -> tuple[int, ...]:
    check, name = integer(1, 10), asked.name_of("keep")
    some = asked.entries("keep", 10) if asked.has("keep") else []
    return tuple(cast("int", check(one, name)) for one in some)


def _order(asked: Fields) -> Literal["least_urgent", "most_urgent"]:
    if not asked.has("order"):
        return "least_urgent"
    return asked.word("order", "least_urgent", "most_urgent")


def _wanted(asked: Fields) -> tuple[Wanting, ...]:
    wanting = tuple(map(_wanting, asked.objects("for", PEERS_MAX)))
    if not wanting:
        raise BadInput("names nobody; say which nodes might take something", asked.name_of("for"))
    return wanting


def _wanting(entry: Fields) -> Wanting:
    """A node that might take tasks; what it does not say forbids nothing."""
    return Wanting(
        node=entry.node("node"),
        domains=entry.maybe_words("domains"),
        never=entry.words("never"),
        skills=entry.maybe_words("skills"),
        untagged_from=entry.maybe_whole("untagged_from", 1, 10),
        hops_max=entry.maybe_whole("hops_max", 0, 10**6),
    )


def answer_doubts(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Every transfer that is not over for this node."""
    return {"doubts": [doubt_out(doubt) for doubt in desk.store.read(Doubts())]}


def answer_tiers(desk: Desk, session: Session, request: Request) -> JsonObject:
    """How many READY tasks are in each tier by now."""
    return {"ready_by_tier": {**desk.store.read(ReadyByTier())}}


def answer_dead(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A page of dead letters, each with every attempt, its cost, and what people said of it."""
    asked = request.fields
    query = DeadLetters(
        limit=asked.limit(100, PAGE_MAX),
        after=asked.after(),
        poison=asked.flag("poison"),
        resolved=asked.flag("resolved"),
    )
    return dead_out(desk.store.read(query))


def answer_moved(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Tasks that left and are kept as copies: where each went, and whether its end is known."""
    asked = request.fields
    query = Moved(
        peer=asked.maybe_node("peer"),
        open_only=asked.flag("open"),
        after=asked.ulid("after") if asked.has("after") else "",
        limit=asked.limit(100, PAGE_MAX),
    )
    given = desk.store.read(query)
    after = given[-1].uid if len(given) == query.limit else None
    return {"moved": [given_out(one) for one in given], "next": after}


def answer_events(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Events after a number; fewer than asked where one line could not hold them."""
    asked = request.fields
    query = Events(after_seq=asked.after("after_seq"), limit=asked.limit(PAGE_MAX, EVENTS_MAX),
                   domains=asked.flag("domains"), traits=asked.flag("traits"))  # fmt: skip
    return {"events": list(fitting(desk.store.read(query)))}


def answer_subscribe(desk: Desk, session: Session, request: Request) -> JsonObject:
    """From here on this session is told the news it names; without names, all of it."""
    asked = request.fields
    wanted = asked.words("events")
    for name in wanted:
        one_of(*sorted(EVENTS))(name, asked.name_of("events"))
    session.wants = frozenset(wanted) or EVENTS
    desk.host.subscribe(session, session.wants)
    return {"events": [*sorted(session.wants)]}
