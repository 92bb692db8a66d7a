"""Fits columns and lines into a terminal without taking a word away."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from agent_node.text import safe_text

GAP = 2  # columns between two cells
ROOM_MIN = 24  # columns that make a sentence readable beside the others; with less it goes below
INDENT = 4
NOTHING = frozenset({"", "-"})

Cells = Sequence[str]


def fitted(head: Cells, lines: Sequence[Cells], width: int) -> str:
    """Aligned columns within `width`; what has no room stands below its row, under its title.

    The last column holds sentences: it is folded in place where that leaves it readable.
    """
    cells = [[safe_text(cell) for cell in line] for line in (head, *lines)]
    widths = _widths(cells)
    if _that_fit(widths, width) < len(widths):
        cells = _that_say_something(cells)
        widths = _widths(cells)
    titles, *rows = cells
    front = _that_fit(widths, width)
    room = width - sum(widths[:-1]) - GAP * (len(widths) - 1)
    folds = _in_place if front >= len(widths) - 1 and room >= ROOM_MIN else _below
    if front == len(widths):
        return "\n".join(_row(line, widths) for line in cells)
    whole = _row(titles, widths)
    shown = [whole if len(whole) <= width else _row(titles[:front], widths)]
    shown += [part for line in rows for part in folds(titles, line, widths, width)]
    return "\n".join(shown)


def _widths(cells: Sequence[Cells]) -> list[int]:
    return [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]


def _that_say_something(cells: list[list[str]]) -> list[list[str]]:
    """Without the columns that are empty in every row: their room is needed."""
    kept = [column for column in range(len(cells[0]))
            if not column or any(line[column] not in NOTHING for line in cells[1:])]  # fmt: skip
    return [[line[column] for column in kept] for line in cells]


def _that_fit(widths: Sequence[int], width: int) -> int:
    """How many columns stand beside each other; the first one always does."""
    right, count = -GAP, 0
    for wide in widths:
        right += GAP + wide
        if count and right > width:
            break
        count += 1
    return count


def _row(line: Cells, widths: Sequence[int]) -> str:
    *cells, last = line
    padded = [cell.ljust(wide) for cell, wide in zip(cells, widths, strict=False)]
    return (" " * GAP).join([*padded, last]).rstrip()


def _in_place(head: Cells, line: Cells, widths: Sequence[int], width: int) -> Iterator[str]:
    """The last cell folded within its own column."""
    left = sum(widths[:-1]) + GAP * (len(widths) - 1)
    first, *others = _parts(line[-1], width - left)
    yield _row([*line[:-1], first], widths)
    yield from (" " * left + part for part in others)


def _below(head: Cells, line: Cells, widths: Sequence[int], width: int) -> Iterator[str]:
    """What stands beside each other, then the rest that says something, each by its title."""
    whole, front = _row(line, widths), _that_fit(widths, width)
    if front == len(widths) - 1 and len(whole) <= width:
        yield whole
        return
    yield _row(line[:front], widths)
    left = zip(head[front:], line[front:], strict=True)
    rest = "  ".join(f"{title.lower()}: {cell}" for title, cell in left if cell not in NOTHING)
    yield from (" " * INDENT + part for part in _parts(rest, width - INDENT) if part)


def folded(line: str, width: int | None) -> str:
    """One line, folded between its words; what follows its first part is set in. None: as it is."""
    if width is None or len(line) <= width:
        return line
    first = _parts(line, width)[0]
    rest = line[len(first) :].lstrip()
    return "\n".join([first, *(" " * INDENT + part for part in _parts(rest, width - INDENT))])


def _parts(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False,
                         drop_whitespace=True) or [""]  # fmt: skip
