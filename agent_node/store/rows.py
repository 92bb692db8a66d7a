"""Turns rows of the task table into tasks, and tasks into rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from ..fields import is_money
from ..lines import encode
from ..queries import AttemptsPage
from ..spec import hash_of, values_of
from ..strict import JsonObject, JsonValue
from ..task import DEFAULTS, UNDERWAY, State, Task, built_task, to_wire
from ..validation import needs_of
from .history import ATTEMPTS
from .transaction import Transaction, to_json, words_to_json
from .turns import first_turn

_PLAIN = (
    "seq", "epoch", "state", "priority", "priority_100", "domain", "source", "not_before",
    "deadline", "expected_s", "max_s", "max_attempts", "boost_per_minute", "heat", "hops",
    "stolen_from", "failures", "interruptions", "ready_at", "started_at", "completed_at",
    "progress", "failure_reason", "cost_usd",
)  # fmt: skip
_LISTS = ("skills", "tags", "models", "fallback_models", "blocked_by", "artifacts")
_LOOSE = ("output", "tokens")
_OWN = ("agent", "claimed_at", "heartbeat_at", "wake_at", "pinned")
_ALL = (*_PLAIN, *_LISTS, *_LOOSE, *_OWN)
_NOT_KEPT = ("seq", "state")


def life_of() -> str:
    """SQL for everything that the hash does not cover, as one JSON object."""
    plain = [f"'{name}', {name}" for name in (*_PLAIN, "pinned") if name not in _NOT_KEPT]
    nested = [f"'{name}', json({name})" for name in (*_LISTS, *_LOOSE)]
    return f"json_object({', '.join([*plain, *nested])})"


WHOLE = ", ".join((*_ALL, "spec"))
WITHOUT_BODY = ", ".join((*_ALL, "json_remove(spec, '$.body')"))
_AFTER_PLAIN = len(_PLAIN)
_NESTED = (*_LISTS, *_LOOSE)
_UNDERWAY = frozenset(map(str, UNDERWAY))


def task_of(row: Sequence[object], attempts: list[JsonValue] | None = None) -> Task:
    """The task of a row that was selected as `WHOLE` or `WITHOUT_BODY`."""
    fields: dict[str, JsonValue] = dict(zip(_PLAIN, row, strict=False))  # type: ignore[arg-type]
    fields.update(values_of(str(row[-1])))
    for name, text in zip(_NESTED, row[_AFTER_PLAIN:], strict=False):
        if text is not None and text != "[]":
            fields[name] = json.loads(str(text))
    agent, claimed_at, heartbeat_at, wake_at, pinned = row[-6:-1]
    fields["pinned"] = bool(pinned)
    if agent is not None and fields["state"] in _UNDERWAY:
        fields["claim"] = {
            "agent": str(agent),
            "claimed_at": claimed_at,  # type: ignore[dict-item]
            "heartbeat_at": heartbeat_at,  # type: ignore[dict-item]
        }
    if fields["state"] == State.RETRYING:
        fields["retry_at"] = wake_at  # type: ignore[assignment]
    if attempts:
        fields["attempts"] = attempts
    return built_task(fields)


# Of a task that is claimed for the first time most columns are at their default, and reading them
# is felt. So these are read, and of the others only whether all of them say nothing.
_SAID = (
    "seq", "epoch", "priority", "domain", "source", "expected_s", "max_s", "max_attempts",
    "ready_at",
)  # fmt: skip
_SAID_LISTS = ("skills", "tags", "models")
_NO_WORDS = ["[]"] * len(_SAID_LISTS)
_SILENT = sorted({*_ALL} - {*_SAID, *_SAID_LISTS, "state", "agent", "claimed_at", "heartbeat_at"})


def _is_default(name: str) -> str:
    default = DEFAULTS.get(name)  # `wake_at` is no field of a task
    return f"{name} = '[]'" if default == [] else f"{name} = {default:d}"


def _silent() -> str:
    nulls = [name for name in _SILENT if DEFAULTS.get(name) is None]
    tests = [_is_default(name) for name in _SILENT if name not in nulls]
    return " AND ".join([f"coalesce({', '.join(nulls)}) IS NULL", "attempt = 1", *tests])


JUST_CLAIMED = ", ".join((*_SAID, *_SAID_LISTS, _silent(), "spec"))


def claimed_task(tx: Transaction, row: list[JsonValue], *, agent: str) -> Task:
    """The whole task of a row that this transaction claimed, and returned as `JUST_CLAIMED`."""
    silent, spec = row[-2:]
    if not silent:
        return _read_claimed(tx, row[0])
    fields = values_of(str(spec))
    fields.update(zip(_SAID, row, strict=False))
    words = row[len(_SAID) : -2]
    if words != _NO_WORDS:
        fields.update(zip(_SAID_LISTS, map(json.loads, map(str, words)), strict=True))
    fields["state"] = "CLAIMED"
    fields["claim"] = {"agent": agent, "claimed_at": tx.stamp, "heartbeat_at": tx.stamp}
    return built_task(fields)


def _read_claimed(tx: Transaction, seq: JsonValue) -> Task:
    row = tx.db.execute(f"SELECT attempt, uid, {WHOLE} FROM task WHERE seq = ?", (seq,)).fetchone()
    attempt, uid, *whole = row
    return task_of(whole, attempts_of(tx.db, uid) if attempt > 1 else None)


_NEW = (
    "uid", "epoch", "state", "subject", "priority", "priority_100", "skills", "needs",
    "need_set", "domain", "tags",
    "key", "source", "pinned", "not_before", "deadline", "expected_s", "max_s", "max_attempts",
    "models", "fallback_models", "boost_per_minute", "heat", "wake_at", "ready_at", "pace",
    "turn", "sha256", "spec",
)  # fmt: skip
_TRAVELLED = (
    "hops", "shared", "stolen_from", "xfer", "attempt", "failures", "interruptions",
    "started_at", "progress", "failure_reason", "cost_usd", "tokens",
)  # fmt: skip


def _insert(columns: Iterable[str]) -> str:
    names = tuple(columns)
    return f"INSERT INTO task ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


INSERT_NEW = _insert(_NEW)
INSERT_TRAVELLED = _insert((*_NEW, *_TRAVELLED))
# The same for a copy that another node offers: the node must be active in this very statement.
INSERT_OFFERED = INSERT_TRAVELLED.replace("VALUES (", "SELECT ").removesuffix(")") + (
    " FROM node WHERE node.state = 'active'"
)


def new_row(
    tx: Transaction,
    task: Task,
    spec: str,
    *,
    state: State,
    wake_at: str | None,
    weight: float = 0.0,
    since: str | None = None,
) -> tuple[object, ...]:
    """The values of `INSERT_NEW`; `spec` is the task's own, made once by the caller.

    `weight` is what its graph gives it, in points; `since` is when it began to wait elsewhere.
    """
    needs = needs_of(task.needs, task.validate) if task.validate else task.needs
    return (
        task.uid, task.epoch, state.value, task.subject, task.priority, task.priority_100,
        words_to_json(task.skills), words_to_json(needs), tx.need_set(needs),
        task.domain, words_to_json(task.tags), task.key, task.source,
        int(task.pinned), task.not_before, task.deadline, task.expected_s, task.max_s,
        task.max_attempts, words_to_json(task.models), words_to_json(task.fallback_models),
        task.boost_per_minute, task.heat, wake_at, tx.stamp if state is State.READY else None,
        *first_turn(tx, task, weight=weight, since=since), hash_of(spec), spec,
    )  # fmt: skip


def travelled_row(
    tx: Transaction, task: Task, spec: str, *, state: State, xfer: str | None
) -> tuple[object, ...]:
    """The values of `INSERT_TRAVELLED`: a task that lived elsewhere before."""
    numbers = [one.get("n") for one in task.attempts if isinstance(one, dict)]
    highest = max((n for n in numbers if isinstance(n, int)), default=0)
    return (
        *new_row(tx, task, spec, state=state, wake_at=None, since=task.created_at),
        task.hops, 1, task.stolen_from, xfer, highest, task.failures,
        task.interruptions, task.started_at, task.progress, task.failure_reason, task.cost_usd,
        None if task.tokens is None else to_json(task.tokens),
    )  # fmt: skip


_ATTEMPT = (
    "n", "node", "incarnation", "agent", "claimed_at", "started_at", "ended_at", "outcome",
    "counted", "error_kind", "message", "exit_code", "duration_s", "cost_usd", "tokens",
)  # fmt: skip
ATTEMPTS_MAX = 100  # the last so many travel and are shown; their numbers go on all the same
_ATTEMPTS_OF = f"SELECT {', '.join(_ATTEMPT)} FROM {ATTEMPTS} ORDER BY n DESC LIMIT :most"


def attempts_of(db: sqlite3.Connection, uid: str) -> list[JsonValue]:
    """The task's attempts so far, wherever they ran, as they stand on the wire."""
    rows = db.execute(_ATTEMPTS_OF, {"uid": uid, "most": ATTEMPTS_MAX}).fetchall()
    said = [_attempt_on_wire(row) for row in rows]
    return [*reversed(said if _are_short(rows) else _shortened(said))]


