"""Records what an attempt does: it starts, it is alive, and it ends once."""

from __future__ import annotations

from functools import cache

from ..commands import Beat, Because, Claim, Finish, Finished, Result, Started
from ..retries import Again, judge_failure, judge_interruption
from ..spec import values_of
from ..task import State
from .claims import claim
from .completing import complete, told
from .history import file_attempt
from .transaction import LAST_EVENT, Transaction, may_change, to_json

_STARTED = f"""
UPDATE task SET state = 'RUNNING', started_at = coalesce(started_at, :now), begun_at = :now,
       pid = :pid, start_ticks = :start_ticks, start_event = {LAST_EVENT} + :event
 WHERE uid = :uid AND attempt = :n AND {may_change(State.RUNNING)}
"""


def start(tx: Transaction, command: Started) -> bool:
    """CLAIMED becomes RUNNING; False when the attempt is no longer the task's own."""
    values = {
        "uid": command.uid, "n": command.n, "now": tx.stamp, "pid": command.pid,
        "start_ticks": command.start_ticks, "event": tx.events_due + 1,
    }  # fmt: skip
    if not tx.db.execute(_STARTED, values).rowcount:
        return False
    tx.moves(State.CLAIMED, State.RUNNING)
    tx.event("task_started", command.uid, n=command.n, was="CLAIMED", state="RUNNING")
    return True


def beat(tx: Transaction, command: Beat) -> bool:
    """The attempt is alive; False when it is no longer the task's own."""
    row = tx.db.execute(
        "UPDATE task SET heartbeat_at = ?, progress = coalesce(?, progress)"
        " WHERE uid = ? AND attempt = ? AND state IN ('CLAIMED', 'RUNNING', 'VALIDATING')"
        " RETURNING agent",
        (tx.stamp, command.progress, command.uid, command.n),
    ).fetchone()
    if row is None:
        return False
    tx.db.execute("UPDATE agent SET last_heartbeat = ? WHERE name = ?", (tx.stamp, row[0]))
    tx.changed = True
    return True


def finish(tx: Transaction, command: Finish) -> Finished:
    """Accept the attempt's end once, fenced by (uid, n); then claim for the slot it leaves."""
    state, because = _record(tx, command)
    following = None if command.then_claim is None else claim(tx, Claim(command.then_claim))
    return Finished(state is not None, state, because, following)


def _record(tx: Transaction, command: Finish) -> tuple[str | None, Because | None]:
    if _completed_at_once(tx, command):
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
    ending = _Ending(tx, command, row)
    stays = _stays(command.result)
    if not stays:
        file_attempt(tx, command.uid)
    new = _ENDINGS[command.result.kind](ending)
    if not stays:
        ending.close_attempt(counted=new.counted)
    ending.note_streak(counted=new.counted)
    return new.state, None


def _completed_at_once(tx: Transaction, command: Finish) -> bool:
    """The usual end of an attempt that this process claimed: its row is not read before."""
    known = tx.live.claimed.pop(command.uid, None)
    if known is None or known.n != command.n or not _stays(command.result):
        return False
    for was in (State.RUNNING, State.CLAIMED):
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
        f"UPDATE attempt SET ended_at = ?, outcome = ?, end_event = {LAST_EVENT} + ?"
        " WHERE uid = ? AND n = ? AND ended_at IS NULL AND node = (SELECT name FROM node)",
        (tx.stamp, f"late {command.result.kind}", tx.events_due + 1, command.uid, command.n),
    )
    if closed.rowcount:
        tx.event("result_refused", command.uid, n=command.n, because="late_result")


# seq, state, agent, failures, interruptions, max_attempts, stopping, spec, streak of the agent
_Row = tuple[int, str, str | None, int, int, int, str | None, str, int | None]


_CLOSE = f"""
UPDATE attempt SET ended_at = ?, outcome = ?, counted = ?, error_kind = ?, message = ?,
       exit_code = ?, duration_s = ?, cost_usd = ?, tokens = ?, end_event = {LAST_EVENT} + ?
 WHERE uid = ? AND n = ?
"""


class _New:
    """The state that an ending led to, and whether the attempt used up a try."""

    def __init__(self, state: State, *, counted: bool = False) -> None:
        self.state, self.counted = state, counted


