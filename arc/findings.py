"""One thing wrong or doubtful in a file: what, where, and its line with a caret below."""

from __future__ import annotations

from dataclasses import dataclass

from agent_node.strict import JsonObject
from agent_node.text import safe_text

LINE_SHOWN_MAX = 100  # characters of a source line; a longer one is cut around the place
TEXT_MAX = 500


@dataclass(frozen=True)
class Place:
    """Where something stands in a text: line and column from 1, and how many characters it has."""

    line: int
    column: int
    width: int
    source: str  # the whole line


@dataclass(frozen=True)
class Finding:
    """What is wrong, under a code that `arc explain` knows.

    `place` is None where no line can be named: the file as a whole, or a file that is gone.
    """

    code: str
    text: str
    file: str
    place: Place | None = None
    hint: str = ""

    @property
    def where(self) -> str:
        """`fleet.yaml:11:5`, as editors and terminals understand it."""
        if self.place is None:
            return self.file
        return f"{self.file}:{self.place.line}:{self.place.column}"

    def as_json(self) -> JsonObject:
        """The same facts for machines."""
        said: JsonObject = {"code": self.code, "message": self.text, "where": self.where}
        if self.place is not None:
            said |= {"line": self.place.line, "column": self.place.column}
        return said | ({"hint": self.hint} if self.hint else {})


def render_finding(finding: Finding, kind: str = "error") -> str:
    """`WHERE: error[CODE]: TEXT`, the line itself with a caret, and the hint; safe to print.

    Without a `kind` the code is left to whoever passes it on.
    """
    said = safe_text(finding.text, TEXT_MAX)
    head = f"{safe_text(finding.where)}: {f'{kind}[{finding.code}]: ' if kind else ''}{said}"
    hint = [f"   hint: {safe_text(finding.hint, TEXT_MAX)}"] if finding.hint else []
    shown = _with_caret(finding.place) if finding.place is not None else []
    return "\n".join([head, *shown, *hint])


def _with_caret(place: Place) -> list[str]:
    start = place.column - 1
    cut = max(0, start - LINE_SHOWN_MAX // 2) if len(place.source) > LINE_SHOWN_MAX else 0
    before = _flat(place.source[cut:start])
    at = _flat(place.source[start : start + place.width])
    after = _flat(place.source[start + place.width :])
    line = f"{'…' if cut else ''}{before}{at}{after}"
    caret = " " * (len(before) + bool(cut)) + "^" * max(1, min(len(at), LINE_SHOWN_MAX // 2))
    number = f"{place.line:>6} | "
    return [number + safe_text(line.rstrip(), LINE_SHOWN_MAX), " " * 6 + " | " + caret]


def _flat(text: str) -> str:
    """Safe to print, and one character wide where it was: a tab would move the caret away."""
    return safe_text(text.replace("\t", " "))