_AFTER = f"SELECT {', '.join(_ATTEMPT)} FROM {ATTEMPTS} WHERE n > :after ORDER BY n LIMIT :most"


def attempts_page(tx: Transaction, query: AttemptsPage) -> tuple[JsonObject, ...]:
    """So many of them, in order: those that follow a number whole, as far as one answer holds them,
    and always one; without a number the last ones, the older of them in brief.
    """
    asked = {"uid": query.uid, "most": query.limit, "after": query.after}
    if query.after is None:
        last = [_attempt_on_wire(row) for row in tx.db.execute(_ATTEMPTS_OF, asked)]
        return tuple(one for one in reversed(_shortened(last)) if isinstance(one, dict))
    kept, left = list[JsonObject](), HISTORY_MAX
    for row in tx.db.execute(_AFTER, asked):
        said = _attempt_on_wire(row)
        left -= len(encode(said).encode())
        if left < 0 and kept:
            break
        kept.append(said)
    return tuple(kept)


# What a program said of its failures must not keep its task from being shown, moved or told of.
HISTORY_MAX = 512 * 1024  # bytes on the wire; whatever is older is told in brief
_BRIEF = 64  # characters of each text
_SPOKEN = [(_ATTEMPT.index("message"), 6), (_ATTEMPT.index("tokens"), 4)]  # and bytes a character