class _Ending:
    """One attempt at its end, with the row it belongs to."""

    def __init__(self, tx: Transaction, command: Finish, row: _Row) -> None:
        self.tx, self.command, self.result = tx, command, command.result
        self.seq, was, self.agent, self.failures, self.interruptions = row[:5]
        self.max_attempts, self.stopping, self.spec, self.streak = row[5:]
        self.was = State(was)

    def change(self, new: State, event: str, because: str | None, **columns: object) -> None:
        """Write the new state where the table allows it, fenced by the attempt's number."""
        values = (*columns.values(), self.command.uid, self.command.n)
        done = self.tx.db.execute(_becomes(new, *columns), values)
        assert done.rowcount == 1, f"{self.was} did not become {new}"
        self.tx.moves(self.was, new)
        self.tx.event(
            event, self.command.uid, n=self.command.n, was=self.was, state=new, by=self.agent,
            because=because, data=told(self.result) if new is State.FAILED else None,
        )  # fmt: skip
        self.was = new

    def close_attempt(self, *, counted: bool) -> None:
        """The attempt's own row, closed once."""
        result = self.result
        self.tx.db.execute(
            _CLOSE,
            (
                self.tx.stamp, result.kind, int(counted), result.error_kind, result.message,
                result.exit_code, result.duration_s, result.cost_usd,
                None if result.tokens is None else to_json(result.tokens), self.tx.events_due,
                self.command.uid, self.command.n,
            ),
        )  # fmt: skip

    def note_streak(self, *, counted: bool) -> None:
        """How many of the agent's attempts failed one after another."""
        if self.result.kind in ("completed", "failed"):
            streak = (self.streak or 0) + 1 if counted else 0
            if streak:
                self.tx.live.failing.add(self.agent)
            if streak != self.streak:
                query = "UPDATE agent SET streak = ? WHERE name = ?"
                self.tx.db.execute(query, (streak, self.agent))


@cache
def _becomes(new: State, *columns: str) -> str:
    sets = "".join(f", {name} = ?" for name in columns)
    return (
        f"UPDATE task SET state = '{new}', stopping = NULL{sets}"
        f" WHERE uid = ? AND attempt = ? AND {may_change(new)}"
    )


def _completed(ending: _Ending) -> _New:
    done = complete(
        ending.tx, ending.command, was=ending.was, seq=ending.seq, agent=ending.agent
    )
    assert done, f"{ending.was} did not become COMPLETED"
    return _New(State.COMPLETED)


def _failed(ending: _Ending) -> _New:
    if ending.stopping is not None:
        return _cancelled(ending)
    tx, result = ending.tx, ending.result
    kind = result.error_kind or "crash"
    reason = f"{kind}: {result.message}" if result.message else kind
    ending.change(State.FAILED, "task_failed", reason, failure_reason=reason[:4096])
    policy = values_of(ending.spec).get("retry", {})
    verdict = judge_failure(
        failures=ending.failures, max_attempts=ending.max_attempts,
        policy=policy if isinstance(policy, dict) else {}, kind=kind,
        retry_at=result.retry_at, now=tx.now, chance=tx.rng.random(),
    )  # fmt: skip
    if isinstance(verdict, Again):
        failures = ending.failures + int(verdict.counted)
        ending.change(
            State.RETRYING, "task_retrying", verdict.because, wake_at=verdict.at, failures=failures
        )
        return _New(State.RETRYING, counted=verdict.counted)
    ending.change(
        State.DEAD_LETTERED, "task_dead_lettered", verdict.because,
        completed_at=tx.stamp, failures=ending.failures + 1,
    )  # fmt: skip
    return _New(State.DEAD_LETTERED, counted=True)


def _interrupted(ending: _Ending) -> _New:
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
            State.PARKED, "task_parked", park.because,
            interruptions=count, failure_reason=park.because[:4096],
        )  # fmt: skip
        return _New(State.PARKED)
    return _ready_again(ending, why, interruptions=count)


def _requeued(ending: _Ending) -> _New:
    if ending.stopping is not None:
        return _cancelled(ending)
    return _ready_again(ending, ending.result.message or "requeued")


def _ready_again(ending: _Ending, why: str, *, interruptions: int | None = None) -> _New:
    count = ending.interruptions if interruptions is None else interruptions
    ending.change(
        State.READY, "task_interrupted", why,
        agent=None, ready_at=ending.tx.stamp, interruptions=count,
    )  # fmt: skip
    return _New(State.READY)


def _unproved(ending: _Ending) -> _New:
    why = f"not proven dead: {ending.result.message or 'no evidence'}"
    ending.change(State.PARKED, "task_parked", why, failure_reason=why[:4096])
    return _New(State.PARKED)


def _cancelled(ending: _Ending) -> _New:
    why = ending.stopping or ending.result.message or "cancelled"
    ending.change(State.CANCELLED, "task_cancelled", why, completed_at=ending.tx.stamp)
    return _New(State.CANCELLED)


_ENDINGS = {
    "completed": _completed,
    "failed": _failed,
    "interrupted": _interrupted,
    "requeued": _requeued,
    "unproved": _unproved,
    "cancelled": _cancelled,
}
