"""Keeps what the sensors did: runs, the reasons behind them, moves, and lines of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, cast

import orjson

from agent_node.clock import Clock, iso, parse_iso
from agent_node.strict import JsonObject

from .decisions.tallying import tally_run
from .history_seen import CAME
from .sensor import Decided, Moved, SensorReport

if TYPE_CHECKING:
    from .journal import Row, Rows
    from .journal_tallies import TallyBook

DECISIONS_MAX = 500  # kept of one run; what was cut is counted
PAGE = 100
UIDS_MAX = 500  # that one question names


@dataclass(frozen=True)
class Run:
    """One run as it was written down."""

    id: int
    at: datetime  # when it began
    because: str  # interval, by hand, or which event
    report: SensorReport

    @property
    def cut(self) -> int:
        """How many decisions were made and not kept one by one."""
        return self.report.cut


@dataclass(frozen=True)
class MoveLine:
    """One move as it was written down, with the run that made it; None: it was made by hand."""

    at: datetime
    run: int | None
    move: Moved


@dataclass(frozen=True)
class LogLine:
    """One line of `arc log`: an event and its fields, never a task's own words."""

    id: int
    at: datetime
    event: str
    sensor: str = ""
    run: int | None = None
    node: str = ""
    task: str = ""
    fields: JsonObject = field(default_factory=dict)


