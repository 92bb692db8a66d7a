"""Says what each field of a task may hold, and refuses anything else by the field's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache
from typing import cast

from .clock import iso, parse_iso
from .errors import BadInput
from .strict import DEPTH_MAX, JsonObject, JsonValue, check_text, kind_of
from .ulid import is_ulid

SUBJECT_MAX = 500
BODY_MAX = 256 * 1024
EXTRA_MAX = 64 * 1024
TAGS_MAX = 64
TAG_MAX = 64
TEXT_MAX = 4096
NESTING_MAX = DEPTH_MAX // 2
ATTEMPT_MAX = 900_000_000  # nine digits name a folder
SETS_MAX = 512  # sets of tags that are kept, of some 10 KB at most

Check = Callable[[JsonValue, str], JsonValue]
is_name = re.compile(r"[a-z][a-z0-9-]{0,31}").fullmatch
_is_stamp = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
).fullmatch
_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
is_money = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?").fullmatch


def _wrong(value: JsonValue, name: str, wanted: str) -> BadInput:
    return BadInput(f"a {kind_of(value)} where {wanted} belongs", name)


@cache  # the bounds stand in the code: there are few, and each check is made once
def text(longest: int, *, one_line: bool = True) -> Check:
    """Text of at most so many characters; a bound in bytes where it is stored whole."""

    def check(value: JsonValue, name: str) -> JsonValue:
        if type(value) is not str:
            raise _wrong(value, name, "a string")
        if len(value) > longest:
            raise BadInput(f"{len(value)} characters; at most {longest} are taken", name)
        if "\0" in value:
            raise BadInput("holds a NUL character", name)
        if one_line and not value.isprintable() and _BREAKS.search(value):
            raise BadInput("holds a line break; it has to be one line", name)
        if not value.isascii():
            check_text(value, name)
        return value

    return check


def body(value: JsonValue, name: str) -> JsonValue:
    """The work itself: any text, up to 256 KiB of UTF-8."""
    if type(value) is not str:
        raise _wrong(value, name, "a string")
    check_text(value, name)
    size = len(value) if value.isascii() else len(value.encode())
    if size > BODY_MAX:
        raise BadInput(f"{size} bytes of UTF-8; at most {BODY_MAX} are taken", name)
    return value


@cache
def integer(lowest: int, highest: int) -> Check:
    """A whole number in a range; true and 5.0 are not numbers here."""

    def check(value: JsonValue, name: str) -> JsonValue:
        if type(value) is not int:
            raise _wrong(value, name, "a whole number")
        if not lowest <= value <= highest:
            raise BadInput(f"{value}; it goes from {lowest} to {highest}", name)
        return value

    return check


@cache
def number(lowest: float, highest: float) -> Check:
    """A number in a range, whole or not."""

    def check(value: JsonValue, name: str) -> JsonValue:
        if type(value) is not int and type(value) is not float:
            raise _wrong(value, name, "a number")
        if not lowest <= value <= highest:
            raise BadInput(f"{value}; it goes from {lowest:g} to {highest:g}", name)
        return value

    return check


def boolean(value: JsonValue, name: str) -> JsonValue:
    """Either true or false, and no number that might mean it."""
    if type(value) is not bool:
        raise _wrong(value, name, "true or false")
    return value


def moment(value: JsonValue, name: str) -> JsonValue:
    """A zoned ISO 8601 time, kept as UTC text of one width."""
    if type(value) is not str:
        raise _wrong(value, name, "a time as text")
    if is_stamp(value):
        return value
    try:
        return iso(parse_iso(value))
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{error}; write 2026-03-10T03:45:00Z", name) from error


def is_stamp(text: str) -> bool:
    """Whether it is a time already as we write it: UTC, to the millisecond, of one width."""
    if not _is_stamp(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def money(value: JsonValue, name: str) -> JsonValue:
    """An amount as a decimal string, never a float."""
    if type(value) is not str or not is_money(value):
        raise BadInput('an amount is a decimal string such as "0.12", never below 0', name)
    return value


def ulid(value: JsonValue, name: str) -> JsonValue:
    """A ULID: 26 letters and digits of Crockford's alphabet."""
    if type(value) is not str or not is_ulid(value):
        raise BadInput("not a ULID (26 characters of 0-9 A-Z without I L O U)", name)
    return value


def node_name(value: JsonValue, name: str) -> JsonValue:
    """The name of a node, an agent or a fleet."""
    if type(value) is not str or not is_name(value):
        raise BadInput("names are a-z, 0-9 and -, at most 32, and start with a letter", name)
    return value


@cache
def one_of(*words: str) -> Check:
    """One of a few words."""

    def check(value: JsonValue, name: str) -> JsonValue:
        if value not in words:
            raise BadInput(f"one of {', '.join(words)} belongs here", name)
        return value

    return check


