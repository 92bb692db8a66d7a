"""Records what an attempt does: it starts, it is alive, and it ends once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..commands import Because, Finish, Finished, Result, Started, Validate
from ..retries import (
    Again,
    GiveUp,
    Tried,
    is_poison,
    judge_failure,
    judge_interruption,
    limited_in_a_row,
    since_forgiven,
)
from ..spec import values_of
from ..strict import JsonObject
from ..task import State
from .beats import end_beats
from .care import excused, keep_from, tries_of
from .claims import claim_for
from .completing import complete, spent, told
from .dead import note_death
from .ending import Ending, New
from .ends import after_end
from .history import file_attempt
from .spending import is_used_up, settle
from .transaction import Transaction, may_change, to_json
from .waiting import as_asked, let_wait, put_back

RUNS = "its program runs"
_STARTED = f"""
UPDATE task SET state = 'RUNNING', started_at = coalesce(started_at, :now), begun_at = :now,
       pid = :pid, start_ticks = :start_ticks, start_event = :event
 WHERE uid = :uid AND attempt = :n AND {may_change(State.RUNNING)}
RETURNING agent
"""


def start(tx: Transaction, command: Started) -> bool:
    """CLAIMED becomes RUNNING; False when the attempt is no longer the task's own."""
    values = {
        "uid": command.uid, "n": command.n, "now": tx.stamp, "pid": command.pid,
        "start_ticks": command.start_ticks, "event": tx.next_event,
    }  # fmt: skip
    started = tx.db.execute(_STARTED, values).fetchall()
    if not started:
        return False
    tx.moves(State.CLAIMED, State.RUNNING)
    because = f"its program runs with model {command.model}" if command.model else RUNS
    tx.event("task_started", command.uid, n=command.n, was="CLAIMED", state="RUNNING",
             by=started[0][0], because=because)  # fmt: skip
    return True


_VALIDATING = f"""
UPDATE task SET state = 'VALIDATING' WHERE uid = :uid AND attempt = :n
   AND {may_change(State.VALIDATING)}
"""


def validate(tx: Transaction, command: Validate) -> bool:
    """RUNNING becomes VALIDATING; False when it is so already, or not this attempt's any more."""
    if not tx.db.execute(_VALIDATING, {"uid": command.uid, "n": command.n}).rowcount:
        return False
    tx.moves(State.RUNNING, State.VALIDATING)
    # No event of the attempt's own: `show` finds those by numbers that this one has no place for.
    tx.event("task_validating", command.uid, was="RUNNING", state="VALIDATING",
             because="its program ended well; its output is judged now")  # fmt: skip
    return True


def finish(tx: Transaction, command: Finish) -> Finished:
    """Accept the attempt's end once, fenced by (uid, n); then claim for the slot it leaves."""
    if tx.live.beats:
        end_beats(tx, command.uid, command.n)
    state, because = _record(tx, command)
    if state is not None:
        settle(tx, command.uid, command.result.cost_usd, proved=command.result.kind != "unproved")
    following = None if command.then_claim is None else claim_for(tx, command.then_claim)
    return Finished(state is not None, state, because, following)


def _record(tx: Transaction, command: Finish) -> tuple[str | None, Because | None]:
    if tx.live.graphs:
        command = as_asked(tx, command)
    if _completed_at_once(tx, command):
        if tx.live.graphs:
            after_end(tx, command.uid, State.COMPLETED)
        return State.COMPLETED, None
    row = tx.db.execute(
        "SELECT seq, state, agent, failures, interruptions, max_attempts, stopping, spec,"
        " (SELECT a.streak FROM agent a WHERE a.name = task.agent) FROM task"
        " WHERE uid = ? AND attempt = ? AND state IN ('CLAIMED', 'RUNNING', 'VALIDATING')",
        (command.uid, command.n),
    ).fetchone()
    if row is None:
        _close_late(tx, command)
        text = f"attempt {command.n} of {command.uid} is not under way here; its result is late"
        return None, Because("late_result", text)
    ending = Ending(tx, command, row)
    stays = _stays(command.result)
    if not stays:
        file_attempt(tx, command.uid)
    new = _ENDINGS[command.result.kind](ending)
    if not stays:
        ending.close_attempt(counted=new.counted)
    ending.note_streak(counted=new.counted)
    if tx.live.graphs:
        _let_others_know(tx, command, new.state)
    return new.state, None


