"""Makes anything a task or a node said safe and short enough to print for a person."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MARK_CATEGORIES = frozenset({"Mn", "Me"})
MARKS_MAX = 4  # the longest real stacks (Vietnamese, Hebrew with points) stay below this
SHORT_UID_MIN = 4
WHOLE_SHORT = "short ids are the last letters of a uid: give them whole"
LISTED_MAX = 10  # of what a part of a uid may mean

_DURATION_STEPS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def safe_text(text: str, limit: int | None = None, *, keep: str = "") -> str:
    """The text with every character that could drive a terminal made visible.

    `limit` counts characters of the answer; a cut ends in `…`. `keep` names control characters
    that may stay as they are (a log keeps its newlines and tabs).
    """
    seen = text if text.isascii() and text.isprintable() else _made_visible(text, keep)
    if limit is None or len(seen) <= limit:
        return seen
    return seen[: max(limit - 1, 0)] + "…"


def _made_visible(text: str, keep: str) -> str:
    from unicodedata import category

    out: list[str] = []
    marks = 0
    for char in text:
        kind = category(char)
        marks = marks + 1 if kind in MARK_CATEGORIES else 0
        hidden = kind in HIDDEN_CATEGORIES or marks > MARKS_MAX
        out.append(_escaped(char) if hidden and char not in keep else char)
    return "".join(out)


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x100:  # noqa: PLR2004 - the widest a two-digit escape can say
        return f"\\x{code:02x}"
    if code < 0x10000:  # noqa: PLR2004 - the widest a four-digit escape can say
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def duration(seconds: float) -> str:
    """A length of time in at most two units (`2h 5m`); below a second it is said in full."""
    if seconds < 0:
        return "-" + duration(-seconds)
    if 0 < seconds < 1:
        return f"{seconds:.1g}s"
    return _in_two_units(int(seconds))


def _in_two_units(left: int) -> str:
    parts: list[str] = []
    for size, unit in _DURATION_STEPS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
        if len(parts) == 2:  # noqa: PLR2004 - a third unit is noise
            break
    return " ".join(parts) or "0s"


def ago(seconds: float) -> str:
    """How long ago something was; a clock that ran backwards is said, not hidden."""
    if seconds < 0:
        return f"in {duration(-seconds)}"
    return f"{duration(seconds)} ago"


def size(count: int) -> str:
    """Bytes as people read them, in binary units."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:  # noqa: PLR2004 - what a binary unit is
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def short_uids(uids: Iterable[str]) -> dict[str, str]:
    """A short form for each uid that no other one in this list shares: the end of it, at least 4.

    The end, because uids made in the same moment begin alike.
    """
    known = sorted(set(uids))
    width = SHORT_UID_MIN
    longest = max((len(uid) for uid in known), default=0)
    while width < longest and len({uid[-width:] for uid in known}) < len(known):
        width += 1
    return {uid: uid[-width:].lower() for uid in known}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Rows under a head, columns aligned; only the last column is cut, and only to `width`.

    `width` is None when no terminal reads along: then nothing is cut at all.
    """
    lines = [[safe_text(cell) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(_table_line(line, widths, width) for line in lines)


def _table_line(line: Sequence[str], widths: Sequence[int], width: int | None) -> str:
    cells = [cell.ljust(wide) for cell, wide in zip(line[:-1], widths, strict=False)]
    text = "  ".join([*cells, line[-1]]).rstrip()
    if width is None or len(text) <= width:
        return text
    return text[: max(width - 1, 0)] + "…"


def terminal_width(stream: TextIO, environ: Mapping[str, str]) -> int | None:
    """How many columns the reader has; None when it is no terminal and nothing may be cut."""
    if not stream.isatty():
        return None
    told = environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None  # 0: it does not know
    except OSError:
        return None


def counted(count: int, thing: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def first_of(lines: Sequence[str], *, all_of_them: bool = True) -> str:
    """The first ten, each on its own line, and how many more there are, or are known to be."""
    more = len(lines) - LISTED_MAX
    at_least = "" if all_of_them else "at least "
    told = [f"  … and {at_least}{more} more"] if more > 0 else []
    return "\n".join([*lines[:LISTED_MAX], *told])
