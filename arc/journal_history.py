"""Keeps a fleet's history: which tasks came, their attempts, and where free slots were stranded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

import orjson

from agent_node.clock import Clock

from .decisions.lives import (
    ANEW,
    OVER,
    READY,
    Came,
    Claimed,
    Ended,
    Lives,
    Started,
    Step,
    Traits,
    Turned,
)
from .decisions.stranded import Stranded
from .decisions.usual import Runs, typical_of
from .history_seen import UNKNOWN
from .journal_samples import SampleBook, moment_of, ms_of

if TYPE_CHECKING:
    from .journal import Rows, Value

KEEP_HISTORY_DAYS = 14
ROWS_MAX = {"arrival": 2_000_000, "stint": 2_000_000, "sample": 4_000_000,
            "stranded_stretch": 200_000}  # fmt: skip
NODE_STEPS_MAX = 60_000  # of one node and hour: it cannot push out what is known of the others
CHUNK = 20_000  # rows that one pruning takes away at most, so that it never takes long
TOUCHES_MS = 1000  # two stretches that are closer are one
TYPICAL_OF = 50  # ends of a domain that make up what is typical for it,
ENDS_READ = 2000  # that are looked at to find those
_TIMES = {"arrival": "at", "stint": "ended_at", "sample": "at", "stranded_stretch": "until"}

_CAME = """
INSERT INTO arrival (uid, at, node, how, priority, domain, skills, needs, pinned, expected_s,
                     source, ready_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT DO UPDATE SET
  at = iif(excluded.how = 'added' AND how <> 'added', excluded.at, at),
  node = iif(excluded.how = 'added' AND how <> 'added', excluded.node, node),
  how = iif(excluded.how = 'added', 'added', how),
  priority = coalesce(priority, excluded.priority), domain = coalesce(domain, excluded.domain),
  skills = coalesce(skills, excluded.skills), needs = coalesce(needs, excluded.needs),
  pinned = coalesce(pinned, excluded.pinned),
  expected_s = coalesce(expected_s, excluded.expected_s),
  source = coalesce(source, excluded.source),
  ready_at = max(iif(excluded.how = 'added' AND how <> 'added', excluded.at, at),
                 min(coalesce(excluded.ready_at, ready_at), coalesce(ready_at, excluded.ready_at)))
 WHERE how <> 'added' OR priority IS NULL
"""
# A turn is believed of the node where the task came, or to which it was moved, and of no other: a
# node that lies cannot end what is another's. A move of which the end is in doubt counts as one.
_IS_THERE = """
 AND (node = ?3 OR EXISTS (SELECT 1 FROM move WHERE move.uid = ?2 AND idle = ?3
                            AND (outcome <> 'kept' OR rule = 'taker_has_it')))
"""
_READY = "UPDATE arrival SET ready_at = max(at, min(coalesce(ready_at, ?1), ?1)) WHERE uid = ?2"
# Of a history that is heard again the first word stays, until it is taken back once more.
_OVER = "UPDATE arrival SET ended_at = max(at, ?1) WHERE uid = ?2 AND ended_at IS NULL"
_ANEW = "UPDATE arrival SET ended_at = NULL WHERE uid = ?2"
_TURNS = {READY: _READY, OVER: _OVER, ANEW: _ANEW}
_CLAIMED = """
INSERT INTO stint (node, life, uid, n, agent, domain, priority, expected_s, claimed_at, outcome)
VALUES (?,?,?,?,?,?,?,?,?,'') ON CONFLICT DO NOTHING
"""
_STARTED = """
UPDATE stint SET started_at = max(?, claimed_at)
 WHERE uid = ? AND n = ? AND node = ? AND started_at IS NULL
"""
# An end that was heard takes the place of one that was only supposed; nothing else changes an end.
_ENDED = """
INSERT INTO stint (node, life, uid, n, agent, domain, claimed_at, started_at, ended_at, outcome,
                   error_kind, cost)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT DO UPDATE SET ended_at = max(excluded.ended_at, coalesce(started_at, claimed_at)),
  outcome = excluded.outcome, error_kind = excluded.error_kind, cost = excluded.cost,
  domain = coalesce(domain, excluded.domain)
 WHERE outcome IN ('', 'unknown')
"""
_ENDED_ANY = """
UPDATE stint SET ended_at = max(?, coalesce(started_at, claimed_at)), outcome = ?
 WHERE uid = ? AND node = ? AND outcome = '' AND claimed_at <= ?
"""
_LOST = """
UPDATE stint SET ended_at = max(?, coalesce(started_at, claimed_at)), outcome = ?
 WHERE ended_at IS NULL AND node = ? AND life <> ?
"""
_LASTED = """
SELECT coalesce(domain, '') AS domain,
       (ended_at - coalesce(started_at, claimed_at)) / 1e3 AS seconds
  FROM stint WHERE ended_at IS NOT NULL AND outcome = 'completed' ORDER BY ended_at DESC LIMIT ?
"""
_OPEN = """
SELECT node, claimed_at, coalesce(domain, '') AS domain, expected_s
  FROM stint WHERE ended_at IS NULL ORDER BY claimed_at DESC LIMIT ?
"""
OPEN_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Usual:
    """What tasks usually take, by domain, and what runs on each node."""

    heard: int  # how much had been heard then
    typical_s: Mapping[str, float]
    running: Mapping[str, Sequence[Runs]]


class HistoryBook:
    """What the fleet's history is made of. Whatever is heard twice is written once."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock
        self.samples = SampleBook(rows, clock)
        self.heard = 0  # grows with every step: what was computed before is stale then
        self._spent: Counter[str] = Counter()  # steps of each node in this hour
        self._heard_at: dict[str, datetime] = {}
        self._usual: Usual | None = None
        self._said: set[str] = set()  # of which nodes it was told in this hour what was wrong
        self._hour = -1

    def hear(self, node: str, life: str, lives: Lives) -> Counter[str]:
        """These things happened on this node, in its present incarnation.

        What of it was not believed or not kept, by what was wrong: once a node and hour, so that a
        node that lies does not fill the log either.
        """
        now = self._heard_at[node] = self._clock.now()
        since = now - timedelta(days=KEEP_HISTORY_DAYS)
        kept = [step for step in lives.steps if step.at >= since]
        room = self._room(node, now)
        wrong = lives.unbelieved + Counter({"too_many": max(len(kept) - room, 0)})
        kept = kept[:room]
        if kept:
            self._spent[node] += len(kept)
            self.heard += len(kept)
            with self._rows.transaction():
                for step in kept:  # in order: what was claimed may have ended on the same page
                    self._write(node, life, step)
        if not wrong or node in self._said:
            return Counter()
        self._said.add(node)
        return wrong

    def _room(self, node: str, now: datetime) -> int:
        hour = int(now.timestamp() // 3600)
        if hour != self._hour:
            self._hour = hour
            self._spent.clear()
            self._said.clear()
        return max(NODE_STEPS_MAX - self._spent[node], 0)

    def _write(self, node: str, life: str, step: Step) -> None:
        at = ms_of(step.at)
        match step:
            case Came():
                self._rows.write(_CAME, [step.uid, at, node, step.how, *_columns(step.traits),
                                         at if step.ready else None])  # fmt: skip
            case Claimed():
                traits = step.traits
                self._rows.write(_CLAIMED, [
                    node, life, step.uid, step.n, step.agent, traits.domain, traits.priority,
                    traits.expected_s, at])  # fmt: skip
            case Started():
                self._rows.write(_STARTED, [at, step.uid, step.n, node])
            case Turned():
                self._rows.write(_TURNS[step.to] + _IS_THERE, [at, step.uid, node])
            case Ended(n=None):
                self._rows.write(_ENDED_ANY, [at, step.outcome, step.uid, node, at])
            case Ended():
                began = at - int(1000 * (step.duration_s or 0.0))
                self._rows.write(_ENDED, [
                    node, life, step.uid, step.n, step.agent, step.domain, began, at,
                    step.outcome, step.error_kind, step.cost])  # fmt: skip

    def came_back(self, node: str, life: str, known: datetime | None) -> None:
        """The node is another incarnation than before: what ran there is not known to have ended,
        and was last known to run when the node was heard last.
        """
        at = ms_of(known or self._clock.now())
        with self._rows.transaction():
            self._rows.write(_LOST, [at, UNKNOWN, node, life])

    def strand(self, charged: Iterable[tuple[Stranded, float]]) -> None:
        """Each of these is stranded now, and has been for so many seconds, as they are added up."""
        until = ms_of(self._clock.now())
        with self._rows.transaction():
            for one, seconds in charged:
                if seconds > 0:
                    self._stretch(one, until - round(1000 * seconds), until, seconds)

    def _stretch(self, one: Stranded, since: int, until: int, seconds: float) -> None:
        """A stretch of the same kind that reaches up to here goes on."""
        last = self._rows.read(
            "SELECT id FROM stranded_stretch WHERE until BETWEEN ? AND ? AND node = ?"
            " AND cause = ? AND rule = ? AND beside = ? ORDER BY id DESC LIMIT 1",
            [since - TOUCHES_MS, until, one.node, one.cause, one.rule, one.beside],
        )
        if last:
            self._rows.write("UPDATE stranded_stretch SET until = ?, seconds = seconds + ?"
                             " WHERE id = ?", [until, seconds, last[0]["id"]])  # fmt: skip
            return
        self._rows.write(
            "INSERT INTO stranded_stretch (node, since, until, seconds, cause, rule, beside, uid)"
            " VALUES (?,?,?,?,?,?,?,?)",
            [one.node, since, until, seconds, one.cause, one.rule, one.beside, one.uid],
        )

    def usual(self) -> Usual:
        """How long tasks take and what runs, as of what was heard last; read anew only then."""
        if self._usual is None or self._usual.heard != self.heard:
            running: defaultdict[str, list[Runs]] = defaultdict(list)
            for row in self._rows.read(_OPEN, [OPEN_MAX]):
                running[str(row["node"])].append(Runs(
                    moment_of(cast("int", row["claimed_at"])), str(row["domain"]),
                    cast("float | None", row["expected_s"])))  # fmt: skip
            self._usual = Usual(self.heard, typical_of(self._lasted()), running)
        return self._usual

    def heard_at(self, node: str) -> datetime | None:
        """When the node was heard last; None: not since the hub started."""
        return self._heard_at.get(node)

    def _lasted(self) -> dict[str, list[float]]:
        found: defaultdict[str, list[float]] = defaultdict(list)
        for row in self._rows.read(_LASTED, [ENDS_READ]):
            some = found[str(row["domain"])]
            if len(some) < TYPICAL_OF:
                some.append(float(cast("float", row["seconds"])))
        return dict(found)

    def prune(self, *, by_age: bool = True) -> None:
        """Let go of what is old, or too much, a bounded piece at a time; call it now and then. Not
        `by_age`: only of what is too much.
        """
        old = ms_of(self._clock.now() - timedelta(days=KEEP_HISTORY_DAYS)) if by_age else 0
        with self._rows.transaction():
            for table, time in _TIMES.items():
                self._rows.write(
                    f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table}"  # noqa: S608
                    f" WHERE {time} < ? OR rowid <= (SELECT max(rowid) FROM {table}) - ? LIMIT ?)",
                    [old, ROWS_MAX[table], CHUNK],
                )


def _columns(traits: Traits) -> tuple[Value, ...]:
    """As the table of arrivals has them; NULL is not known."""
    return (
        traits.priority, traits.domain, _json(traits.skills), _json(traits.needs),
        None if traits.pinned is None else int(traits.pinned), traits.expected_s, traits.source,
    )  # fmt: skip


def _json(words: tuple[str, ...] | None) -> str | None:
    return None if words is None else orjson.dumps(words).decode()
