"""Defines a task, its states and the only changes between them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import compress
from operator import ne

from .errors import BadInput, missing
from .fields import (
    EXTRA_MAX,
    SUBJECT_MAX,
    TEXT_MAX,
    Check,
    anything,
    body,
    boolean,
    check_size,
    edge_list,
    history,
    integer,
    listing,
    mapping,
    moment,
    money,
    node_name,
    nullable,
    number,
    one_of,
    ordered_words,
    retry_policy,
    text,
    ulid,
    words,
)
from .strict import JsonObject, JsonValue, kind_of


class State(StrEnum):
    """Where a task is in its life; the words that stand on the wire and in the database."""

    CREATED = "CREATED"
    PENDING = "PENDING"
    READY = "READY"
    CLAIMED = "CLAIMED"
    RUNNING = "RUNNING"
    VALIDATING = "VALIDATING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    RETRYING = "RETRYING"
    DEAD_LETTERED = "DEAD_LETTERED"
    CANCELLED = "CANCELLED"
    ESCROW = "ESCROW"
    HELD = "HELD"
    MOVED = "MOVED"
    PARKED = "PARKED"


def _table(text_of_table: str) -> dict[State, frozenset[State]]:
    rows = (line.partition("->") for line in text_of_table.strip().splitlines())
    return {State(old.strip()): frozenset(map(State, new.split())) for old, _, new in rows}


# The only changes of state there are. The store writes each as `… WHERE state IN (the left
# sides of this table)`, so that a change which is not here changes no row.
CHANGES = _table("""
    CREATED       -> PENDING READY CANCELLED
    PENDING       -> READY CANCELLED PARKED
    READY         -> PENDING CLAIMED ESCROW CANCELLED PARKED
    CLAIMED       -> RUNNING COMPLETED FAILED READY CANCELLED PARKED
    RUNNING       -> VALIDATING COMPLETED FAILED READY CANCELLED PARKED
    VALIDATING    -> COMPLETED FAILED READY CANCELLED PARKED
    COMPLETED     ->
    FAILED        -> RETRYING DEAD_LETTERED READY
    RETRYING      -> READY CANCELLED PARKED
    DEAD_LETTERED -> READY COMPLETED CANCELLED
    CANCELLED     -> READY
    ESCROW        -> READY MOVED PARKED
    HELD          -> READY PARKED
    MOVED         -> READY
    PARKED        -> READY COMPLETED FAILED CANCELLED
""")
UNDERWAY = (State.CLAIMED, State.RUNNING, State.VALIDATING)
ENDED = (State.COMPLETED, State.FAILED, State.DEAD_LETTERED, State.CANCELLED)


def may_become(new: State) -> tuple[State, ...]:
    """The states from which a task may become `new`, straight from the table."""
    return tuple(old for old, allowed in CHANGES.items() if new in allowed)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A piece of work as it stands at one moment, everywhere the same object.

    The first group never changes on any node and is what the hash covers; `set` may change the
    second; the third is the task's life, written by the node that has it.
    """

    uid: str
    subject: str
    body: str = ""
    type: str = "task"
    needs: list[str] = field(default_factory=list)
    key: str | None = None
    ref: str | None = None
    origin: str = "human:unknown"
    created_at: str | None = None
    parent: str | None = None
    dag: str | None = None
    depends_on: list[JsonValue] = field(default_factory=list)
    context_refs: list[JsonValue] = field(default_factory=list)
    max_cost_usd: str | None = None
    retry: JsonObject = field(default_factory=dict)
    validate: JsonObject = field(default_factory=dict)
    output_type: str | None = None
    on_interrupt: str = "retry"
    extra: JsonObject = field(default_factory=dict)

    priority: int = 5
    priority_100: int | None = None
    skills: list[str] = field(default_factory=list)
    domain: str | None = None
    not_before: str | None = None
    deadline: str | None = None
    expected_s: float | None = None
    max_s: float | None = None
    max_attempts: int = 3
    models: list[str] = field(default_factory=list)
    fallback_models: list[str] = field(default_factory=list)
    boost_per_minute: float | None = None
    heat: float | None = None
    pinned: bool = False
    tags: list[str] = field(default_factory=list)

    epoch: int = 1
    seq: int | None = None
    state: str = State.READY
    source: str = "human:unknown"
    blocked_by: list[JsonValue] = field(default_factory=list)
    attempts: list[JsonValue] = field(default_factory=list)
    failures: int = 0
    interruptions: int = 0
    retry_at: str | None = None
    hops: int = 0
    stolen_from: str | None = None
    claim: JsonObject | None = None
    ready_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    progress: str | None = None
    output: JsonValue = None
    artifacts: list[JsonValue] = field(default_factory=list)
    failure_reason: str | None = None
    cost_usd: str | None = None
    tokens: JsonObject | None = None


