"""Puts keys and items into a YAML text, or takes them out, without touching the rest of it."""

from __future__ import annotations

from .marked_yaml import Loc, Marked, Span


def set_key(marked: Marked, at: Loc, key: str, value: str) -> str:
    """The text with this key of the mapping at `at` saying `value`, which is YAML in one line."""
    text, there = marked.text, (*at, key)
    if there in marked.keys:
        colon = text.index(":", marked.keys[there].end) + 1
        old = marked.values[there]
        end = old.end if old.end > old.start else colon
        return f"{text[:colon]} {value}{text[end:]}"
    keys = _keys(marked, at)
    if marked.values[at].flow:
        end = marked.values[(*at, *keys[-1:])].end if keys else marked.values[at].start + 1
        return f"{text[:end]}{', ' if keys else ''}{key}: {value}{text[end:]}"
    end = _line_end(text, marked.values[(*at, keys[-1])].end)
    indent = " " * _column(text, marked.keys[(*at, keys[0])].start)
    return f"{text[:end]}{_newline(text)}{indent}{key}: {value}{text[end:]}"


def drop_key(marked: Marked, at: Loc, key: str, _value: str = "") -> str:
    """The text without this key; it may not be there at all."""
    there = (*at, key)
    if there not in marked.keys:
        return marked.text
    keys = _keys(marked, at)
    spans = [Span(marked.keys[(*at, one)].start,
                  max(marked.values[(*at, one)].end, marked.keys[(*at, one)].end))
             for one in keys]  # fmt: skip
    n = keys.index(key)
    if n and not marked.values[at].flow:
        return _without_lines(marked.text, spans[n])
    return _without(marked.text, spans, n)


def add_item(marked: Marked, at: Loc, item: str) -> str:
    """The text with one more item, YAML in one line, behind the others of the list at `at`."""
    text, there = marked.text, marked.values[at]
    count = _count(marked, at)
    if count and there.flow:
        end = marked.values[(*at, count - 1)].end
        return f"{text[:end]}, {item}{text[end:]}"
    if count:
        end = _line_end(text, marked.values[(*at, count - 1)].end)
        indent = " " * _column(text, there.start)
        return f"{text[:end]}{_newline(text)}{indent}- {item}{text[end:]}"
    colon = text.index(":", marked.keys[at].end) + 1
    rest = text[max(there.end, colon) :] if there.end > there.start else text[colon:]
    stop = _line_end(rest, 0)
    return f"{text[:colon]}{rest[:stop]}{_newline(text)}  - {item}{rest[stop:]}"


def drop_item(marked: Marked, at: Loc, n: int) -> str:
    """The text without the item `n` of the list at `at`; the last one leaves `[]`."""
    text, spans = marked.text, [marked.values[(*at, m)] for m in range(_count(marked, at))]
    if marked.values[at].flow:
        return _without(text, spans, n)
    text = _without_lines(text, spans[n])
    if len(spans) > 1:
        return text
    colon = text.index(":", marked.keys[at].end) + 1
    return f"{text[:colon]} []{text[colon:]}"


def _keys(marked: Marked, at: Loc) -> list[str]:
    """The keys of a mapping, in the order of the text."""
    return [str(loc[-1]) for loc in marked.keys if loc[:-1] == at]


def _count(marked: Marked, at: Loc) -> int:
    return sum(loc[:-1] == at for loc in marked.values if loc)


def _without(text: str, spans: list[Span], n: int) -> str:
    """One of several stretches taken out, with what parts it from its neighbour."""
    if n + 1 < len(spans):
        return text[: spans[n].start] + text[spans[n + 1].start :]
    start = spans[n - 1].end if n else spans[n].start
    return text[:start] + text[spans[n].end :]


def _without_lines(text: str, span: Span) -> str:
    start = text.rfind("\n", 0, span.start) + 1
    return text[:start] + text[_line_end(text, span.end) :].removeprefix("\r").removeprefix("\n")


def _line_end(text: str, index: int) -> int:
    """Where the line ends that this character stands in, before its line break."""
    stop = text.find("\n", index)
    stop = len(text) if stop < 0 else stop
    return stop - 1 if stop > index and text[stop - 1] == "\r" else stop


def _column(text: str, index: int) -> int:
    return index - text.rfind("\n", 0, index) - 1


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