def _are_short(rows: Iterable[Sequence[JsonValue]]) -> bool:
    """Surely; nothing is encoded for the usual few attempts with a few words each."""
    most = sum(len(str(row[at] or "")) * wide for row in rows for at, wide in _SPOKEN)
    return most < HISTORY_MAX // 2


def _shortened(newest_first: Iterable[JsonObject]) -> list[JsonValue]:
    told: list[JsonValue] = []
    left = HISTORY_MAX
    for one in newest_first:
        left -= len(encode(one).encode())
        told.append(one if left >= 0 else _in_brief(one))
    return told


def _in_brief(one: JsonObject) -> JsonObject:
    return {name: value[:_BRIEF] if isinstance(value, str) else value
            for name, value in one.items() if name != "tokens"}  # fmt: skip


def _attempt_on_wire(row: Sequence[JsonValue]) -> JsonObject:
    said: JsonObject = {
        name: value for name, value in zip(_ATTEMPT, row, strict=True) if value is not None
    }
    said["counted"] = bool(said["counted"])
    if "tokens" in said:
        said["tokens"] = json.loads(str(said["tokens"]))
    return said


_TEXT = ("node", "incarnation", "agent", "claimed_at", "started_at", "ended_at", "outcome",
         "error_kind", "message", "cost_usd")  # fmt: skip
_KEEP_ATTEMPT = (
    f"INSERT OR IGNORE INTO attempt (uid, {', '.join(_ATTEMPT)})"
    f" VALUES (?, {', '.join('?' * len(_ATTEMPT))})"
)


def keep_attempts(tx: Transaction, task: Task) -> None:
    """Write down the attempts that a task brings along; what is known here is not overwritten."""
    for one in task.attempts:
        if not isinstance(one, dict) or type(one.get("n")) is not int:
            continue
        values: list[object] = [task.uid]
        for name in _ATTEMPT:
            value = one.get(name)
            if name == "cost_usd" and not (isinstance(value, str) and is_money(value)):
                value = None  # sums are made of these
            elif name in _TEXT:
                value = None if value is None else str(value)[:4096]
            elif name == "tokens":
                value = None if value is None else to_json(value)
            elif not isinstance(value, int | float):
                value = None
            values.append(value)
        values[2] = values[2] or "unknown"
        values[3] = values[3] or "unknown"
        values[4] = values[4] or "unknown"
        values[5] = values[5] or tx.stamp
        values[9] = int(bool(values[9]))
        tx.db.execute(_KEEP_ATTEMPT, values)


def with_history(tx: Transaction, task: Task) -> Task:
    """The same task with its attempts."""
    attempts = attempts_of(tx.db, task.uid)
    return built_task({**to_wire(task), "attempts": attempts}) if attempts else task


def find_task(tx: Transaction, uid: str) -> Task | None:
    """The whole task as it stands here, with its attempts; None when no row is here."""
    row = tx.db.execute(f"SELECT {WHOLE} FROM task WHERE uid = ?", (uid,)).fetchone()
    return None if row is None else with_history(tx, task_of(row))
