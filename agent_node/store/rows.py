"""Turns rows of the task table into tasks, and tasks into rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import itemgetter, ne
from typing import NamedTuple

from ..lines import encode
from ..spec import hash_of, may_hold_floats, values_of
from ..strict import JsonObject, JsonValue
from ..task import DEFAULTS, UNDERWAY, State, Task, built_task, to_wire, to_wire_tersely
from ..validation import needs_of
from .past_attempts import attempts_of
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
    """SQL for everything that the hash does not cover, as one JSON object. Of a task that has never
    run most of it says nothing, and is left out: such a copy takes a third of the page.
    """
    whole = _as_object((*_PLAIN, "pinned"), (*_LISTS, *_LOOSE))
    return f"CASE WHEN {_silent(attempt=0)} THEN {_as_object(_SAID, _SAID_LISTS)} ELSE {whole} END"


def _as_object(plain: Iterable[str], nested: Iterable[str]) -> str:
    said = [f"'{name}', {name}" for name in plain if name not in _NOT_KEPT]
    said += [f"'{name}', json({name})" for name in nested]
    return f"json_object({', '.join(said)})"


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
        if text is not None and (text != "[]" or name == "output"):
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
_SAID_DEFAULTS = [DEFAULTS[name] for name in _SAID]
_SAID_LISTS = ("skills", "tags", "models")
_NO_WORDS = ["[]"] * len(_SAID_LISTS)
_SILENT = sorted({*_ALL} - {*_SAID, *_SAID_LISTS, "state", "agent", "claimed_at", "heartbeat_at"})


def _is_default(name: str) -> str:
    default = DEFAULTS.get(name)  # `wake_at` is no field of a task
    return f"{name} = '[]'" if default == [] else f"{name} = {default:d}"


def _silent(*, attempt: int) -> str:
    """SQL for whether all other columns of a task that is at this attempt say nothing."""
    nulls = [name for name in _SILENT if DEFAULTS.get(name) is None]
    tests = [_is_default(name) for name in _SILENT if name not in nulls]
    return " AND ".join([f"coalesce({', '.join(nulls)}) IS NULL", f"attempt = {attempt}", *tests])


JUST_CLAIMED = ", ".join((*_SAID, *_SAID_LISTS, _silent(attempt=1), "spec"))
SET_ASIDE = ", ".join((*_SAID, *_SAID_LISTS, _silent(attempt=0), "spec"))


def claimed_task(tx: Transaction, row: list[JsonValue], *, agent: str) -> Task:
    """The whole task of a row that this transaction claimed, and returned as `JUST_CLAIMED`."""
    silent, spec = row[-2:]
    if not silent:
        return _read_whole(tx, row[0], just_begun=1)
    fields = _said(row, spec)
    fields["state"] = "CLAIMED"
    fields["claim"] = {"agent": agent, "claimed_at": tx.stamp, "heartbeat_at": tx.stamp}
    return built_task(fields)


def task_aside(tx: Transaction, row: Sequence[JsonValue]) -> Task:
    """The whole task of a row in escrow, selected or returned as `SET_ASIDE`."""
    silent, spec = row[-2:]
    if not silent:
        return _read_whole(tx, row[0], just_begun=0)
    fields = _said(row, spec)
    fields["state"] = "ESCROW"
    return built_task(fields)


def told_aside(tx: Transaction, row: Sequence[JsonValue]) -> str:
    """The same task as JSON, without what it does not say: its spec is most of that already."""
    silent, spec = row[-2], str(row[-1])
    if not silent or may_hold_floats(spec):
        return encode(to_wire_tersely(task_aside(tx, row)))
    said = dict(compress(zip(_SAID, row, strict=False), map(ne, row, _SAID_DEFAULTS)))
    said["state"], said["epoch"] = "ESCROW", row[_SAID.index("epoch")]
    words = [*row[len(_SAID) : -2]]
    if words != _NO_WORDS:
        said.update(zip(_SAID_LISTS, map(json.loads, map(str, words)), strict=True))
    return f"{spec[:-1]},{encode(said)[1:]}"


def _said(row: Sequence[JsonValue], spec: JsonValue) -> JsonObject:
    fields = values_of(str(spec))
    fields.update(zip(_SAID, row, strict=False))
    words = [*row[len(_SAID) : -2]]
    if words != _NO_WORDS:
        fields.update(zip(_SAID_LISTS, map(json.loads, map(str, words)), strict=True))
    return fields


def _read_whole(tx: Transaction, seq: JsonValue, *, just_begun: int) -> Task:
    row = tx.db.execute(f"SELECT attempt, uid, {WHOLE} FROM task WHERE seq = ?", (seq,)).fetchone()
    attempt, uid, *whole = row
    return task_of(whole, attempts_of(tx.db, uid) if attempt > just_begun else None)


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


# A copy that says nothing besides, as most do: each value that is bound is felt.
_SILENT_COPY = (
    "uid", "epoch", "subject", "priority", "skills", "needs", "need_set", "domain", "tags", "key",
    "source", "expected_s", "max_s", "max_attempts", "models", "turn", "sha256", "spec", "hops",
    "stolen_from", "xfer",
)  # fmt: skip
INSERT_SILENT = (
    f"INSERT INTO task (state, shared, {', '.join(_SILENT_COPY)})"
    f" SELECT 'HELD', 1, {', '.join('?' * len(_SILENT_COPY))} FROM node WHERE node.state = 'active'"
)
_UNSAID = (
    "priority_100", "not_before", "deadline", "fallback_models", "boost_per_minute", "heat",
    "pinned", "attempts", "failures", "interruptions", "started_at", "progress", "failure_reason",
    "cost_usd", "tokens", "validate",
)  # fmt: skip
_unsaid = itemgetter(*_UNSAID)
_NOTHING = _unsaid(DEFAULTS)


class Life(NamedTuple):
    """What a copy has of its own on the node that it comes to."""

    epoch: int
    hops: int
    source: str
    stolen_from: str | None


def silent_row(
    tx: Transaction, task: Task, spec: str, life: Life, *, xfer: str, sha256: str
) -> tuple[object, ...] | None:
    """The values of `INSERT_SILENT`; None for a task that says more, and needs every column."""
    if _unsaid(task.__dict__) != _NOTHING:
        return None
    turn = first_turn(tx, task, since=task.created_at).turn
    return (
        task.uid, life.epoch, task.subject, task.priority, words_to_json(task.skills),
        words_to_json(task.needs), tx.need_set(task.needs), task.domain, words_to_json(task.tags),
        task.key, life.source, task.expected_s, task.max_s, task.max_attempts,
        words_to_json(task.models), turn, sha256, spec, life.hops, life.stolen_from, xfer,
    )  # fmt: skip


def new_row(
    tx: Transaction,
    task: Task,
    spec: str,
    *,
    state: State,
    wake_at: str | None,
    weight: float = 0.0,
    since: str | None = None,
    sha256: str | None = None,
) -> tuple[object, ...]:
    """The values of `INSERT_NEW`; `spec` is the task's own, made once by the caller.

    `weight` is what its graph gives it, in points; `since` is when it began to wait elsewhere;
    `sha256` is the hash of the spec, for whoever has reckoned it already.
    """
    needs = needs_of(task.needs, task.validate) if task.validate else task.needs
    return (
        task.uid, task.epoch, state.value, task.subject, task.priority, task.priority_100,
        words_to_json(task.skills), words_to_json(needs), tx.need_set(needs),
        task.domain, words_to_json(task.tags), task.key, task.source,
        int(task.pinned), task.not_before, task.deadline, task.expected_s, task.max_s,
        task.max_attempts, words_to_json(task.models), words_to_json(task.fallback_models),
        task.boost_per_minute, task.heat, wake_at, tx.stamp if state is State.READY else None,
        *first_turn(tx, task, weight=weight, since=since), sha256 or hash_of(spec), spec,
    )  # fmt: skip


def travelled_row(
    tx: Transaction,
    task: Task,
    spec: str,
    *,
    state: State,
    xfer: str | None,
    weight: float = 0.0,
    sha256: str | None = None,
) -> tuple[object, ...]:
    """The values of `INSERT_TRAVELLED`: a task that lived elsewhere before."""
    numbers = [one.get("n") for one in task.attempts if isinstance(one, dict)]
    highest = max((n for n in numbers if isinstance(n, int)), default=0)
    return (
        *new_row(tx, task, spec, state=state, wake_at=None, weight=weight, since=task.created_at,
                 sha256=sha256),
        task.hops, 1, task.stolen_from, xfer, highest, task.failures,
        task.interruptions, task.started_at, task.progress, task.failure_reason, task.cost_usd,
        None if task.tokens is None else to_json(task.tokens),
    )  # fmt: skip


def with_history(tx: Transaction, task: Task) -> Task:
    """The same task with its attempts."""
    attempts = attempts_of(tx.db, task.uid)
    return built_task({**to_wire(task), "attempts": attempts}) if attempts else task


def find_task(tx: Transaction, uid: str) -> Task | None:
    """The whole task as it stands here, with its attempts; None when no row is here."""
    row = tx.db.execute(f"SELECT {WHOLE} FROM task WHERE uid = ?", (uid,)).fetchone()
    return None if row is None else with_history(tx, task_of(row))
