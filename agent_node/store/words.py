"""Carries out a person's word on one task: set, cancel, retry, resolve."""

from __future__ import annotations

import json

from ..commands import Because, Cancel, Changed, Resolve, RetryNow, SetFields
from ..errors import BadInput
from ..strict import JsonValue
from ..task import FIELDS, SETTABLE, State
from .care import forgive, keep_for_move, kept_for_move, let_start
from .comings import stay_cancelled
from .dead import note_resolution
from .giving import gone
from .purses import priority_said
from .reowning import OLD_COPY
from .reviving import ended_by_word, insist
from .rows import find_task
from .senders import check_not_quarantined, check_sender
from .spending import settle
from .transaction import Transaction, may_change, to_json
from .turns import arrive_anew, set_anew

_LISTS = ("skills", "tags", "models", "fallback_models")
_UNDER_WAY = (State.CLAIMED, State.RUNNING, State.VALIDATING)
_WAITING = (State.CREATED, State.PENDING, State.READY, State.RETRYING)


def _refused(uid: str, rule: str, text: str) -> Changed:
    return Changed(uid, "refused", because=Because(rule, text))


def _state(tx: Transaction, uid: str) -> tuple[State | None, Changed | None]:
    """The task's state; or why nobody may touch it here."""
    row = tx.db.execute("SELECT state FROM task WHERE uid = ?", (uid,)).fetchone()
    if row is None:
        because = gone(tx, uid)
        return None, Changed(uid, "refused", because=because)
    state = State(row[0])
    if state in (State.ESCROW, State.HELD):
        text = f"{uid} is being moved; ask again when it is over"
        return None, _refused(uid, "in_transfer", text)
    return state, None


def _check(tx: Transaction, command: SetFields | Cancel | RetryNow | Resolve) -> None:
    check_sender(tx, incarnation=command.sender.incarnation, term=command.sender.term)
    if not isinstance(command, Resolve):
        check_not_quarantined(tx)


def set_fields(tx: Transaction, command: SetFields) -> Changed:
    """Settable fields of a task that waits; the epoch rises, so that no older plan fits it."""
    _check(tx, command)
    state, no = _state(tx, command.uid)
    if state is None:
        return no or _refused(command.uid, "unknown_task", "no such task")
    if state not in (*_WAITING, State.PARKED, State.DEAD_LETTERED):
        text = f"{command.uid} is {state}; only waiting tasks change"
        return _refused(command.uid, "not_waiting", text)
    values = _columns(command)
    if "not_before" in values and state not in (State.PENDING, State.READY):
        text = f"{command.uid} is {state}; not_before only means something before it is READY"
        return _refused(command.uid, "not_waiting", text)
    current = find_task(tx, command.uid)
    if all(getattr(current, name) == value for name, value in values.items()):
        return Changed(command.uid, "changed", current, already=True)
    stored = {name: _stored(name, value) for name, value in values.items()}
    sets = ", ".join(f"{name} = :{name}" for name in stored)
    tx.db.execute(
        f"UPDATE task SET {sets}, epoch = epoch + 1 WHERE uid = :uid AND state = :state",
        {**stored, "uid": command.uid, "state": state.value},
    )
    if "priority" in values:
        state = _apply_priority(tx, command.uid, state)
    new = _apply_not_before(tx, command.uid, state, values)
    named: list[JsonValue] = [*sorted(values)]
    tx.event("task_set", command.uid, was=state, state=new, by=command.sender.by,
             because=_why(command), data={"fields": named})  # fmt: skip
    task = find_task(tx, command.uid)
    if task is not None and current is not None:
        set_anew(tx, current, task)
    return Changed(command.uid, "changed", task)


