"""Records the usual end of an attempt, a task that is done, with one statement."""

from __future__ import annotations

from functools import cache

from ..commands import Finish, Result
from ..output_hash import OUTPUT_SHA256, canonical, digest, hash_of_output
from ..strict import JsonObject, JsonValue
from ..task import State
from .artifact_inputs import note_kept
from .transaction import Transaction, may_change, to_json


def complete(
    tx: Transaction, command: Finish, *, was: State, seq: int, agent: str | None
) -> bool:
    """`was` becomes COMPLETED, fenced by (uid, n); False when the task is not at that attempt, not
    in that state, or not at `seq`. `agent` is whose attempt it was, None when nobody knows.
    """
    result = command.result
    output = None if result.output is None else canonical(result.output)
    values = (
        tx.stamp, output,
        to_json(result.artifacts), result.cost_usd,
        None if result.tokens is None else to_json(result.tokens), result.exit_code,
        result.duration_s, tx.next_event, seq, command.uid, command.n,
    )  # fmt: skip
    if not tx.db.execute(_complete_from(was), values).rowcount:
        return False
    if result.artifacts:
        note_kept(tx, command.uid, result.artifacts)
    tx.moves(was, State.COMPLETED)
    tx.event(
        "task_completed", command.uid, n=command.n, was=was, state=State.COMPLETED, by=agent,
        because=_why(was, result), data=in_words(result, output),
    )  # fmt: skip
    return True


def _why(was: State, result: Result) -> str:
    """What made it count as done."""
    took = "" if result.duration_s is None else f" after {result.duration_s:.1f} s"
    judged = ", and what judges its output let it pass" if was is State.VALIDATING else ""
    return f"its program ended well{took}{judged}"


@cache
def _complete_from(was: State) -> str:
    return f"""
UPDATE task SET state = 'COMPLETED', stopping = NULL, completed_at = ?, output = ?, artifacts = ?,
       cost_usd = ?, tokens = ?, failure_reason = NULL, exit_code = ?, duration_s = ?,
       end_event = ?
 WHERE seq = ? AND uid = ? AND attempt = ? AND {may_change(State.COMPLETED, was)}
"""


# A row that was damaged on the disk has no hash that any output has: "" is nobody's.
_OUTPUT_HASH = f"""
SELECT CASE WHEN json_valid(e.data) THEN json_extract(e.data, '$.{OUTPUT_SHA256}')
            WHEN e.data IS NOT NULL THEN '' END
  FROM task t JOIN event e ON e.seq = t.end_event AND e.uid = t.uid
 WHERE t.uid = ? AND t.state = 'COMPLETED'
"""


def output_hash(tx: Transaction, uid: str) -> str | None:
    """The hash of what a task here left, as it was when it ended; None: nobody wrote it down."""
    row = tx.db.execute(_OUTPUT_HASH, (uid,)).fetchone()
    return None if row is None else row[0]


_NOTHING: tuple[JsonValue, ...] = (None, [])
_TOLD = (
    "kind", "error_kind", "message", "artifacts", "cost_usd", "tokens", "duration_s", "exit_code",
    "model",
)  # fmt: skip


def told(result: Result) -> JsonObject:
    """What an event says of a result: everything that the hub may want to pass on."""
    found = _beside_output(result)
    sha256 = hash_of_output(result.output)
    return found if sha256 is None else {**found, "output": result.output, OUTPUT_SHA256: sha256}


def _beside_output(result: Result) -> JsonObject:
    said: JsonObject = vars(result)
    return {name: said[name] for name in _TOLD if said[name] not in _NOTHING}


def in_words(result: Result, output: str | None) -> str:
    """The same as JSON: an output may be long, and is put into words once for all who keep it."""
    said = to_json(_beside_output(result))
    if output is None:
        return said
    return f'{said[:-1]},"output":{output},"{OUTPUT_SHA256}":"{digest(output)}"}}'


def spent(result: Result) -> JsonObject | None:
    """What an event says of an attempt of which nothing but its cost counts; None: it told none."""
    if result.cost_usd is None:
        return None
    told_s: JsonObject = {} if result.duration_s is None else {"duration_s": result.duration_s}
    return {"cost_usd": result.cost_usd, **told_s}
