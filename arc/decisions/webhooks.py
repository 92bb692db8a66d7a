"""Decides what a signed message from elsewhere asks for: whether it is genuine, and which task."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256

from agent_node.strict import JsonObject, JsonValue

WINDOW_S = 300  # how far the time in a message may be from ours
STAMP_DIGITS_MAX = 12
KEY_MAX = 120  # characters of a key as it is sent; a longer one is hashed
SUBJECT_MAX = 500
SIGNED = "sha256="
Fits = Callable[[str, JsonValue], bool]  # a field of a task, and what it may hold or not
EXAMPLES: tuple[JsonValue, ...] = ("it works", 5, ["an-example"], True, "2030-01-01T00:00Z", {})
# `{{` and `}}` are braces; `{a.b.0}` is a field of the payload.
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FIELD = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)


class NoSuchField(ValueError):
    """A template wants a field that the payload does not have: unknown is never empty."""


def why_not_genuine(
    secret: bytes, *, stamp: str, proof: str, body: bytes, now_s: float
) -> str | None:
    """Why these headers do not belong to this body and this moment; None: they do.

    `proof` is `sha256=` and the HMAC-SHA256, in hex, of the stamp (seconds since 1970), a dot and
    the body's own bytes. The proof is compared in constant time, and before the time is.
    """
    digits = stamp.isascii() and stamp.isdigit() and len(stamp) <= STAMP_DIGITS_MAX
    wanted = SIGNED + proof_of(secret, stamp, body)
    if not digits or not hmac.compare_digest(wanted.encode(), proof.encode("utf-8", "replace")):
        return "its signature is not that of this body and this secret"
    off = int(stamp) - now_s
    if abs(off) > WINDOW_S:
        way = "ahead of" if off > 0 else "behind"
        return f"its time is {abs(off):.0f} s {way} ours; {WINDOW_S} s are believed"
    return None


def proof_of(secret: bytes, stamp: str, body: bytes) -> str:
    """The signature in hex."""
    signed = stamp.encode("utf-8", "replace") + b"." + body
    return hmac.new(secret, signed, sha256).hexdigest()


def seal_of(stamp: str, body: bytes) -> str:
    """A name for exactly this message: the same one again is a replay."""
    return sha256(stamp.encode("utf-8", "replace") + b"." + body).hexdigest()


def task_of(template: JsonObject, payload: JsonObject) -> JsonObject:
    """The task that a payload asks for; `NoSuchField` where the template wants what it lacks.

    A subject is one line, whatever the payload says: its white space is folded, its end cut.
    """
    made = {name: filled(value, payload) for name, value in template.items()}
    subject = made.get("subject")
    if isinstance(subject, str):
        made["subject"] = " ".join(subject.split())[:SUBJECT_MAX]
    return made


def filled(value: JsonValue, payload: JsonObject) -> JsonValue:
    """The value with each field of the payload in its place; a text that is one field keeps its
    kind, so that `"{labels}"` may be a list.
    """
    if isinstance(value, dict):
        return {name: filled(one, payload) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, payload) for one in value]
    if not isinstance(value, str):
        return value
    parts = [*_parts(value)]
    if len(parts) == 1 and parts[0][1]:
        return field_of(payload, parts[0][0])
    return "".join(text_of(field_of(payload, part)) if is_field else part
                   for part, is_field in parts)  # fmt: skip


def text_of(value: JsonValue) -> str:
    """A value of the payload inside a text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def field_of(payload: JsonObject, path: str) -> JsonValue:
    """The field at this path; of a list, by number. Null is none."""
    found: JsonValue = payload
    for name in path.split("."):
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            found = None
        if found is None:
            raise NoSuchField(f"the payload has no {path}")
    return found


def key_of(template: str, payload: JsonObject, *, delivery: str, seal: str) -> str:
    """Under which key the task is added, so that the same occasion is added once: what the template
    makes, else the sender's own id of the delivery, else the message itself. What a template makes
    of empty fields is `NoSuchField`: all occasions would be the same one.
    """
    said = text_of(filled(template, payload)) if template else delivery or seal
    if not said.strip():
        raise NoSuchField("its key would be empty")
    plain = said.isprintable() and 0 < len(said) <= KEY_MAX
    return said if plain else sha256(said.encode("utf-8", "replace")).hexdigest()


def example_for(template: JsonObject, key: str, fits: Fits) -> JsonObject:
    """A message that has all that the template and the key want. `fits` says whether a field of a
    task may hold a value; a text that is one field alone takes the first of EXAMPLES that fits.
    """
    wanted: dict[str, JsonValue] = dict.fromkeys(_fields_in([key, *template.values()]), EXAMPLES[0])
    for name, value in template.items():
        parts = [*_parts(value)] if isinstance(value, str) else []
        if len(parts) == 1 and parts[0][1]:
            wanted[parts[0][0]] = next((one for one in EXAMPLES if fits(name, one)), EXAMPLES[0])
    message: JsonObject = {}
    for path in sorted(wanted, key=lambda one: -one.count(".")):  # the deepest first
        _put(message, path.split("."), wanted[path])
    return message


def _fields_in(value: JsonValue) -> list[str]:
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return [name for one in inner for name in _fields_in(one)]
    return [part for part, is_field in _parts(value) if is_field] if isinstance(value, str) else []


def _put(message: JsonObject, path: list[str], value: JsonValue) -> None:
    """An entry of a list is put under its number, which a template reads as well."""
    for name in path[:-1]:
        inner = message.setdefault(name, {})
        assert isinstance(inner, dict), "a whole is put after its parts"
        message = inner
    message.setdefault(path[-1], value)


def fault_of(template: str) -> str | None:
    """What is wrong with a template; None: nothing."""
    for part in _PART.finditer(template):
        name = part[1]
        if name is None and part[0] in ("{", "}"):
            return f"a single {part[0]} means nothing; write {part[0] * 2} for the character"
        if name is not None and not _FIELD.fullmatch(name):
            return f"{{{name}}} names no field; one looks like {{issue.title}}"
    return None


def has_fields(value: JsonValue) -> bool:
    """Whether anything in it comes from the payload."""
    if isinstance(value, dict):
        return any(map(has_fields, value.values()))
    if isinstance(value, list):
        return any(map(has_fields, value))
    return isinstance(value, str) and any(is_field for _, is_field in _parts(value))


def _parts(template: str) -> Iterator[tuple[str, bool]]:
    """The template's pieces, each with whether it names a field."""
    last = 0
    for part in _PART.finditer(template):
        if part.start() > last:
            yield template[last : part.start()], False
        name = part[1]
        yield (name, True) if name is not None else (part[0][0], False)
        last = part.end()
    if last < len(template):
        yield template[last:], False
