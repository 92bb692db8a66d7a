"""Carries out a person's or the hub's word on tasks and on the node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from .capabilities import powers_of
from .commands import (
    Add,
    Added,
    Because,
    Cancel,
    Changed,
    Command,
    Resolve,
    RetryNow,
    Review,
    Sender,
    SetFields,
    SetNode,
)
from .desk import Desk, Session
from .errors import BadInput, Refused
from .fields import checked
from .moves import Quarantine
from .newborn import new_task
from .ownership import release_node, take_back
from .queries import Facts, OpenAttempts
from .requests import REASON_MAX, Request
from .strict import JsonObject, JsonValue
from .task import FIELDS, SETTABLE, Task
from .ulid import is_ulid
from .validation import needs_of
from .wire import added_out, changed_out, steered_out

TASKS_MAX = 10_000
UIDS_MAX = 1000
DRAIN_MAX_S = 7 * 86_400
UNMET_MAX = 20  # sets of needs that an answer names
NOT_HERE_MAX_S = 600.0
_SET_FIELDS = {name: FIELDS[name] for name in SETTABLE}

T = TypeVar("T")


def answer_add(desk: Desk, session: Session, request: Request) -> JsonObject:
    """New tasks, judged one by one; with `whole`, all of them or none."""
    sender = session.sender(request)
    tasks: list[Task] = []
    bad: dict[int, Added] = {}
    for place, document in enumerate(request.fields.entries("tasks", TASKS_MAX)):
        try:
            tasks.append(new_task(document))
        except BadInput as error:
            bad[place] = Added(_uid_of(document), "refused", Because("bad_task", str(error)[:500]))
    whole = request.fields.flag("whole")
    results = _added(desk, request, Add(tuple(tasks), sender), whole=whole, bad=bad)
    said: JsonObject = {"results": [added_out(result) for result in results]}
    unmet = _unmet(desk, tasks, results)
    if unmet:
        said["unmet_needs"] = unmet
    return said if desk.host.dispatching else {**said, "dispatcher": "stopped"}


def _unmet(desk: Desk, tasks: Sequence[Task], results: Sequence[Added]) -> list[JsonValue]:
    """Needs of new tasks that no agent of node.toml has, each set with how many wait for it."""
    needing = [task for task in tasks if task.needs or task.validate]
    if not needing or not desk.settings.agents:
        return []
    new = {added.uid for added in results if added.outcome == "added"}
    count = Counter(
        tuple(needs_of(task.needs, task.validate)) for task in needing if task.uid in new)
    common = powers_of(desk.settings)
    able = [{*agent.skills, *common} for agent in desk.settings.agents]
    unmet = [needs for needs in sorted(count) if not any(map(set(needs).issubset, able))]
    return [{"needs": [*needs], "count": count[needs]} for needs in unmet[:UNMET_MAX]]


def _added(
    desk: Desk, request: Request, add: Add, *, whole: bool, bad: dict[int, Added]
) -> list[Added]:
    if whole:
        trial = desk.store.apply(add, dry_run=True) if add.tasks else ()
        if bad or any(added.outcome == "refused" for added in trial):
            return [_with_the_others(added) for added in merged(bad, trial)]
    return merged(bad, desk.take_in(request, add, len(add.tasks)) if add.tasks else ())


def _with_the_others(added: Added) -> Added:
    if added.outcome == "refused":
        return added
    because = Because("whole", "another task of this request was refused, so none was added")
    return Added(added.uid, "refused", because)


def _uid_of(document: JsonValue) -> str:
    uid = document.get("uid") if isinstance(document, dict) else None
    return uid if isinstance(uid, str) and is_ulid(uid) else ""


def merged(bad: dict[int, T], good: Sequence[T]) -> list[T]:
    """Both in the order of the request: what could not be read stands where it was asked."""
    rest = iter(good)
    return [bad[place] if place in bad else next(rest) for place in range(len(bad) + len(good))]


def uids_of(request: Request) -> list[str]:
    """The tasks that an order is about: `uid`, or `uids`; each once."""
    asked = request.fields
    if not asked.has("uids"):
        return [asked.ulid("uid")]
    found = [FIELDS["uid"](uid, asked.name_of("uids")) for uid in asked.entries("uids", UIDS_MAX)]
    return list(dict.fromkeys(map(str, found)))


def answer_set(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Settable fields, checked before any task is touched."""
    fields = checked(request.fields.inside("fields").values, _SET_FIELDS, "fields")
    if not fields:
        raise BadInput("names nothing to set", "fields")

    def order(uid: str, reason: str, sender: Sender) -> Command[Changed]:
        return SetFields(uid, fields, reason, sender)

    return _each(desk, session, request, order)


