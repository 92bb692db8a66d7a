"""Reads a task as it may be born: with no state, no attempts and no epoch of its own."""

from __future__ import annotations

from .errors import BadInput
from .readiness import edges_of
from .references import references_of
from .strict import JsonObject, JsonValue
from .task import DEFAULTS, LIFE, Task, task_from
from .ulid import fresh_ulid
from .validation import check_validate

# Whoever makes a task says where it comes from; the rest of its life is the node's to write.
UNBORN = LIFE - {"source"}


def new_task(document: JsonValue, *, mint: str | None = None) -> Task:
    """The checked task; without a uid of its own it is given `mint`, or a fresh one."""
    if isinstance(document, dict):
        if not UNBORN.isdisjoint(document):
            document = _without_life(document)
        if "uid" in document:
            return _readable(task_from(document))
    return _readable(task_from(document, mint=mint or fresh_ulid()))


def _without_life(document: JsonObject) -> JsonObject:
    """What the node alone writes may be said where it says nothing, and is left out."""
    for name in sorted(UNBORN & document.keys()):
        if document[name] not in (None, DEFAULTS[name]):
            raise BadInput("is written by the node alone, not by whoever adds the task", name)
    return {name: value for name, value in document.items() if name not in UNBORN}


def _readable(task: Task) -> Task:
    if task.depends_on:
        edges_of(task.depends_on, of=task.uid)
    if task.context_refs:
        references_of(task.context_refs)
    if task.validate:
        check_validate(task.validate)
    return task
