"""Reads the usual kind of YAML fast, with the place of every key and value; nothing unusual."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode

from .marked_yaml import SCALARS, Loc, Marked, Plain, Span, YamlLimits

# What is read here is read as the whole reader of `marked_yaml` reads it, twenty times as fast; of
# everything else, and of everything that is wrong, that one is asked: it alone says what and where.
_usual = re.compile("[\n\x20-\x7e\u00a1-\u2027\u2030-\ud7ff\U00010000-\U0010fffd]*").fullmatch
_blank = re.compile(r" *(?:#.*)?$").match
_tail = re.compile(r"(?: +#.*| *)$").match
_key = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,99}):(?: +|$)").match
_entry = re.compile(r"- +(?=[^ ])").match
_quoted = re.compile(r'"([^"\\]*)"|\'([^\']*)\'').match
_literal = re.compile(r"\|(-?)(?: +#.*| *)$").match
_first = re.compile(r"[A-Za-z0-9_/.+(~$]|-[A-Za-z0-9]").match
_word = re.compile(r"[A-Za-z0-9_/.+~$](?:[A-Za-z0-9_/.+~$ -]*[A-Za-z0-9_/.+~$-])?").match
_gap = re.compile(" *").match


class _Unusual(Exception):
    """Something that is left to the whole reader, be it wrong or only seldom."""


def read_plain(text: str, limits: YamlLimits) -> Marked | None:
    """What the text says, as `read_marked` would tell it; None: ask that one."""
    if not text.endswith("\n") or not _usual(text):
        return None
    reading = _Reading(text, limits)
    try:
        if reading.skip() != 0:
            return None
        reading.marked.data, _ = reading.mapping(0, (), 1)
        return reading.marked if reading.skip() < 0 else None
    except _Unusual:
        return None


@lru_cache(maxsize=1)
def _resolver() -> Any:
    return YAML(typ="safe", pure=True).resolver


@lru_cache(maxsize=4096)
def _tag(text: str) -> str:
    return str(_resolver().resolve(ScalarNode, text, (True, False)))


class _Reading:
    """One walk over the lines; `at` is the line that is read next."""

    def __init__(self, text: str, limits: YamlLimits) -> None:
        self.marked, self.lines, self.at = Marked(text), text.split("\n"), 0
        self.left, self.deepest = limits.nodes, limits.depth - 2
        self.starts: list[int] = []
        start = 0
        for line in self.lines:
            self.starts.append(start)
            start += len(line) + 1

    def skip(self) -> int:
        """Go on to the next line that says something; how far it is indented, -1 at the end."""
        lines = self.lines
        while self.at < len(lines):
            line = lines[self.at]
            if not _blank(line):
                return len(line) - len(line.lstrip(" "))
            self.at += 1
        return -1

    def mapping(self, column: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        """A block of keys that begin in this column of the present line; and where it ends."""
        self._node(depth)
        found: dict[str, Plain] = {}
        first = self.starts[self.at] + column
        while True:
            line, start = self.lines[self.at], self.starts[self.at] + column
            key = _key(line, column)
            if key is None or key[1] in found:
                raise _Unusual
            self._node(depth)
            inner = (*loc, key[1])
            self.marked.keys[inner] = Span(start, start + len(key[1]))
            found[key[1]], end = self._value(key.end(), column, inner, depth)
            follows = self.skip()
            if follows > column:
                raise _Unusual
            if follows < column:
                self.marked.values[loc] = Span(first, end, flow=False)
                return found, end

    def _value(self, column: int, parent: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        line = self.lines[self.at]
        if column < len(line) and line[column] != "#":
            return self._here(column, parent, loc, depth)
        self.at += 1
        follows = self.skip()
        if follows >= parent and _entry(self.lines[self.at], follows):
            return self._sequence(follows, loc, depth + 1)
        if follows > parent:
            return self.mapping(follows, loc, depth + 1)
        raise _Unusual  # nothing stands there

    def _sequence(self, column: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        self._node(depth)
        found: list[Plain] = []
        first = self.starts[self.at] + column
        while True:
            entry = _entry(self.lines[self.at], column)
            if entry is None:  # a key of the mapping around it, else it fits nowhere
                break
            inner = (*loc, len(found))
            if _key(self.lines[self.at], entry.end()):
                value, end = self.mapping(entry.end(), inner, depth + 1)
            else:
                value, end = self._here(entry.end(), column, inner, depth)
            found.append(value)
            follows = self.skip()
            if follows > column:
                raise _Unusual
            if follows < column:
                break
        self.marked.values[loc] = Span(first, end, flow=False)
        return found, end

    def _here(self, column: int, parent: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        """A value that begins in this very line."""
        line = self.lines[self.at]
        if line[column] == "|":
            return self._block(column, parent, loc, depth)
        if line[column] in "[{":
            value, stop = self._flow(line, column, loc, depth + 1)
        elif line[column] in "\"'":
            value, stop = self._quote(line, column, loc, depth)
        else:
            value, stop = self._words(line, column, loc, depth)
        if not _tail(line, stop):
            raise _Unusual
        end = self.starts[self.at] + stop
        self.at += 1
        return value, end

    def _words(self, line: str, column: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        cut = line.find(" #", column)
        text = line[column : cut if cut >= 0 else None].rstrip()
        if not _first(text) or ": " in text or text.endswith(":"):
            raise _Unusual
        return self._scalar(text, column, loc, depth), column + len(text)

    def _quote(self, line: str, column: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        quoted = _quoted(line, column)
        if quoted is None:
            raise _Unusual
        self._note(column, quoted.end(), loc, depth)
        return quoted[1] if quoted[1] is not None else quoted[2], quoted.end()

    def _scalar(self, text: str, column: int, loc: Loc, depth: int) -> Plain:
        read = SCALARS.get(_tag(text))
        if read is None:
            raise _Unusual
        self._note(column, column + len(text), loc, depth)
        return read(text)

    def _note(self, column: int, stop: int, loc: Loc, depth: int) -> None:
        self._node(depth)
        start = self.starts[self.at]
        self.marked.values[loc] = Span(start + column, start + stop)

    def _flow(self, line: str, column: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        """`[…]` or `{…}` within one line."""
        self._node(depth)
        is_list, at = line[column] == "[", column + 1
        listed: list[Plain] = []
        named: dict[str, Plain] = {}
        close = "]" if is_list else "}"
        at = self._over(line, at)
        while line[at : at + 1] != close or listed or named:
            if is_list:
                value, at = self._flowing(line, at, (*loc, len(listed)), depth)
                listed.append(value)
            else:
                at = self._pair(line, at, named, loc, depth)
            at = self._over(line, at)
            if line[at : at + 1] == close:
                break
            if line[at : at + 2] != ", ":
                raise _Unusual
            at = self._over(line, at + 1)
        start = self.starts[self.at]
        self.marked.values[loc] = Span(start + column, start + at + 1)
        return (listed if is_list else named), at + 1

    def _pair(
        self, line: str, at: int, named: dict[str, Plain], loc: Loc, depth: int
    ) -> int:
        key = _key(line, at)
        if key is None or key[1] in named:
            raise _Unusual
        self._node(depth)
        start = self.starts[self.at] + at
        self.marked.keys[(*loc, key[1])] = Span(start, start + len(key[1]))
        named[key[1]], at = self._flowing(line, key.end(), (*loc, key[1]), depth)
        return at

    def _flowing(self, line: str, at: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        if line[at : at + 1] in ("[", "{"):
            return self._flow(line, at, loc, depth + 1)
        if line[at : at + 1] in ('"', "'"):
            return self._quote(line, at, loc, depth)
        word = _word(line, at)
        if word is None:
            raise _Unusual
        return self._scalar(word[0], at, loc, depth), word.end()

    @staticmethod
    def _over(line: str, at: int) -> int:
        gap = _gap(line, at)
        return gap.end() if gap else at

    def _block(self, column: int, parent: int, loc: Loc, depth: int) -> tuple[Plain, int]:
        """A literal, `|` or `|-`, whose first line says how far it is indented."""
        head = _literal(self.lines[self.at], column)
        if head is None:
            raise _Unusual
        self._node(depth)
        start, self.at = self.starts[self.at] + column, self.at + 1
        first = self.lines[self.at]
        pad = " " * (len(first) - len(first.lstrip(" ")))
        if len(pad) <= parent or len(pad) == len(first):
            raise _Unusual
        kept, end = self._indented(pad, parent)
        self.marked.values[loc] = Span(start, end)
        return "\n".join(kept) + ("" if head[1] else "\n"), end

    def _indented(self, pad: str, parent: int) -> tuple[list[str], int]:
        """The lines of a literal without those that are empty at its end, and where they end."""
        kept: list[str] = []
        many = end = 0
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.isspace() or (line[: parent + 1].isspace() and not line.startswith(pad)):
                raise _Unusual
            if line and not line.startswith(pad):
                break
            kept.append(line[len(pad) :])
            if line:
                many, end = len(kept), self.starts[self.at] + len(line.rstrip())
            self.at += 1
        return kept[:many], end

    def _node(self, depth: int) -> None:
        self.left -= 1
        if self.left < 0 or depth > self.deepest:
            raise _Unusual