def answer_cancel(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A waiting task ends; the program of a running one is stopped, and then it ends."""
    return _each(desk, session, request, Cancel)


def answer_retry(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Tasks that ended badly are READY again; for a while for a move alone, where that is said."""
    not_here_s = request.fields.seconds("not_here_s", NOT_HERE_MAX_S)

    def order(uid: str, reason: str, sender: Sender) -> Command[Changed]:
        return RetryNow(uid, reason, sender, not_here_s)

    return _each(desk, session, request, order)


def answer_dead_review(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Somebody looked at dead letters; they stay dead."""
    return _each(desk, session, request, Review)


def answer_resolve(desk: Desk, session: Session, request: Request) -> JsonObject:
    """A person's word on what became of tasks; READY is only to be had by re-own."""
    if request.fields.values.get("as") == "ready":
        return take_back(desk, request, uids_of(request), session.sender(request))
    to: Literal["done", "failed", "cancelled"]
    to = request.fields.word("as", "done", "failed", "cancelled")
    def order(uid: str, reason: str, sender: Sender) -> Command[Changed]:
        return Resolve(uid, to, reason, sender)

    return _each(desk, session, request, order)


def answer_release(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Tasks that a quarantine holds become READY by re-own; without a task, the node is freed."""
    if request.fields.has("uid") or request.fields.has("uids"):
        return take_back(desk, request, uids_of(request), session.sender(request))
    release_node(desk, request, session.sender(request))
    return _node_state(desk, request)


_Order = Callable[[str, str, Sender], Command[Changed]]


def _each(desk: Desk, session: Session, request: Request, order: _Order) -> JsonObject:
    """One transaction for all of them; what has to be stopped is stopped after it."""
    sender, reason = session.sender(request), request.fields.text_or("reason", "", REASON_MAX)
    commands = [order(uid, reason, sender) for uid in uids_of(request)]
    results = desk.apply_all(request, commands)
    stopping = {result.uid for result in results if result.outcome == "stopping"}
    if stopping and not request.dry_run:
        for attempt in desk.store.read(OpenAttempts()):
            if attempt.uid in stopping:
                desk.host.stop_attempt(attempt.uid, attempt.n, reason or "cancelled")
    return {"results": [changed_out(result) for result in results]}


def answer_pause(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Nothing new starts or is taken in; what runs goes on."""
    return _set_node(desk, session, request, "paused")


def answer_resume(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Work starts again."""
    return _set_node(desk, session, request, "active")


def answer_drain(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Nothing new starts, and by the deadline nothing runs any more."""
    return _set_node(desk, session, request, "draining")


def _set_node(desk: Desk, session: Session, request: Request, to: str) -> JsonObject:
    asked = request.fields
    command = SetNode(
        to=to,  # type: ignore[arg-type]
        reason=asked.text_or("reason", "", REASON_MAX),
        sender=session.sender(request),
        agent=_agent(desk, request),
        deadline_s=asked.seconds("deadline_s", DRAIN_MAX_S),
        then=asked.word("then", "wait", "requeue") if asked.has("then") else "wait",
    )
    steered = desk.apply(request, command)
    if to == "draining" and not request.dry_run:
        desk.host.drain(command.deadline_s, command.then, command.agent)
    return {**steered_out(steered), **({"agent": command.agent} if command.agent else {})}


def _agent(desk: Desk, request: Request) -> str | None:
    """The one agent that is meant; None: the whole node."""
    name = request.fields.maybe_text("agent", 32)
    names = [agent.name for agent in desk.settings.agents]
    if name is not None and name not in names:
        known = ", ".join(names) or "none"
        raise Refused("no_such_agent", f"no agent of that name runs here; there are: {known}")
    return name


def answer_quarantine(desk: Desk, session: Session, request: Request) -> JsonObject:
    """Nothing runs and nothing changes here until a person releases it."""
    reason = request.fields.text("reason", REASON_MAX)
    desk.apply(request, Quarantine(reason, session.sender(request)))
    return _node_state(desk, request, to="quarantined")


def _node_state(desk: Desk, request: Request, *, to: str = "active") -> JsonObject:
    """The node's new state; of a dry run, what it would be."""
    if request.dry_run:
        return {"state": to, "reason": request.fields.text_or("reason", "", REASON_MAX)}
    facts = desk.store.read(Facts())
    return {"state": facts.state, "reason": facts.reason}
