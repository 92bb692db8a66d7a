"""Keeps how each node was at every look: a row where something changed, none where it did not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from agent_node.clock import Clock, parse_iso

from .decisions.view import NodeSeen, NodeUnseen
from .history_seen import UNKNOWN

if TYPE_CHECKING:
    from .journal import Rows, Value

# A node's row is written anew at least so often, so that a reader has to go back no further to know
# how it was. What is not written at a look is its confirmation: `met.at` says that for free.
KEYFRAME_S = 3600.0
GAP_MAX_S = 7200.0
INBOX = "inbox"
LONGEST_S = KEYFRAME_S + 1.5 * GAP_MAX_S  # no row reaches further than that
_INSERT = (
    "INSERT INTO sample (id, node, at, until, state, because, pending, running, slots, free,"
    " idle_since) VALUES (?,?,?,NULL,?,?,?,?,?,?,?)"
)
_CLOSE_ALL = """
UPDATE sample SET until = max(at, coalesce(
  (SELECT cast(round((julianday(m.at) - 2440587.5) * 86400000) AS INTEGER)
     FROM met m WHERE m.node = sample.node), at))
 WHERE until IS NULL
"""


class Said(NamedTuple):
    """What a node says of itself, as far as a sample keeps it; `idle_since` by its own clock."""

    state: str
    because: str
    pending: int = 0
    running: int = 0
    slots: int = 0
    free: int = 0
    idle_since: str | None = None


@dataclass(slots=True)
class _Last:
    """The row of a node that is not closed yet, and up to when it was confirmed."""

    id: int
    at: int
    until: int
    said: Said


class SampleBook:
    """How nodes were, run-length: only one process writes here, so it remembers the open rows."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock
        self._last: dict[str, _Last] = {}
        with rows.transaction():  # of a hub that ended: known up to when each node was met last
            rows.write(_CLOSE_ALL)
        self._next = int(str(rows.read("SELECT coalesce(max(id), 0) AS id FROM sample")[0]["id"]))

    def look(
        self, seen: Iterable[NodeSeen], unseen: Iterable[NodeUnseen], *, gap_s: float
    ) -> None:
        """These nodes were looked at just now. Who was not for longer than `gap_s` has a gap; its
        row ends where it was confirmed last. Call it before the nodes count as met.
        """
        now, gap = self._clock.now(), int(1000 * min(gap_s, GAP_MAX_S))
        at = ms_of(now)
        fresh: list[tuple[Value, ...]] = []
        closed: list[tuple[int, int]] = []
        for node in seen:
            said = _said(node)
            if not self._holds(node.name, said, at, gap):
                fresh.append(self._begin(node.name, said, at, gap, closed,
                                         _idle_since(node, now)))  # fmt: skip
        for gone in unseen:
            said = Said(UNKNOWN, gone.rule)
            if not self._holds(gone.name, said, at, gap):
                fresh.append(self._begin(gone.name, said, at, gap, closed, None))
        if fresh:
            with self._rows.transaction():
                self._rows.write_many("UPDATE sample SET until = ? WHERE id = ?", closed)
                self._rows.write_many(_INSERT, fresh)

    def so_since(
        self, node: str, state: str, told: datetime | None = None
    ) -> datetime | None:
        """Since when this node is in this state: since the first look in a row that found it so, or
        since it was `told`, where no look found it otherwise after that. None: nobody knows.
        """
        (row,) = self._rows.read(
            "SELECT max(at) FILTER (WHERE state NOT IN (?2, ?3)) AS other FROM sample"
            " WHERE node = ?1", [node, state, UNKNOWN])  # fmt: skip
        other = -1 if row["other"] is None else int(str(row["other"]))
        (row,) = self._rows.read("SELECT min(at) AS at FROM sample WHERE node = ? AND state = ?"
                                 " AND at > ?", [node, state, other])  # fmt: skip
        known = [] if row["at"] is None else [int(str(row["at"]))]
        if told is not None and ms_of(told) >= other:
            known.append(ms_of(told))
        return moment_of(min(known)) if known else None

    def _holds(self, name: str, said: Said, at: int, gap: int) -> bool:
        """Whether the open row of this node says so already, and may go on saying it."""
        last = self._last.get(name)
        if last is None or last.said != said or not 0 <= at - last.until <= gap \
                or at - last.at >= 1000 * KEYFRAME_S:  # fmt: skip
            return False
        last.until = at
        return True

    def _begin(
        self, name: str, said: Said, at: int, gap: int, closed: list[tuple[int, int]],
        idle_since: int | None,
    ) -> tuple[Value, ...]:  # fmt: skip
        last = self._last.get(name)
        if last is not None:  # what held at the look before is taken to have held until this one
            closed.append((at if 0 <= at - last.until <= gap else last.until, last.id))
        self._next += 1
        self._last[name] = _Last(self._next, at, at, said)
        return self._next, name, at, *said[:6], idle_since


def _said(node: NodeSeen) -> Said:
    report = node.report
    state = report.state
    if state == "active":  # the hub's own queue starts nothing, and nothing is wrong with that
        state = "running" if report.dispatcher == "running" or node.name == INBOX else "stopped"
    return Said(state, "", report.pending_count, report.running_count, report.slots,
                report.free_slots, report.idle_since if report.idle else None)  # fmt: skip


def _idle_since(node: NodeSeen, now: datetime) -> int | None:
    """By the hub's clock, and never ahead of it."""
    if not node.report.idle or node.report.idle_since is None:
        return None
    try:
        since = parse_iso(node.report.idle_since) - timedelta(seconds=node.clock_off_s or 0.0)
    except (ValueError, OverflowError):
        return ms_of(now)
    return ms_of(min(since, now))


def ms_of(moment: datetime) -> int:
    """Milliseconds since 1970: what the history's tables count time in."""
    return round(moment.timestamp() * 1000)


def moment_of(milliseconds: int) -> datetime:
    """The moment that a time of the history's tables means."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
