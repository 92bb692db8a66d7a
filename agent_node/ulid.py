"""Makes and recognises ULIDs: names that are unique for ever and sort by when they were made."""

from __future__ import annotations

import os
import re
import time

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _LETTERS for low in _LETTERS]
is_ulid = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}").fullmatch


def new_ulid(clock_ms: int, random_bytes: bytes) -> str:
    """The ULID of this millisecond and these ten random bytes."""
    number = (clock_ms << 80) | int.from_bytes(random_bytes[:10], "big")
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def later_ulid(earlier: str, clock_ms: int, random_bytes: bytes) -> str:
    """A new ULID that sorts after this one, also when the clock stands still or was set back."""
    return new_ulid(max(clock_ms, clock_ms_of(earlier) + 1), random_bytes)


def clock_ms_of(ulid: str) -> int:
    """The millisecond that a ULID names."""
    number = 0
    for letter in ulid[:10]:
        number = number * 32 + _LETTERS.index(letter)
    return number


def fresh_ulid() -> str:
    """A new ULID by this machine's clock and randomness."""
    return new_ulid(time.time_ns() // 1_000_000, os.urandom(10))