def words(value: JsonValue, name: str) -> JsonValue:
    """A set of tags: at most 64 of 64 characters; kept sorted, each once."""
    if type(value) is not list:
        raise _wrong(value, name, "a list of words")
    try:
        return [*tag_set(tuple(value))]
    except BadInput as error:
        raise BadInput(str(error), name) from None
    except TypeError:
        raise BadInput(_NO_TAG, name) from None


_NO_TAG = f"each entry is 1 to {TAG_MAX} characters of text"


@lru_cache(SETS_MAX)  # a fleet says the same few sets again and again; what is refused is not kept
def tag_set(value: tuple[JsonValue, ...]) -> tuple[str, ...]:
    """The same, of a tuple; `TypeError` where an entry is an object or a list."""
    if len(value) > TAGS_MAX:
        raise BadInput(f"{len(value)} entries; at most {TAGS_MAX} are taken")
    if not value:
        return ()
    listed = cast("tuple[str, ...]", value)
    if {*map(type, value)} != {str} or max(map(len, listed)) > TAG_MAX or "" in listed:
        raise BadInput(_NO_TAG)
    if not "".join(listed).isprintable():
        raise BadInput("an entry holds a character that cannot be printed")
    return (*sorted(set(listed)),)


def ordered_words(value: JsonValue, name: str) -> JsonValue:
    """The same bounds where the order means something: first choice first."""
    words(value, name)
    return value


def mapping(value: JsonValue, name: str) -> JsonValue:
    """An object whose inside is somebody else's business; only its size is ours."""
    if type(value) is not dict:
        raise _wrong(value, name, "an object")
    if value:
        check_size(value, name)
    return value


def anything(value: JsonValue, name: str) -> JsonValue:
    """Any JSON value of bounded size."""
    check_size(value, name)
    return value


def listing(value: JsonValue, name: str, largest: int = EXTRA_MAX) -> JsonValue:
    """A list of objects or texts of bounded size."""
    if type(value) is not list:
        raise _wrong(value, name, "a list")
    if value:
        check_size(value, name, largest)
    return value


def edge_list(value: JsonValue, name: str) -> JsonValue:
    """The same where a task may wait for thousands of others."""
    return listing(value, name, 16 * EXTRA_MAX)


def check_size(value: JsonValue, name: str, largest: int = EXTRA_MAX) -> None:
    """Refuse a nested value that is larger, or deeper, than what can be carried everywhere."""
    import json

    check_nesting(value, name)
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    if size > largest:
        raise BadInput(f"{size} bytes of JSON; at most {largest} are taken", name)


def check_nesting(value: JsonValue, name: str) -> None:
    """Half of what a line may have: the task travels inside other objects."""
    level: list[JsonValue] = [value]
    for _ in range(NESTING_MAX):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else _items(item))
        ]
        if not level:
            return
    raise BadInput(f"nested deeper than {NESTING_MAX}", name)


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def history(value: JsonValue, name: str) -> JsonValue:
    """The attempts that a task brings along: a hundred of them, each with its message."""
    if type(value) is not list:
        raise _wrong(value, name, "a list")
    check_size(value, name, 16 * EXTRA_MAX)
    for one in value:
        number = one.get("n") if isinstance(one, dict) else None
        if type(number) is not int or not 1 <= number <= ATTEMPT_MAX:
            raise BadInput(f"each attempt has a number n from 1 to {ATTEMPT_MAX}", name)
    return value


def nullable(check: Check) -> Check:
    """The same check, where null means that nothing was said."""
    return lambda value, name: None if value is None else check(value, name)


_RETRY_KEYS: dict[str, Check] = {
    "strategy": one_of("exponential", "fixed", "immediate"),
    "initial_s": number(0, 86_400),
    "multiplier": number(1, 100),
    "max_s": number(0, 7 * 86_400),
    "jitter": number(0, 1),
    "retry_on": words,
    "no_retry_on": words,
}


def retry_policy(value: JsonValue, name: str) -> JsonValue:
    """How a failed task waits for its next attempt; only the keys that say something."""
    if type(value) is not dict:
        raise _wrong(value, name, "an object")
    return checked(value, _RETRY_KEYS, name)


def checked(fields: JsonObject, table: dict[str, Check], where: str) -> JsonObject:
    """Every field through its check; an unknown one is refused by name."""
    result: JsonObject = {}
    for key, value in fields.items():
        check = table.get(key)
        if check is None:
            known = ", ".join(sorted(table))
            raise BadInput(f"no such field; there are {known}", f"{where}.{key[:80]}")
        result[key] = check(value, f"{where}.{key}")
    return result
