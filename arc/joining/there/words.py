"""What both ends say to each other, and the one error with which this end says no."""

from __future__ import annotations

import re

Fact = dict[str, object]  # one request, or one answer: what JSON can hold
is_plain_path = re.compile(r"(?:/[A-Za-z0-9._@+-]+)+").fullmatch


class Refused(Exception):
    """What was asked for is not done, and why; `hint` says what would mend it."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.hint = code, hint


def checked_path(path: object, what: str) -> str:
    """An absolute path of plain characters, which means the same to every shell."""
    if not isinstance(path, str) or not is_plain_path(path) or "/../" in f"{path}/":
        raise Refused("strange_path", f"{what}: {path!r} is no plain absolute path")
    return path