def _let_others_know(tx: Transaction, command: Finish, state: State) -> None:
    """Once all of the attempt is written: what follows has events of its own."""
    if command.result.kind == "waiting" and state is State.READY:
        let_wait(tx, command.uid)
    else:
        after_end(tx, command.uid, state)


def _completed_at_once(tx: Transaction, command: Finish) -> bool:
    """The usual end of an attempt that this process claimed: its row is not read before."""
    known = tx.live.claimed.pop(command.uid, None)
    if known is None or known.n != command.n or not _stays(command.result):
        return False
    for was in (State.RUNNING, State.CLAIMED, State.VALIDATING):
        if tx.count(was) and complete(tx, command, was=was, seq=known.seq, agent=known.agent):
            _end_streak(tx, known.agent)
            return True
    return False


def _end_streak(tx: Transaction, agent: str) -> None:
    if agent in tx.live.failing:
        tx.db.execute("UPDATE agent SET streak = 0 WHERE name = ?", (agent,))


def _stays(result: Result) -> bool:
    """Whether the task's own row says all that there is to say of the attempt's end."""
    return result.kind == "completed" and result.error_kind is None and result.message is None


def _close_late(tx: Transaction, command: Finish) -> None:
    """The result does not count any more, but it proves that the attempt has ended."""
    closed = tx.db.execute(
        "UPDATE attempt SET ended_at = ?, outcome = ?, end_event = ?"
        " WHERE uid = ? AND n = ? AND ended_at IS NULL AND node = (SELECT name FROM node)",
        (tx.stamp, f"late {command.result.kind}", tx.next_event, command.uid, command.n),
    )
    if closed.rowcount:
        tx.event("result_refused", command.uid, n=command.n, because="late_result")
        settle(tx, command.uid, command.result.cost_usd, n=command.n)


def _completed(ending: Ending) -> New:
    done = complete(
        ending.tx, ending.command, was=ending.was, seq=ending.seq, agent=ending.agent
    )
    assert done, f"{ending.was} did not become COMPLETED"
    return New(State.COMPLETED)


def _failed(ending: Ending) -> New:
    if ending.stopping is not None:
        return _cancelled(ending)
    tx, result = ending.tx, ending.result
    kind = result.error_kind or "crash"
    reason = f"{kind}: {result.message}" if result.message else kind
    ending.change(
        State.FAILED, "task_failed", reason, told(result), failure_reason=reason[:4096]
    )
    tries = tries_of(tx, ending.command.uid)[:-1]  # the last one is this one, which is not closed
    policy = values_of(ending.spec).get("retry", {})
    verdict = judge_failure(
        failures=ending.failures, max_attempts=ending.max_attempts,
        policy=policy if isinstance(policy, dict) else {},
        kind="budget_exceeded" if is_used_up(tx, ending.spec, command=ending.command) else kind,
        retry_at=result.retry_at, now=tx.now, chance=tx.rng.random(),
        limited=limited_in_a_row(tries),
    )  # fmt: skip
    if isinstance(verdict, Again) and not verdict.counted:
        ending.change(State.RETRYING, "task_retrying", verdict.because, wake_at=verdict.at)
        return New(State.RETRYING)
    this = Tried(tx.node.name, ending.agent or "unknown", kind, counted=True, n=ending.command.n)
    return _counted(ending, verdict, [*tries, this])