_names = nullable(text(200))
_count = integer(0, 2**53)
FIELDS: dict[str, Check] = {
    "uid": ulid,
    "subject": text(SUBJECT_MAX),
    "body": body,
    "type": text(64),
    "needs": words,
    "key": nullable(text(200)),
    "ref": nullable(text(500)),
    "origin": text(200),
    "created_at": nullable(moment),
    "parent": nullable(ulid),
    "dag": nullable(text(64)),
    "depends_on": edge_list,
    "context_refs": listing,
    "max_cost_usd": nullable(money),
    "retry": retry_policy,
    "validate": mapping,
    "output_type": nullable(text(64)),
    "on_interrupt": one_of("retry", "park"),
    "extra": mapping,
    "priority": integer(1, 10),
    "priority_100": nullable(integer(0, 100)),
    "skills": words,
    "domain": nullable(text(64)),
    "not_before": nullable(moment),
    "deadline": nullable(moment),
    "expected_s": nullable(number(0, 10**9)),
    "max_s": nullable(number(0.001, 10**9)),
    "max_attempts": integer(1, 100),
    "models": ordered_words,
    "fallback_models": ordered_words,
    "boost_per_minute": nullable(number(0, 100)),
    "heat": nullable(number(-100, 100)),
    "pinned": boolean,
    "tags": words,
    "epoch": integer(1, 2**62),
    "seq": nullable(_count),
    "state": one_of(*State),
    "source": text(200),
    "blocked_by": listing,
    "attempts": history,
    "failures": _count,
    "interruptions": _count,
    "retry_at": nullable(moment),
    "hops": integer(0, 10**6),
    "stolen_from": nullable(node_name),
    "claim": nullable(mapping),
    "ready_at": nullable(moment),
    "started_at": nullable(moment),
    "completed_at": nullable(moment),
    "progress": nullable(text(TEXT_MAX, one_line=False)),
    "output": nullable(anything),
    "artifacts": listing,
    "failure_reason": nullable(text(TEXT_MAX, one_line=False)),
    "cost_usd": nullable(money),
    "tokens": nullable(mapping),
}
_ORDER = tuple(entry.name for entry in fields(Task))
IMMUTABLE = frozenset(_ORDER[: _ORDER.index("extra") + 1])
SETTABLE = frozenset(_ORDER[_ORDER.index("priority") : _ORDER.index("tags") + 1])
LIFE = frozenset(_ORDER) - IMMUTABLE - SETTABLE
DEFAULTS = Task(uid="0" * 26, subject="-").__dict__
_MUST_SAY = ("uid", "subject")  # which have no default, only a place
_SILENT = {name: value for name, value in DEFAULTS.items() if name not in _MUST_SAY}
_UNKNOWN = object()
_SILENCE = tuple(_SILENT.get(name, _UNKNOWN) for name in _ORDER)


def task_from(document: JsonValue, *, mint: str | None = None) -> Task:
    """A checked task; unknown fields go to `extra`. `mint` is its uid where it brings none."""
    if not isinstance(document, dict):
        raise BadInput(f"a {kind_of(document)} where a task belongs", "task")
    known: dict[str, JsonValue] = {}
    unknown: JsonObject = {}
    for name, value in document.items():
        # Most fields of a task that travels say nothing; of those nothing has to be checked.
        default = _SILENT.get(name, _UNKNOWN)
        if value == default and type(value) is type(default):
            continue
        check = FIELDS.get(name)
        if check is None:
            unknown[name] = value
        else:
            known[name] = check(value, name)
    if mint is not None:
        known.setdefault("uid", mint)
    for needed in _MUST_SAY:
        if not known.get(needed):
            raise missing(needed, unknown)
    if unknown:
        known["extra"] = _with_unknown(known.get("extra"), unknown)
    if "priority_100" in known:
        _settle_priority(document, known)
    return built_task(known)


def _with_unknown(extra: JsonValue, unknown: JsonObject) -> JsonObject:
    merged = {**unknown, **(extra if isinstance(extra, dict) else {})}
    check_size(merged, "extra", EXTRA_MAX)
    return merged


def _settle_priority(document: JsonObject, known: dict[str, JsonValue]) -> None:
    """`priority_100` is the finer word; `priority` is then only its view."""
    fine = known.get("priority_100")
    if isinstance(fine, int):
        view = min(fine // 10 + 1, 10)
        if document.get("priority", view) != view:
            said = document["priority"]
            raise BadInput(f"{said}, yet priority_100 {fine} means P{view}", "priority")
        known["priority"] = view


def built_task(known: dict[str, JsonValue]) -> Task:
    """A task of checked fields; what is absent is at its default."""
    # A frozen dataclass writes its 60 fields one by one; a thousand tasks in one request feel it.
    task = object.__new__(Task)
    object.__setattr__(task, "__dict__", DEFAULTS | known)
    return task


def with_fields(task: Task, changed: JsonObject) -> Task:
    """The same task but for these checked fields."""
    other = object.__new__(Task)
    object.__setattr__(other, "__dict__", task.__dict__ | changed)
    return other


def to_wire(task: Task) -> JsonObject:
    """The task as it stands on the wire: every field, by its name in the contract."""
    return dict(task.__dict__)


def to_wire_tersely(task: Task) -> JsonObject:
    """What `task_from` reads as the same task; its epoch is said always, or no copy is taken."""
    values = task.__dict__  # in the order of fields
    said = dict(compress(values.items(), map(ne, values.values(), _SILENCE)))
    said["epoch"] = task.epoch
    return said
