"""Finds what makes a JSON schema none, as far as that can be seen without its package. Pure.

Whoever adds a task hears of a slip at once, and not when its program has run and was paid. What is
not found here is found by the package. It is stricter in two things: a word of a later draft has
its meaning in every draft (draft-04 knows no `contains`, `if`, `propertyNames`, `$defs`,
`prefixItems`, and lets anything stand there), and a pattern is one that Python, which judges by it,
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .patterns import fault_of_pattern
from .strict import JsonObject, JsonValue, kind_of

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
Fault = tuple[str, str]  # where it stands, from the schema on, and what is wrong there
_OTHER_DRAFTS = ("draft-01", "draft-02", "draft-03")


def fault_of(schema: JsonObject) -> Fault | None:
    """The first thing that no validator could judge by; None: nothing was found."""
    meant = schema.get("$schema")
    if isinstance(meant, str) and ("json-schema.org" not in meant or _is_old(meant)):
        return None  # of other words than ours
    return next(_faults(schema, ""), None)


def _is_old(meant: str) -> bool:
    return any(draft in meant for draft in _OTHER_DRAFTS)


def _faults(schema: JsonValue, where: str) -> Iterator[Fault]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield where, f"a {kind_of(schema)} where a schema belongs"
        return
    for word, value in schema.items():
        there = f"{where}.{word[:80]}"
        said = _CHECKS[word](value) if word in _CHECKS else None
        if said is not None:
            yield there, said
        elif word in _NAMED and isinstance(value, dict):
            for name, inner in value.items():
                yield from _faults(inner, f"{there}.{name[:80]}")
        elif word in _ONE or word in _SOME:
            some = value if isinstance(value, list) else [value]
            for place, inner in enumerate(some):
                yield from _faults(inner, f"{there}[{place}]" if some is value else there)


def _type(value: JsonValue) -> str | None:
    some = value if isinstance(value, list) else [value]
    if some and all(isinstance(one, str) and one in TYPES for one in some):
        return None
    return f"one of {', '.join(TYPES)} belongs here, or a list of them"


def _texts(value: JsonValue) -> str | None:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return None
    return "a list of names belongs here"


def _list(value: JsonValue) -> str | None:
    return None if isinstance(value, list) else f"a {kind_of(value)} where a list belongs"


def _schemas(value: JsonValue) -> str | None:
    return None if isinstance(value, list) and value else "a list of schemas belongs here"


def _object(value: JsonValue) -> str | None:
    return None if isinstance(value, dict) else f"a {kind_of(value)} where an object belongs"


def _number(value: JsonValue) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None
    return f"a {kind_of(value)} where a number belongs"


def _count(value: JsonValue) -> str | None:
    if _number(value) is None and isinstance(value, int | float) and value >= 0:
        return None
    return "a number from 0 on belongs here"


def _pattern(value: JsonValue) -> str | None:
    if not isinstance(value, str):
        return f"a {kind_of(value)} where a pattern belongs"
    fault = fault_of_pattern(value)
    return None if fault is None else f"is no regular expression: {fault}"


_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_ONE = (
    "items", "additionalItems", "additionalProperties", "unevaluatedItems",
    "unevaluatedProperties", "contains", "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_SOME = ("allOf", "anyOf", "oneOf", "prefixItems")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_CHECKS: dict[str, Callable[[JsonValue], str | None]] = {
    "type": _type, "required": _texts, "enum": _list, "pattern": _pattern,
    "minimum": _number, "maximum": _number,
    **dict.fromkeys(_NAMED, _object), **dict.fromkeys(_SOME, _schemas),
    **dict.fromkeys(_COUNTS, _count),
}  # fmt: skip
