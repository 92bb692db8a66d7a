"""Says what keeps a text from being a regular expression, without the cost of making one. Pure."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

_parse: Callable[[str], Any] = import_module("re._parser").parse
_LOOKS = ("ASSERT", "ASSERT_NOT")


def fault_of_pattern(text: str) -> str | None:
    """What the judge could not compile it for; None: nothing was found.

    Read, and not compiled: a thousand characters that ignore the case of wide ranges take 1.5 s,
    which the judge has a process of its own for and whoever takes a graph in has not.
    """
    try:
        with warnings.catch_warnings():  # `[[a]` may mean more one day, and means the same today
            warnings.simplefilter("ignore", FutureWarning)
            read = _parse(text)
        # All that the compiler refuses and the parser does not: it looks back by a fixed number.
        if any(low != high for low, high in map(_width, _behind(read))):
            return "look-behind requires fixed-width pattern"
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return None


def _behind(read: Any) -> Iterator[Any]:
    """Every pattern in it that is looked for backwards, at any depth."""
    rest = [read]
    while rest:
        one = rest.pop()
        match one:
            case (what, (-1, part)) if str(what) in _LOOKS:
                yield part
        # A part of a pattern is no list, but has its items as one does.
        rest += one if isinstance(one, tuple | list) else getattr(one, "data", ())


def _width(part: Any) -> tuple[int, int]:
    low, high = part.getwidth()
    return low, high
