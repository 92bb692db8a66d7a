"""Turns what no node may change in a task into one text, and hashes it."""

from __future__ import annotations

import hashlib
import json
from itertools import compress
from operator import itemgetter, ne

from .compact import writer
from .strict import JsonObject, JsonValue
from .task import DEFAULTS, IMMUTABLE, Task

# Fields whose inside is free and may hold floats.
LOOSE_FIELDS = ("extra", "retry", "validate", "depends_on", "context_refs")
_encode = writer(sorted_keys=True)
_LOOSE = frozenset(LOOSE_FIELDS)
_LOOSE_MARKS = tuple(f'"{name}":' for name in LOOSE_FIELDS)
_NAMES = tuple(sorted(IMMUTABLE))
_values = itemgetter(*_NAMES)
_DEFAULTS = _values(DEFAULTS)
_decode = json.JSONDecoder().raw_decode


def spec_of(task: Task) -> str:
    """What no node may change, as sorted compact JSON without floats: the text that is hashed.

    A field at its default is left out, so that a field added later changes no old hash.
    """
    values = _values(task.__dict__)
    kept = dict(compress(zip(_NAMES, values, strict=True), map(ne, values, _DEFAULTS)))
    kept["uid"], kept["subject"] = task.uid, task.subject
    if not _LOOSE.isdisjoint(kept):
        for name in _LOOSE & kept.keys():
            kept[name] = _without_floats(kept[name])
    return _encode(kept)


def hash_of(spec: str) -> str:
    """sha256 over that text, in hex: the one hash that is stored, moved and checked."""
    return hashlib.sha256(spec.encode()).hexdigest()


def content_of(spec: str) -> JsonObject:
    """The part of a spec that two requests under one key must share to be the same request."""
    content: JsonObject = json.loads(spec)
    for name in ("uid", "created_at", "origin"):
        content.pop(name, None)
    return content


def values_of(spec: str) -> JsonObject:
    """The immutable fields that a spec holds; absent ones are at their default."""
    values: JsonObject
    values, end = _decode(spec)
    if end != len(spec):
        raise ValueError(f"a spec of {len(spec)} characters ends at {end}")
    for name in LOOSE_FIELDS:
        if name in values:
            values[name] = _with_floats(values[name])
    return values


def may_hold_floats(spec: str) -> bool:
    """Whether what it says may be written in another way than its task is; False: surely not."""
    return any(mark in spec for mark in _LOOSE_MARKS)


def _without_floats(value: JsonValue) -> JsonValue:
    """Floats as text, in a wrapper that nothing else can be mistaken for."""
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, list):
        return [_without_floats(item) for item in value]
    if isinstance(value, dict):
        inner: JsonObject = {name: _without_floats(item) for name, item in value.items()}
        return {"object": inner} if inner.keys() in ({"float"}, {"object"}) else inner
    return value


def _with_floats(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"float"}:
        return float(str(value["float"]))
    if value.keys() == {"object"} and isinstance(inner := value["object"], dict):
        value = inner
    return {name: _with_floats(item) for name, item in value.items()}
