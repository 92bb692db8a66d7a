"""Turns rows of the journal into what a fleet's history is made of."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal
from typing import cast

import orjson

from agent_node.clock import iso, parse_iso

from .history_file import Reader, Row
from .history_seen import (
    CAME,
    Arrival,
    Feed,
    KeptSeen,
    MoveSeen,
    NodeKnown,
    RunSeen,
    Sample,
    Span,
    Standing,
    Stint,
    StrandedStretch,
)
from .journal_samples import LONGEST_S, moment_of, ms_of

UNIT = Decimal(10**6)
UIDS_MAX = 1000

# When a node was met last, as the other times here.
_MET = "CAST(round((julianday(at) - 2440587.5) * 86400000) AS INTEGER)"
# A row that is still open is known up to when its node was met; one of a node that does not answer
# up to the last look at any.
UNTIL = f"""CASE WHEN s.until IS NOT NULL THEN s.until
  WHEN s.state = 'unknown' THEN max(s.at, (SELECT coalesce(max({_MET}), 0) FROM met))
  ELSE max(s.at, coalesce((SELECT {_MET} FROM met m WHERE m.node = s.node), 0)) END"""  # noqa: S608
_ARRIVAL = """
SELECT at, uid, node, how, priority, domain, skills, needs, pinned, expected_s, source, ready_at,
       ended_at FROM arrival
"""
# By both ends of one index: what is not over, and what was over only afterwards.
_STANDING = f"""
SELECT a.at, a.uid, a.node, a.how, a.priority, a.domain, a.skills, a.needs, a.pinned, a.expected_s,
       a.source, a.ready_at, a.ended_at,
       coalesce((SELECT m.idle FROM move m WHERE m.uid = a.uid AND m.at < ?2
                    AND {CAME} ORDER BY m.id DESC LIMIT 1), a.node),
       coalesce((SELECT s.outcome FROM stint s WHERE s.uid = a.uid AND s.claimed_at < ?1
                  ORDER BY s.claimed_at DESC, s.n DESC LIMIT 1), '')
  FROM (SELECT * FROM arrival WHERE ended_at IS NULL AND at < ?1
         UNION ALL SELECT * FROM arrival WHERE ended_at >= ?1 AND at < ?1) AS a
 ORDER BY a.at DESC, a.uid DESC LIMIT ?3
"""  # noqa: S608
_STINT = """
SELECT node, uid, n, agent, claimed_at, started_at, ended_at, outcome, error_kind, domain, priority,
       cost FROM stint
"""
# As `UNTIL` of the open row; who left the fleet while it did not answer has left when its row ends.
_NODES = f"""
SELECT node, since, CASE WHEN open THEN max(until, coalesce(min(blind + ?,
         (SELECT max({_MET}) FROM met)), (SELECT {_MET} FROM met m WHERE m.node = n.node), 0))
       ELSE until END, (SELECT at FROM heard WHERE heard.node = n.node)
  FROM (SELECT node, min(at) AS since, max(coalesce(until, at)) AS until, max(until IS NULL) open,
               max(at) FILTER (WHERE until IS NULL AND state = 'unknown') AS blind
          FROM sample GROUP BY node) n ORDER BY node
"""  # noqa: S608
_SAMPLE = f"""
SELECT * FROM (SELECT s.node, s.at, {UNTIL} AS until, s.state, s.because, s.pending, s.running,
                      s.slots, s.free, s.idle_since
                 FROM sample s WHERE s.at >= ? AND s.at < ?)
 WHERE (until > ? OR at >= ?)
"""  # noqa: S608
_MOVE = """
SELECT at, uid, busy, idle, outcome, why, rule, because, priority, run, xfer FROM move
"""
# What a move was for, also of one that was settled only when it had been in doubt.
_MEANT = """CASE WHEN m.why <> 'doubt' THEN m.why ELSE coalesce((SELECT b.why FROM move b
  WHERE b.uid = m.uid AND b.xfer = m.xfer AND b.why <> 'doubt' ORDER BY b.id LIMIT 1), m.why) END"""
_RUN = """
SELECT id, sensor, at, because, outcome, coalesce(skipped, ''), summary, code, looked, unseen,
       decided, acted, requests, took_s FROM run
