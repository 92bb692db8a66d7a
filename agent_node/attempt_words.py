"""Answers what a running task says about itself, once its token has proved that it is the one."""

from __future__ import annotations

from .commands import Added, Beat, Sender
from .desk import Desk, Session
from .errors import Refused
from .graph_words import Parent, Spawn, Submit, WaitAsked
from .newborn import new_task
from .queries import OpenAttempt, OpenAttempts
from .requests import Request
from .strict import JsonObject
from .task import built_task
from .ulid import fresh_ulid
from .wire import added_out

ATTEMPT_MAX = 10**8
PROGRESS_MAX = 4096


def answer_heartbeat(desk: Desk, session: Session, request: Request) -> JsonObject:
    """The program of this attempt is alive."""
    return _beat(desk, session, request, None, own=True)


def answer_progress(desk: Desk, session: Session, request: Request) -> JsonObject:
    """The same, with a word on how far it is."""
    return _beat(desk, session, request, request.fields.text("text", PROGRESS_MAX))


def _beat(
    desk: Desk, session: Session, request: Request, progress: str | None, *, own: bool = False
) -> JsonObject:
    """Nothing has to be looked at or reported anew for it, so the daemon is not told."""
    attempt = _attempt_of(desk, session, request)
    beat = Beat(attempt.uid, attempt.n, progress, own)
    if not request.dry_run and not desk.store.apply(beat):
        raise _not_yours(attempt.uid, attempt.n)
    return {"accepted": True}


def answer_spawn(desk: Desk, session: Session, request: Request) -> JsonObject:
    """New work of this task's own, a task or a whole graph: the node says whose child it is.

    With `wait` the task is put back when its program has ended well, until that work has ended.
    """
    attempt = _attempt_of(desk, session, request)
    made_by = f"agent:{attempt.agent}"
    parent = Parent(attempt.uid, attempt.n, waits=request.fields.flag("wait"))
    if request.fields.has("graph"):
        return _spawn_graph(desk, request, parent, made_by)
    given = new_task(request.fields.inside("task").values)
    child = built_task({**given.__dict__, "origin": made_by, "source": made_by})
    spawned = desk.apply(request, Spawn(child, parent, Sender(by=made_by)))
    if spawned.outcome == "refused" and spawned.because is not None:
        raise Refused("refused", spawned.because.text, spawned.because.rule)
    said = added_out(Added(spawned.uid, spawned.outcome, spawned.because))
    return {**said, **_waiting(desk, request, parent)}


def _spawn_graph(desk: Desk, request: Request, parent: Parent, made_by: str) -> JsonObject:
    from .graph_reply import submitted_out  # few tasks make graphs
    from .unknown_fields import checked_graph

    graph = checked_graph(request.fields.values.get("graph"), mint=fresh_ulid, source=made_by)
    done = desk.apply(request, Submit(graph, Sender(by=made_by), parent))
    if done.outcome == "refused" and done.because is not None:
        raise Refused("refused", done.because.text, done.because.rule)
    return {**submitted_out(graph, done), **_waiting(desk, request, parent)}


def _waiting(desk: Desk, request: Request, parent: Parent) -> JsonObject:
    """Whether who asked to wait will: not for what it was given already. A dry run cannot say."""
    if not parent.waits or request.dry_run:
        return {}
    return {"waits": desk.store.read(WaitAsked(parent.uid, parent.n))}


def _attempt_of(desk: Desk, session: Session, request: Request) -> OpenAttempt:
    """The attempt that is under way and whose token was shown."""
    from hmac import compare_digest

    if session.kind == "hub":
        raise Refused("local_only", "only a program that runs on this machine says this of itself")
    asked = request.fields
    uid, n = asked.ulid("uid"), asked.whole("attempt", 1, ATTEMPT_MAX)
    token = asked.text("token").encode()
    if session.attempt not in (None, (uid, n)):
        raise _not_yours(uid, n)
    for attempt in desk.store.read(OpenAttempts()):
        if (attempt.uid, attempt.n) == (uid, n) and compare_digest(attempt.token.encode(), token):
            return attempt
    raise _not_yours(uid, n)


def _not_yours(uid: str, n: int) -> Refused:
    return Refused(
        "not_your_attempt", f"{uid}: attempt {n} is not under way here, or its token is another"
    )