def _counted(ending: Ending, verdict: Again | GiveUp, tries: Sequence[Tried]) -> New:
    """A failure that used up a try; `tries` are all that were made of the task, it the last."""
    tx, uid, failures = ending.tx, ending.command.uid, ending.failures + 1
    failed = since_forgiven(tries, failures)
    poison = is_poison(excused(tx, uid, failed, tries=tries))
    if isinstance(verdict, Again) and not poison:
        ending.change(
            State.RETRYING, "task_retrying", verdict.because, wake_at=verdict.at, failures=failures
        )
        keep_from(tx, uid, failed, ready_at=verdict.at)
        return New(State.RETRYING, counted=True)
    because = verdict.because if not poison else (
        f"poison: it failed {failures} times, whoever tried it"
    )
    told_of: JsonObject = {"error_kind": failed[-1].kind, **({"poison": True} if poison else {})}
    ending.change(
        State.DEAD_LETTERED, "task_dead_lettered", because, told_of,
        completed_at=tx.stamp, failures=failures,
    )  # fmt: skip
    note_death(tx, uid, poison=poison)
    return New(State.DEAD_LETTERED, counted=True)


def _interrupted(ending: Ending) -> New:
    if ending.stopping is not None:
        return _cancelled(ending)
    why = ending.result.message or "interrupted"
    policy = values_of(ending.spec).get("on_interrupt", "retry")
    park = judge_interruption(
        interruptions=ending.interruptions, on_interrupt=str(policy), why=why
    )
    count = ending.interruptions + 1
    if park is not None:
        ending.change(
            State.PARKED, "task_parked", park.because, spent(ending.result),
            interruptions=count, failure_reason=park.because[:4096],
        )  # fmt: skip
        return New(State.PARKED)
    if is_used_up(ending.tx, ending.spec, command=ending.command):
        return _used_up(ending)
    return _ready_again(ending, why, interruptions=count)


def _requeued(ending: Ending) -> New:
    if ending.stopping is not None:
        return _cancelled(ending)
    if is_used_up(ending.tx, ending.spec, command=ending.command):
        return _used_up(ending)
    return _ready_again(ending, ending.result.message or "requeued")


def _used_up(ending: Ending) -> New:
    """It was cut short, and has cost all that it may: there is nothing left to go on with."""
    ending.result = replace(ending.result, kind="failed", error_kind="budget_exceeded")
    return _failed(ending)


def _ready_again(ending: Ending, why: str, *, interruptions: int | None = None) -> New:
    count = ending.interruptions if interruptions is None else interruptions
    ending.change(
        State.READY, "task_interrupted", why, spent(ending.result),
        agent=None, ready_at=ending.tx.stamp, interruptions=count,
    )  # fmt: skip
    return New(State.READY)


def _unproved(ending: Ending) -> New:
    why = f"not proven dead: {ending.result.message or 'no evidence'}"
    ending.change(State.PARKED, "task_parked", why, spent(ending.result), failure_reason=why[:4096])
    return New(State.PARKED)


def _unvalidated(ending: Ending) -> New:
    """The work is done, and kept, and a person says whether it is good."""
    if ending.stopping is not None:
        return _cancelled(ending)
    result = ending.result
    why = f"not judged: {result.message or 'the validator is broken'}"
    ending.change(
        State.PARKED, "task_parked", why, told(result), failure_reason=why[:4096],
        output=None if result.output is None else to_json(result.output),
        artifacts=to_json(result.artifacts), cost_usd=result.cost_usd,
        tokens=None if result.tokens is None else to_json(result.tokens),
    )  # fmt: skip
    return New(State.PARKED)


def _cancelled(ending: Ending) -> New:
    why = ending.stopping or ending.result.message or "cancelled"
    ending.change(
        State.CANCELLED, "task_cancelled", why, spent(ending.result), completed_at=ending.tx.stamp
    )
    return New(State.CANCELLED)


def _waiting(ending: Ending) -> New:
    return _cancelled(ending) if ending.stopping is not None else put_back(ending)


_ENDINGS = {
    "completed": _completed,
    "failed": _failed,
    "interrupted": _interrupted,
    "requeued": _requeued,
    "unproved": _unproved,
    "unvalidated": _unvalidated,
    "cancelled": _cancelled,
    "waiting": _waiting,
}
