"""Writes JSON without a space, by an encoder that is made once and not for every value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from json import encoder
from typing import NoReturn

from .strict import JsonValue

Write = Callable[[JsonValue | list[str]], str]


def writer(*, sorted_keys: bool = False, finite: bool = False) -> Write:
    """What `json.JSONEncoder` writes, letter for letter. Nothing in a value may hold itself.

    `finite`: NaN and infinities are a `ValueError`. The standard encoder makes another one in C
    for each value, which costs more than most of our values take to write.
    """
    plain = json.JSONEncoder(
        ensure_ascii=False, separators=(",", ":"), sort_keys=sorted_keys, allow_nan=not finite,
        check_circular=False,
    )  # fmt: skip
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:  # another Python, which has none
        return plain.encode
    flags = (sorted_keys, False, not finite)  # sort_keys, skipkeys, allow_nan
    chunks: Callable[[JsonValue | list[str], int], Sequence[str]] = make(
        None, _unknown, encoder.encode_basestring, None, ":", ",", *flags
    )
    return lambda value: "".join(chunks(value, 0))


def _unknown(value: object) -> NoReturn:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