"""


def read_span(reader: Reader) -> Span | None:
    """None: nothing was kept yet."""
    first = [row[0] for row in reader.rows(
        "SELECT min(at) FROM sample UNION ALL SELECT min(at) FROM arrival"
        " UNION ALL SELECT min(claimed_at) FROM stint") if row[0] is not None]  # fmt: skip
    last = [row[0] for row in reader.rows(
        f"SELECT max({_MET}) FROM met UNION ALL SELECT max(at) FROM sample"  # noqa: S608
        " UNION ALL SELECT max(at) FROM arrival") if row[0] is not None]  # fmt: skip
    if not first or not last:
        return None
    return Span(_moment(min(map(_whole, first))), _moment(max(map(_whole, last))))


def read_nodes(reader: Reader) -> tuple[NodeKnown, ...]:
    """By name."""
    return tuple(NodeKnown(str(node), _moment(since), _moment(until),
                           parse_iso(str(heard)) if heard else None) for node, since, until, heard
                 in reader.rows(_NODES, [int(1000 * LONGEST_S)]))  # fmt: skip


def read_arrivals(reader: Reader, window: tuple[int, int], limit: int) -> tuple[Arrival, ...]:
    """In the order of time."""
    rows = reader.rows(f"{_ARRIVAL} WHERE at >= ? AND at < ? ORDER BY at DESC, rowid DESC LIMIT ?",
                       [*window, limit])  # fmt: skip
    return tuple(map(arrival_of, reversed(rows)))


def read_standing(reader: Reader, at: datetime, limit: int) -> tuple[Standing, ...]:
    """In the order in which they came."""
    rows = reader.rows(_STANDING, [ms_of(at), iso(at), limit])
    return tuple(Standing(arrival_of(row[:-2]), str(row[-2]), str(row[-1]))
                 for row in reversed(rows))  # fmt: skip


def read_stints(
    reader: Reader, window: tuple[int, int], nodes: Collection[str] | None, limit: int
) -> tuple[Stint, ...]:
    """By their claims."""
    since, until = window
    # One that is over, and one that runs, are found by the same index. An attempt that took no
    # time at all lies where it was claimed.
    rows = reader.rows(
        f"SELECT * FROM ({_STINT} WHERE ended_at >= ? AND claimed_at < ?"  # noqa: S608
        f" UNION ALL {_STINT} WHERE ended_at IS NULL AND claimed_at < ?)"
        " WHERE (ended_at IS NULL OR ended_at > ? OR claimed_at >= ?)"
        f"{_among('node', nodes)} ORDER BY claimed_at DESC, uid DESC, n DESC LIMIT ?",
        [since, until, until, since, since, *(nodes or ()), limit],
    )
    return tuple(map(stint_of, reversed(rows)))


def read_samples(
    reader: Reader, window: tuple[int, int], nodes: Collection[str] | None, limit: int
) -> tuple[Sample, ...]:
    """By time."""
    since, until = window
    rows = reader.rows(
        f"{_SAMPLE}{_among('node', nodes)} ORDER BY at DESC, node DESC LIMIT ?",
        [since - int(1000 * LONGEST_S), until, since, since, *(nodes or ()), limit],
    )
    return tuple(map(_sample, reversed(rows)))


def read_stranded(
    reader: Reader, window: tuple[int, int], limit: int
) -> tuple[StrandedStretch, ...]:
    """By their beginnings."""
    rows = reader.rows(
        "SELECT node, since, until, seconds, cause, rule, beside, uid FROM stranded_stretch"
        " WHERE until > ? AND since < ? ORDER BY since DESC, id DESC LIMIT ?",
        [*window, limit],
    )
    return tuple(
        StrandedStretch(str(node), _moment(since), _moment(until), _real(seconds), *map(str, words))
        for node, since, until, seconds, *words in reversed(rows)
    )


def read_moves(
    reader: Reader, since: datetime, until: datetime, limit: int
) -> tuple[MoveSeen, ...]:
    """By time."""
    rows = reader.rows(f"{_MOVE} WHERE at >= ? AND at < ? ORDER BY at DESC, id DESC LIMIT ?",
                       [iso(since), iso(until), limit])  # fmt: skip
    return tuple(map(move_of, reversed(rows)))


def read_life(
    reader: Reader, uid: str
) -> tuple[Arrival | None, tuple[Stint, ...], tuple[MoveSeen, ...]]:
    """One task's."""
    came = reader.rows(f"{_ARRIVAL} WHERE uid = ?", [uid])
    stints = reader.rows(f"{_STINT} WHERE uid = ? ORDER BY claimed_at, n LIMIT ?", [uid, UIDS_MAX])
    moves = reader.rows(f"{_MOVE} WHERE uid = ? ORDER BY id DESC LIMIT ?", [uid, UIDS_MAX])
    return (arrival_of(came[0]) if came else None, tuple(map(stint_of, stints)),
            tuple(map(move_of, reversed(moves))))  # fmt: skip