class RunBook:
    """Runs, decisions, moves and log lines; one transaction a run."""

    def __init__(self, rows: Rows, clock: Clock, tallies: TallyBook) -> None:
        self._rows, self._clock, self._tallies = rows, clock, tallies

    def add(self, report: SensorReport, *, began: datetime, because: str) -> int:
        """Write one run down, whole; its number."""
        kept = report.decisions[:DECISIONS_MAX]
        with self._rows.transaction():
            run = self._rows.write(
                "INSERT INTO run (sensor, because, at, outcome, skipped, summary, code, looked,"
                " unseen, decided, acted, requests, took_s, cut, details)"
                " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                [report.sensor, because, iso(began), report.outcome, report.skipped,
                 report.summary, report.code, report.looked, report.unseen, report.decided,
                 report.acted, report.requests, report.took_s,
                 report.cut + len(report.decisions) - len(kept),
                 orjson.dumps(report.details).decode()],
            )  # fmt: skip
            self._rows.write_many(
                "INSERT INTO decision (run, node, uid, rule, count, because) VALUES (?,?,?,?,?,?)",
                [(run, one.node, one.uid, one.rule, one.count, one.because) for one in kept],
            )
            self._add_moves(report.moves, run)
            self._tallies.add(tally_run(
                report.sensor, report.outcome, report.took_s,
                [(one.rule, one.count) for one in report.decisions if not one.uid],
                [(one.why, one.outcome) for one in report.moves],
            ))  # fmt: skip
        return run

    def add_moves(self, moves: tuple[Moved, ...]) -> None:
        """Write moves down that no sensor made."""
        with self._rows.transaction():
            self._add_moves(moves, None)

    def _add_moves(self, moves: tuple[Moved, ...], run: int | None) -> None:
        now = iso(self._clock.now())
        self._rows.write_many(
            "INSERT INTO move (run, at, xfer, uid, priority, busy, idle, busy_incarnation,"
            " idle_incarnation, why, rule, outcome, because) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
            [(run, now, one.xfer, one.uid, one.priority, one.busy, one.idle, one.busy_incarnation,
              one.idle_incarnation, one.why, one.rule, one.outcome, one.because) for one in moves],
        )  # fmt: skip

    def log(self, event: str, *, sensor: str = "", run: int | None = None, node: str = "",
            task: str = "", fields: JsonObject | None = None) -> None:  # fmt: skip
        """Add one line to the log; `fields` hold numbers, names and rules, no task's words."""
        with self._rows.transaction():
            self._rows.write(
                "INSERT INTO line (at, event, sensor, run, node, task, fields)"
                " VALUES (?,?,?,?,?,?,?)",
                [iso(self._clock.now()), event, sensor, run, node, task,
                 orjson.dumps(fields or {}).decode()],
            )  # fmt: skip

    def last(self, sensor: str, limit: int = 1, *, before: int | None = None) -> tuple[Run, ...]:
        """The newest runs of a sensor, newest first, without their decisions and moves."""
        rows = self._rows.read(
            "SELECT * FROM run WHERE sensor = ? AND id < ? ORDER BY id DESC LIMIT ?",
            [sensor, before or 2**62, limit],
        )
        return tuple(map(_run, rows))

    def last_that_ran(self, sensor: str, outcome: str = "done") -> Run | None:
        """The newest run with this outcome; None: there was none (yet, or any more)."""
        rows = self._rows.read(
            "SELECT * FROM run WHERE sensor = ? AND outcome = ? ORDER BY id DESC LIMIT 1",
            [sensor, outcome],
        )
        return _run(rows[0]) if rows else None

    def run(self, number: int) -> Run | None:
        """One run, whole; None: no such run is remembered."""
        rows = self._rows.read("SELECT * FROM run WHERE id = ?", [number])
        if not rows:
            return None
        decisions = tuple(map(_decided, self._rows.read(
            "SELECT * FROM decision WHERE run = ? ORDER BY rowid", [number])))  # fmt: skip
        moves = tuple(_move(row).move for row in self._rows.read(
            "SELECT * FROM move WHERE run = ? ORDER BY id", [number]))  # fmt: skip
        return _run(rows[0], decisions, moves)

    def decisions_about(self, uid: str, limit: int = PAGE) -> tuple[tuple[int, Decided], ...]:
        """Why this task stayed, newest first, each with the number of its run."""
        rows = self._rows.read(
            "SELECT * FROM decision WHERE uid = ? ORDER BY run DESC LIMIT ?", [uid, limit])
        return tuple((cast("int", row["run"]), _decided(row)) for row in rows)

    def stayed(self, uid: str, node: str) -> tuple[int, datetime | None]:
        """In how many runs this task stayed on this node since it came there, and when the first
        of them began; what runs said of it on its way there, or in the hub's queue, is not counted.
        """
        row = self._rows.read(
            "WITH came AS (SELECT run, at FROM move WHERE uid = ?1"  # noqa: S608
            f" AND {CAME} ORDER BY id DESC LIMIT 1)"
            " SELECT count(DISTINCT run.id) AS many, min(run.at) AS since"
            " FROM decision JOIN run ON run.id = decision.run"
            " WHERE decision.uid = ?1 AND decision.node = ?2"
            " AND run.id > coalesce((SELECT run FROM came), 0)"
            " AND run.at >= coalesce((SELECT at FROM came), '')",
            [uid, node],
        )[0]
        since = row["since"]
        return cast("int", row["many"]), parse_iso(str(since)) if since else None

    def moves(self, *, uid: str | None = None, since: datetime | None = None,
              limit: int = PAGE, outcome: str | None = None) -> tuple[MoveLine, ...]:  # fmt: skip
        """Moves, newest first: of one task, or of all since a moment; with any outcome, or this."""
        rows = self._rows.read(
            "SELECT * FROM move WHERE (?1 IS NULL OR uid = ?1) AND at >= ?2"
            " AND (?4 IS NULL OR outcome = ?4) ORDER BY id DESC LIMIT ?3",
            [uid, iso(since) if since else "", limit, outcome],
        )
        return tuple(map(_move, rows))

    def moves_of(self, runs: Sequence[int]) -> dict[int, list[Moved]]:
        """The moves of each of these runs, in the order they were written; of those that have any.

        Also where nothing was moved: what was kept, is in doubt, or was settled.
        """
        found: dict[int, list[Moved]] = {}
        query = "SELECT * FROM move WHERE run IN (SELECT value FROM json_each(?)) ORDER BY id"
        for row in self._rows.read(query, [orjson.dumps([*runs]).decode()]):
            found.setdefault(_whole(row, "run"), []).append(_move(row).move)
        return found

    def last_numbers(self) -> tuple[int, int]:
        """The numbers of the newest run and of the newest move; 0: there is none."""
        row = self._rows.read("SELECT (SELECT max(id) FROM run) AS run,"
                              " (SELECT max(id) FROM move) AS move")[0]  # fmt: skip
        return cast("int", row["run"] or 0), cast("int", row["move"] or 0)

    def count_moved(self, since: datetime) -> int:
        """How many moves were carried out since a moment."""
        row = self._rows.read(
            f"SELECT count(DISTINCT xfer) AS many FROM move WHERE at >= ? AND {CAME}",  # noqa: S608
            [iso(since)])
        return cast("int", row[0]["many"])

    def moved(self, uids: Sequence[str]) -> tuple[Moved, ...]:
        """Every move of these tasks that was carried out, oldest first; also by settling, where
        the taker has it.
        """
        found: list[Moved] = []
        for start in range(0, len(uids), UIDS_MAX):
            some = uids[start : start + UIDS_MAX]
            query = (f"SELECT * FROM move WHERE uid IN ({','.join('?' * len(some))})"  # noqa: S608
                     f" AND {CAME} ORDER BY id")  # fmt: skip
            found += [_move(row).move for row in self._rows.read(query, some)]
        return tuple(found)

    def refused_as_here(self, uid: str) -> frozenset[str]:
        """The nodes that were to be given this task, and said that they have or had it."""
        rows = self._rows.read("SELECT DISTINCT idle FROM move WHERE uid = ? AND outcome = 'kept'"
                               " AND rule = 'already_here'", [uid])  # fmt: skip
        return frozenset(str(row["idle"]) for row in rows)

    def wrote(self, event: str) -> bool:
        """Whether any line says so that is still kept, or any run or move that stands as one."""
        rows = self._rows.read(
            "SELECT EXISTS (SELECT 1 FROM line WHERE event = ?1)"
            " OR EXISTS (SELECT 1 FROM run WHERE 'run_' || outcome = ?1)"
            " OR EXISTS (SELECT 1 FROM move WHERE 'task_' || outcome = ?1) AS known",
            [event],
        )
        return bool(rows[0]["known"])

    def said_since(
        self, node: str, words: Sequence[str], *, over: Sequence[str]
    ) -> datetime | None:
        """When the first of these lines was written about a node or about all of them, after the
        last that says that it was `over`; None: there is none. Lines about one agent are neither.
        """
        rows = self._rows.read(
            "WITH said AS (SELECT id, event, at FROM line WHERE node IN (?, '')"
            " AND event IN (SELECT value FROM json_each(?))"
            " AND json_extract(fields, '$.agent') IS NULL)"
            " SELECT at FROM said WHERE id > (SELECT coalesce(max(id), 0) FROM said"
            " WHERE event IN (SELECT value FROM json_each(?))) ORDER BY id LIMIT 1",
            [node, orjson.dumps([*words, *over]).decode(), orjson.dumps([*over]).decode()],
        )
        return parse_iso(str(rows[0]["at"])) if rows else None

    def lines(self, *, since: datetime | None = None, after: int = 0,
              limit: int = PAGE) -> tuple[LogLine, ...]:  # fmt: skip
        """Log lines, oldest first, after a moment or after a line's number."""
        rows = self._rows.read(
            "SELECT * FROM line WHERE id > ? AND at >= ? ORDER BY id LIMIT ?",
            [after, iso(since) if since else "", limit],
        )
        return tuple(map(_line, rows))


