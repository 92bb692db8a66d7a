"""The one strict decoder: bytes become JSON values here, or one clear error."""

from __future__ import annotations

import json
from typing import NoReturn

from .errors import BadInput

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]

LINE_MAX = 8 * 1024 * 1024
DEPTH_MAX = 16
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_INT_DIGITS, _INT_DIGITS_SURE = 20, 18  # the longest that may fit; what fits whatever it is
# Every opening bracket becomes one, every closing one too, quotes stay and all else goes.
_AS_BRACKETS = bytes({123: 91, 125: 93}.get(byte, byte) for byte in range(256))
_NO_BONES = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_MARKS = b",:[{"
_NO_MARKS = bytes(byte for byte in range(256) if byte not in b'",:[{')


def decode_line(raw: bytes, limit: int = LINE_MAX) -> JsonValue:
    """The JSON value of these bytes, or `BadInput` naming what is wrong with them."""
    if len(raw) > limit:
        raise BadInput(f"{len(raw)} bytes where at most {limit} are taken")
    try:
        value: JsonValue = _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise BadInput(f"nested deeper than {DEPTH_MAX}") from error
    except json.JSONDecodeError as error:
        raise BadInput(f"not JSON: {error.msg} at character {error.pos}") from error
    if b"\\" in raw or not _is_shallow(raw):
        # Without an escape the text holds no surrogate and no NUL: UTF-8 and JSON forbid both raw.
        _check_depth(value, escapes=b"\\u" in raw)
    return value


def decode_object(raw: bytes, limit: int = LINE_MAX) -> JsonObject:
    """The same, for a document that has to be an object."""
    value = decode_line(raw, limit)
    if not isinstance(value, dict):
        raise BadInput(f"a {kind_of(value)} where an object belongs")
    return value


def kind_of(value: object) -> str:
    """The JSON name of a value's type, for messages."""
    names = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
    return names.get(type(value), "list" if isinstance(value, list) else "object")


def refuse_crowded(raw: bytes, most: int) -> None:
    """Refuse more commas, colons and opening brackets: as many bound the values of a line, and the
    memory which they take, before any of them is made.
    """
    if len(raw) > most and _is_crowded(raw, most):
        raise BadInput(f"more than {most} commas, colons and opening brackets")


def _is_crowded(raw: bytes, most: int) -> bool:
    """Whether it has more marks than that; those inside its texts are none."""
    if sum(raw.count(mark) for mark in _MARKS) <= most:
        return False
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    bones = raw.translate(None, _NO_MARKS).replace(b'""', b"")  # of texts, those with marks remain
    return sum(map(len, bones.split(b'"')[::2])) > most


def _is_shallow(raw: bytes) -> bool:
    """Whether this JSON, without a backslash, is surely not too deep; False: look at the values.

    Of its brackets and quotes, a quote is left only where a bracket stands inside a text. All
    others are nested as the values are, and each turn takes the innermost pairs away.
    """
    bones = raw.translate(_AS_BRACKETS, _NO_BONES).replace(b'""', b"")
    for _ in range(DEPTH_MAX - 1):  # a value may stand inside the innermost of them
        bones = bones.replace(b"[]", b"")
        if not bones:
            return True
    return False


def _check_depth(value: JsonValue, *, escapes: bool) -> None:
    level: list[JsonValue] = [value]
    for _ in range(DEPTH_MAX):
        deeper: list[JsonValue] = []
        for item in level:
            if type(item) is dict:
                deeper.extend(item.values())
                if escapes:
                    deeper.extend(item)
            elif type(item) is list:
                deeper.extend(item)
            elif escapes and type(item) is str:
                check_text(item)
        level = deeper
        if not level:
            return
    raise BadInput(f"nested deeper than {DEPTH_MAX}")


def check_text(text: str, field: str = "") -> None:
    """Refuse what JSON can write and a file, an argument or a terminal cannot hold."""
    if "\0" in text:
        raise BadInput("holds a NUL character", field)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"holds a lone surrogate at character {error.start}", field) from error


def _object(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise BadInput(f"the key {_twice(pairs)[:80]!r} stands twice in one object")
    return result


def _twice(pairs: list[tuple[str, JsonValue]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            break
        seen.add(key)
    return key


def _integer(digits: str) -> int:
    if len(digits) <= _INT_DIGITS_SURE:
        return int(digits)
    if len(digits) <= _INT_DIGITS:
        number = int(digits)
        if _INT_MIN <= number <= _INT_MAX:
            return number
    raise BadInput(f"the integer {digits[:24]}… does not fit in 64 bits")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise BadInput(f"the number {text[:24]} is beyond what a double holds")
    return number


def _constant(name: str) -> NoReturn:
    raise BadInput(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_constant,
)