def _columns(command: SetFields) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {}
    for name, value in command.fields.items():
        if name not in SETTABLE:
            raise BadInput(f"cannot be set; these can: {', '.join(sorted(SETTABLE))}", name)
        values[name] = FIELDS[name](value, name)
    if not values:
        raise BadInput("nothing to set", "fields")
    fine = values.get("priority_100")
    if isinstance(fine, int):
        values["priority"] = min(fine // 10 + 1, 10)
    elif "priority" in values:
        values["priority_100"] = None
    return values


def _stored(name: str, value: JsonValue) -> object:
    if name in _LISTS:
        return to_json(value)
    return int(value) if isinstance(value, bool) else value


def _apply_priority(tx: Transaction, uid: str, state: State) -> State:
    """Urgent work may be allowed to go on over budget."""
    return State.READY if state is State.PENDING and priority_said(tx, uid) else state


def _apply_not_before(
    tx: Transaction, uid: str, state: State, values: dict[str, JsonValue]
) -> State:
    if "not_before" not in values or state not in (State.PENDING, State.READY):
        return state
    if _is_held(tx, uid):  # it is looked at again when nothing else holds the task
        return state
    later = values["not_before"]
    new = State.PENDING if isinstance(later, str) and later > tx.stamp else State.READY
    wake_at = later if new is State.PENDING else None
    if new is not state:
        tx.moves(state, new)
    tx.db.execute(
        "UPDATE task SET state = ?, wake_at = ?, ready_at = CASE WHEN ? = 'READY'"
        " THEN coalesce(ready_at, ?) END, released = 1"
        f" WHERE uid = ? AND ({may_change(new)} OR state = ?)",
        (new.value, wake_at, new.value, tx.stamp, uid, new.value),
    )
    return new


def _is_held(tx: Transaction, uid: str) -> bool:
    (held,) = tx.db.execute(
        "SELECT state = 'PENDING' AND blocked_by <> '[]' FROM task WHERE uid = ?", (uid,)
    ).fetchone()
    return bool(held)


def cancel(tx: Transaction, command: Cancel) -> Changed:
    """A waiting task ends now; a running one is asked to stop and ends when it has."""
    _check(tx, command)
    state, no = _state(tx, command.uid)
    if state is None:
        return no or _refused(command.uid, "unknown_task", "no such task")
    if state is State.CANCELLED:
        stay_cancelled(tx, command.uid)
        return Changed(command.uid, "changed", find_task(tx, command.uid), already=True)
    if state in _UNDER_WAY:
        task = find_task(tx, command.uid)
        if _is_stopping(tx, command.uid):
            return Changed(command.uid, "stopping", task)
        why = command.reason or f"cancelled by {command.sender.by}"
        tx.db.execute("UPDATE task SET stopping = ? WHERE uid = ?", (why, command.uid))
        tx.event("task_stopping", command.uid, by=command.sender.by, because=why)
        return Changed(command.uid, "stopping", task)
    if state in (State.COMPLETED, State.FAILED):
        return _refused(command.uid, "ended", f"{command.uid} is {state} already")
    return _end(tx, command, State.CANCELLED, "task_cancelled", was=state)


def _is_stopping(tx: Transaction, uid: str) -> bool:
    (why,) = tx.db.execute("SELECT stopping FROM task WHERE uid = ?", (uid,)).fetchone()
    return why is not None


def _why(command: SetFields | Cancel | RetryNow | Resolve) -> str:
    """The reason that was given; who gave none is named, so that no change is without one."""
    return command.reason or f"{command.sender.by} gave no reason"


def _end(
    tx: Transaction, command: Cancel | Resolve, new: State, event: str, *, was: State
) -> Changed:
    uid, by = command.uid, command.sender.by
    done = tx.db.execute(
        "UPDATE task SET state = :new, completed_at = :now, wake_at = NULL, quarantined = 0"
        f" WHERE uid = :uid AND {may_change(new)}",
        {"new": new.value, "now": tx.stamp, "uid": uid},
    )
    if not done.rowcount:
        return _refused(uid, "not_allowed", f"{uid} is {was}, which does not become {new}")
    tx.moves(was, new)
    if was is State.DEAD_LETTERED:
        what = "done" if new is State.COMPLETED else new.value.lower()
        note_resolution(tx, uid, what=what, by=by, reason=command.reason)
    settle(tx, uid, None)
    resolved = "resolved: " if isinstance(command, Resolve) else ""
    tx.event(event, uid, was=was, state=new, by=by, because=f"{resolved}{_why(command)}")
    if tx.live.graphs:
        ended_by_word(tx, uid, was, new)
    return Changed(uid, "changed", find_task(tx, uid))


def _is_old_copy(tx: Transaction, uid: str) -> bool:
    (flag,) = tx.db.execute("SELECT quarantined FROM task WHERE uid = ?", (uid,)).fetchone()
    return bool(flag == OLD_COPY)


# To want it after all is no word on when: that was said before, and `set` says otherwise.
_TO_LATER = (
    "UPDATE task SET state = 'PENDING', ready_at = NULL, wake_at = not_before"
    f" WHERE uid = ? AND not_before > ? AND {may_change(State.PENDING, State.READY)}"
)


def _until(tx: Transaction, uid: str) -> str:
    """What to add of a task that waits: its time and what ends that, where it waits for no more
    than that; else what it waits for.
    """
    row = tx.db.execute(
        "SELECT wake_at, blocked_by FROM task WHERE uid = ? AND state = 'PENDING'", (uid,)
    ).fetchone()
    until, blocked = row or (None, "[]")
    if until:
        return f"; it waits for its time, {until}; set not_before= ends that"
    return "".join(f"; {one['text']}" for one in json.loads(blocked))


_RETRIED = (State.FAILED, State.RETRYING, State.DEAD_LETTERED, State.CANCELLED)


def retry(tx: Transaction, command: RetryNow) -> Changed:
    """READY again with its failures forgiven, or PENDING until its `not_before`; attempts go on
    counting from where they were.
    """
    _check(tx, command)
    state, no = _state(tx, command.uid)
    if state is None:
        return no or _refused(command.uid, "unknown_task", "no such task")
    if state is State.READY:
        if not command.not_here_s:
            let_start(tx, command.uid)
        return Changed(command.uid, "changed", find_task(tx, command.uid), already=True,
                       not_here_until=kept_for_move(tx, command.uid))  # fmt: skip
    if _is_old_copy(tx, command.uid):
        text = f"{command.uid} ended before this database was put back; release it with --alone"
        return _refused(command.uid, "old_copy", text)
    if state not in _RETRIED:
        text = (f"{command.uid} is {state}{_until(tx, command.uid)}; failed, dead and cancelled"
                " tasks can be retried")  # fmt: skip
        return _refused(command.uid, "not_retryable", text)
    tx.db.execute(
        "UPDATE task SET state = 'READY', failures = 0, interruptions = 0, wake_at = NULL,"
        " blocked_by = '[]', completed_at = NULL, agent = NULL, ready_at = :now, epoch = epoch + 1"
        f" WHERE uid = :uid AND {may_change(State.READY, *_RETRIED)}",
        {"uid": command.uid, "now": tx.stamp},
    )
    new = State.PENDING if tx.db.execute(_TO_LATER, (command.uid, tx.stamp)).rowcount else (
        State.READY)  # fmt: skip
    tx.moves(state, new)
    forgive(tx, command.uid)
    if state is State.DEAD_LETTERED:
        note_resolution(
            tx, command.uid, what="retried", by=command.sender.by, reason=command.reason
        )
    _tell_and_insist(tx, command, was=state, new=new)
    task = find_task(tx, command.uid)
    if task is not None:
        arrive_anew(tx, task)
    if command.not_here_s and task is not None and task.state == State.READY:
        keep_for_move(tx, command.uid, seconds=command.not_here_s)
    return Changed(command.uid, "changed", task, not_here_until=kept_for_move(tx, command.uid))


def _tell_and_insist(tx: Transaction, command: RetryNow, *, was: State, new: State) -> None:
    """What its edges hold of a task that is READY is told behind its retry; what they hold of one
    that waits already has no event of its own, and so stands in that of the retry.
    """
    if new is State.PENDING:
        insist(tx, command.uid, new)
    tx.event("task_retried", command.uid, was=was, state=new, by=command.sender.by,
             because=_why(command) + _until(tx, command.uid))  # fmt: skip
    if new is State.READY:
        insist(tx, command.uid, new)


_RESOLVED = {
    "done": (State.COMPLETED, "task_completed"),
    "failed": (State.FAILED, "task_failed"),
    "cancelled": (State.CANCELLED, "task_cancelled"),
}


def resolve(tx: Transaction, command: Resolve) -> Changed:
    """A person says what became of a task whose outcome the node cannot know."""
    _check(tx, command)
    state, no = _state(tx, command.uid)
    if state is None:
        return no or _refused(command.uid, "unknown_task", "no such task")
    new, event = _RESOLVED[command.to]
    if state is new:
        return Changed(command.uid, "changed", find_task(tx, command.uid), already=True)
    if state not in (State.PARKED, State.DEAD_LETTERED):
        text = f"{command.uid} is {state}; only PARKED and dead tasks are resolved"
        return _refused(command.uid, "not_parked", text)
    return _end(tx, command, new, event, was=state)
