"""Finds the line of every key and table in a TOML text, which the standard parser does not tell."""

from __future__ import annotations

import re

Place = tuple[str | int, ...]

_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=""")
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]\n]+?)\s*\]")
_OPENERS = ('"""', "'''", '"', "'")


def lines_of(text: str) -> dict[Place, int]:
    """The first line of each table and key: `("name",)`, `("agent", 1)`, `("agent", 1, "run")`.

    For a text the parser has taken. A place missing here is one the scan does not know (a key of
    an inline table); its owner's line is the honest answer then.
    """
    found: dict[Place, int] = {}
    table: Place = ()
    counts: dict[str, int] = {}
    for number, line in _statements(text):
        header = _HEADER.match(line)
        if header:
            table = _table_of(header[1], header[2], counts)
            found.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            found.setdefault((*table, key[1].strip("\"'").partition(".")[0].strip()), number)
    return found


def _table_of(bracket: str, name: str, counts: dict[str, int]) -> Place:
    name = name.strip("\"' ")
    if bracket == "[":
        return tuple(part.strip("\"' ") for part in name.split("."))
    counts[name] = counts.get(name, -1) + 1
    return (name, counts[name])


def _statements(text: str) -> list[tuple[int, str]]:
    """The lines on which something begins: none inside a string or a list of several lines."""
    begins: list[tuple[int, str]] = []
    depth, quote = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if depth == 0 and not quote:
            begins.append((number, line))
        depth, quote = _after_line(line, depth, quote)
        header = not quote and _HEADER.match(line) and begins[-1][0] == number
        depth = 0 if header else depth
    return begins


def _after_line(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How deep in brackets, and in which kind of long string, the line leaves us."""
    at = 0
    while at < len(line):
        if quote:
            at, quote = _in_string(line, at, quote)
        elif line[at] == "#":
            break
        else:
            quote = next((opener for opener in _OPENERS if line.startswith(opener, at)), "")
            depth += (line[at] in "[{") - (line[at] in "]}")
            at += len(quote) or 1
    return depth, quote if len(quote) == 3 else ""  # noqa: PLR2004 - only long strings go on


def _in_string(line: str, at: int, quote: str) -> tuple[int, str]:
    if line[at] == "\\" and quote.startswith('"'):
        return at + 2, quote
    if line.startswith(quote, at):
        return at + len(quote), ""
    return at + 1, quote
