"""Answers what a running task says about itself, once its token has proved that it is the one."""

from __future__ import annotations

from .commands import Add, Beat, Sender
from .desk import Desk, Session
from .errors import Refused
from .orders import new_task
from .queries import OpenAttempt, OpenAttempts
from .requests import Request
from .strict import JsonObject
from .task import built_task
from .wire import added_out

ATTEMPT_MAX = 10**8
PROGRESS_MAX = 4096


def answer_heartbeat(desk: Desk, session: Session, request: Request) -> JsonObject:
    """The program of this attempt is alive."""
    return _beat(desk, session, request, None)


def answer_progress(desk: Desk, session: Session, request: Request) -> JsonObject:
    """The same, with a word on how far it is."""
    return _beat(desk, session, request, request.fields.text("text", PROGRESS_MAX))


def _beat(desk: Desk, session: Session, request: Request, progress: str | None) -> JsonObject:
    attempt = _attempt_of(desk, session, request)
    if not desk.apply(request, Beat(attempt.uid, attempt.n, progress)):
        raise _not_yours(attempt.uid, attempt.n)
    return {"accepted": True}


def answer_spawn(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A new task of this task's own: the node says who made it and whose child it is."""
    attempt = _attempt_of(desk, session, request)
    made_by = f"agent:{attempt.agent}"
    given = new_task(request.fields.inside("task").values)
    own = {"parent": attempt.uid, "origin": made_by, "source": made_by}
    child = built_task({**given.__dict__, **own})
    (added,) = desk.apply(request, Add((child,), Sender(by=made_by)))
    if added.outcome == "refused" and added.because is not None:
        raise Refused("refused", added.because.text, added.because.rule)
    return added_out(added)


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