def read_feeds(reader: Reader, since: datetime, until: datetime) -> tuple[Feed, ...]:
    """The most first."""
    rows = reader.rows(
        f"SELECT busy, idle, {_MEANT}, count(*)"  # noqa: S608
        " FROM (SELECT uid, xfer, busy, idle, why, min(id)"
        f" FROM move WHERE at >= ? AND at < ? AND {CAME} GROUP BY xfer) AS m"
        " GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3",
        [iso(since), iso(until)],
    )
    return tuple(Feed(str(busy), str(idle), str(why), _whole(moves))
                 for busy, idle, why, moves in rows)  # fmt: skip


def read_runs(
    reader: Reader, since: datetime, until: datetime, *, sensor: str, limit: int
) -> tuple[RunSeen, ...]:
    """By time, each with what it kept by which rule."""
    rows = reader.rows(
        f"{_RUN} WHERE at >= ? AND at < ? AND (? = '' OR sensor = ?) ORDER BY id DESC LIMIT ?",
        [iso(since), iso(until), sensor, sensor, limit],
    )
    if not rows:
        return ()
    kept: dict[int, dict[str, int]] = {}
    for run, rule, count in reader.rows(
        "SELECT run, rule, sum(count) FROM decision WHERE run BETWEEN ? AND ? AND uid = ''"
        " GROUP BY run, rule", [rows[-1][0], rows[0][0]],
    ):  # fmt: skip
        kept.setdefault(_whole(run), {})[str(rule)] = _whole(count)
    return tuple(_run(row, kept.get(_whole(row[0]), {})) for row in reversed(rows))


def read_decisions(reader: Reader, run: int, limit: int) -> tuple[KeptSeen, ...]:
    """As they were written."""
    rows = reader.rows("SELECT node, rule, count, because, uid FROM decision WHERE run = ?"
                       " ORDER BY rowid LIMIT ?", [run, limit])  # fmt: skip
    return tuple(KeptSeen(str(node), str(rule), _whole(count), str(because), str(uid))
                 for node, rule, count, because, uid in rows)  # fmt: skip


def _among(column: str, nodes: Collection[str] | None) -> str:
    return "" if nodes is None else f" AND {column} IN ({','.join('?' * len(nodes))})"


def arrival_of(row: Row) -> Arrival:
    """In the order of `_ARRIVAL`."""
    at, uid, node, how, priority, domain, skills, needs, pinned, expected_s, source = row[:11]
    return Arrival(
        _moment(at), str(uid), str(node), str(how), cast("int | None", priority),
        cast("str | None", domain), _words(skills), _words(needs),
        None if pinned is None else bool(pinned), cast("float | None", expected_s),
        cast("str | None", source), _maybe(row[11]), _maybe(row[12]),
    )  # fmt: skip


def stint_of(row: Row) -> Stint:
    """In the order of `_STINT`."""
    node, uid, n, agent, claimed, started, ended, outcome, kind, domain, priority, cost = row
    return Stint(
        str(node), str(uid), _whole(n), str(agent), _moment(claimed), _maybe(started),
        _maybe(ended), str(outcome), str(kind), cast("str | None", domain),
        cast("int | None", priority), None if cost is None else _whole(cost) / UNIT,
    )  # fmt: skip


def _sample(row: Row) -> Sample:
    node, at, until, state, because, pending, running, slots, free, idle_since = row
    return Sample(
        str(node), _moment(at), _moment(until), str(state), str(because), _whole(pending),
        _whole(running), _whole(slots), _whole(free), _maybe(idle_since),
    )  # fmt: skip


def move_of(row: Row) -> MoveSeen:
    """In the order of `_MOVE`."""
    at, uid, busy, idle, outcome, why, rule, because, priority, run, xfer = row
    return MoveSeen(
        parse_iso(str(at)), str(uid), str(busy), str(idle), str(outcome), str(why), str(rule),
        str(because), cast("int | None", priority), cast("int | None", run), str(xfer),
    )  # fmt: skip


def _run(row: Row, kept: dict[str, int]) -> RunSeen:
    number, sensor, at, because, outcome, skipped, summary, code = row[:8]
    looked, unseen, decided, acted, requests = map(_whole, row[8:13])
    return RunSeen(
        _whole(number), str(sensor), parse_iso(str(at)), str(because), str(outcome), str(skipped),
        str(summary), str(code), looked, unseen, decided, acted, requests, _real(row[13]), kept,
    )  # fmt: skip


def _moment(value: object) -> datetime:
    return moment_of(_whole(value))


def _maybe(value: object) -> datetime | None:
    return None if value is None else _moment(value)


def _whole(value: object) -> int:
    return cast("int", value)


def _real(value: object) -> float:
    return float(cast("float", value))


def _words(value: object) -> tuple[str, ...] | None:
    return None if value is None else tuple(orjson.loads(str(value)))


def window_of(since: datetime, until: datetime) -> tuple[int, int]:
    """As the tables count time."""
    return ms_of(since), ms_of(until)