def _run(row: Row, decisions: tuple[Decided, ...] = (), moves: tuple[Moved, ...] = ()) -> Run:
    report = SensorReport(
        sensor=str(row["sensor"]), outcome=str(row["outcome"]), summary=str(row["summary"]),
        looked=_whole(row, "looked"), unseen=_whole(row, "unseen"),
        decided=_whole(row, "decided"), acted=_whole(row, "acted"),
        requests=_whole(row, "requests"), took_s=float(cast("float", row["took_s"])),
        skipped=cast("str | None", row["skipped"]), details=orjson.loads(str(row["details"])),
        code=str(row["code"]), decisions=decisions, moves=moves, cut=_whole(row, "cut"),
    )  # fmt: skip
    at = parse_iso(str(row["at"]))
    return Run(id=_whole(row, "id"), at=at, because=str(row["because"]), report=report)


def _decided(row: Row) -> Decided:
    return Decided(node=str(row["node"]), rule=str(row["rule"]), count=_whole(row, "count"),
                   because=str(row["because"]), uid=str(row["uid"]))  # fmt: skip


def _move(row: Row) -> MoveLine:
    names = ("xfer", "uid", "busy", "idle", "outcome", "why", "rule", "because",
             "busy_incarnation", "idle_incarnation")  # fmt: skip
    move = Moved(**{name: str(row[name]) for name in names},
                 priority=cast("int | None", row["priority"]))  # fmt: skip
    at = parse_iso(str(row["at"]))
    return MoveLine(at=at, run=cast("int | None", row["run"]), move=move)


def _line(row: Row) -> LogLine:
    return LogLine(
        id=_whole(row, "id"), at=parse_iso(str(row["at"])), event=str(row["event"]),
        sensor=str(row["sensor"]), run=cast("int | None", row["run"]), node=str(row["node"]),
        task=str(row["task"]), fields=orjson.loads(str(row["fields"])),
    )  # fmt: skip


def _whole(row: Row, name: str) -> int:
    return int(cast("int", row[name]))
