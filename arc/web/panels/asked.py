"""Reads what the page asks a panel for: which time, how much of it, which nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent_node.clock import iso, parse_iso
from arc.durations import BadWord, parse_duration
from arc.errors import WrongUse

SPAN_S = 3 * 3600.0
SPAN_MIN_S, SPAN_MAX_S = 10.0, 14 * 86_400.0
NODES_MAX = 500
_NODE = re.compile(r"[a-z][a-z0-9-]{0,31}")

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time that a panel shows; `live` when it ends at this moment."""

    since: datetime
    until: datetime
    live: bool

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.until - self.since).total_seconds()

    def after(self, moment: datetime) -> float:
        """Seconds from its beginning, in milliseconds' steps: what the page draws by."""
        return round((moment - self.since).total_seconds(), 3)


def window_of(query: Query, now: datetime, *, span_s: float = SPAN_S) -> Window:
    """`at` (ISO 8601; missing: now) and `span` (`3h`); `WrongUse` for anything else."""
    until = _moment(query.get("at"), now)
    wanted = _span(query.get("span"), span_s)
    return Window(until - timedelta(seconds=wanted), until, live="at" not in query)


def _moment(text: str | None, now: datetime) -> datetime:
    if text is None:
        return now
    try:
        moment = parse_iso(text)
    except ValueError as error:
        raise WrongUse(f"at: should be a moment like {iso(now)}, not {text[:40]!r}") from error
    oldest = now - timedelta(days=3650)
    if not oldest <= moment:
        raise WrongUse(f"at: lies before {iso(oldest)}; nothing was remembered then")
    return min(moment, now)


def _span(text: str | None, usual: float) -> float:
    if text is None:
        return usual
    try:
        wanted = parse_duration(text)
    except BadWord as error:
        raise WrongUse(f"span: {error}") from error
    if not SPAN_MIN_S <= wanted <= SPAN_MAX_S:
        raise WrongUse("span: goes from 10s to 14d")
    return wanted


def nodes_of(query: Query) -> tuple[str, ...] | None:
    """`nodes`, divided by commas; None: all of them."""
    text = query.get("nodes", "")
    if not text:
        return None
    names = tuple(dict.fromkeys(text.split(",")))
    wrong = next((name for name in names if not _NODE.fullmatch(name)), None)
    if wrong is not None or len(names) > NODES_MAX:
        raise WrongUse(f"nodes: {(wrong or '')[:40]!r} is no node's name"
                       if wrong is not None else f"nodes: at most {NODES_MAX}")  # fmt: skip
    return names


def whole_of(query: Query, name: str, usual: int, *, low: int, high: int) -> int:
    """A whole number of the query, or the usual one."""
    text = query.get(name)
    if text is None:
        return usual
    if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise WrongUse(f"{name}: a whole number from {low} to {high}")
    return int(text)
