"""Keeps when schedules were due last, which files were seen, and when rules asked for work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from agent_node.clock import Clock, iso, parse_iso

from .decisions.watching import End

if TYPE_CHECKING:
    from .journal import Row, Rows

CRON, FILES, WATCH = "cron", "files", "watch"
BUDGET = "budget"  # what was said of the fleet's money last stands there, too
ENDS_MAX = 20_000


@dataclass(frozen=True)
class LastAdded:
    """What a source of work did last."""

    kind: str
    name: str
    spec: str  # what it said then; another one begins anew
    seen_to: datetime  # up to here everything was considered
    last_at: datetime | None = None  # the time, or the moment, that work was added for last
    uid: str = ""  # of that task or graph
    outcome: str = ""  # added | exists | refused | missed
    because: str = ""
    missed: int = 0  # times since it began that got no work of their own


@dataclass(frozen=True)
class FileSeen:
    """A file as it was seen last. It is settled once work was added for it, or none is due."""

    path: str
    stamp: str  # size and time of change; another one means that somebody writes
    sha256: str
    settled: bool


class WorkBook:
    """What the sources of work remember from one look to the next."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows, self._clock = rows, clock

    def last(self, kind: str, name: str) -> LastAdded | None:
        """What this source did last; None: it is new."""
        rows = self._rows.read("SELECT * FROM source WHERE kind = ? AND name = ?", [kind, name])
        return _last(rows[0]) if rows else None

    def begin(
        self, kind: str, name: str, spec: str, at: datetime, *, because: str | None = None
    ) -> None:  # fmt: skip
        """From this moment on the source counts, as it is written now."""
        with self._rows.transaction():
            self._rows.write(
                "INSERT OR REPLACE INTO source (kind, name, spec, seen_to, because)"
                " VALUES (?,?,?,?,?)",
                [kind, name, spec, iso(at), because],
            )

    def considered(self, kind: str, name: str, at: datetime, *, missed: int = 0) -> None:
        """Everything up to here was looked at, and so many times in it get no work."""
        with self._rows.transaction():
            self._rows.write(
                "UPDATE source SET seen_to = ?, missed = missed + ? WHERE kind = ? AND name = ?",
                [iso(at), missed, kind, name],
            )

    def added(
        self, kind: str, name: str, *, at: datetime, uid: str, outcome: str, because: str = ""
    ) -> None:
        """Work was added for this time, or refused; on the disk before this returns."""
        with self._rows.transaction(durable=True):
            self._rows.write(
                "UPDATE source SET last_at = ?, uid = ?, outcome = ?, because = ?, added_at = ?"
                " WHERE kind = ? AND name = ?",
                [iso(at), uid, outcome, because, iso(self._clock.now()), kind, name],
            )

    def files(self, name: str) -> dict[str, FileSeen]:
        """The files of one source as they were seen last, by path."""
        rows = self._rows.read("SELECT * FROM watched_file WHERE name = ?", [name])
        return {str(row["path"]): FileSeen(str(row["path"]), str(row["stamp"]), str(row["sha256"]),
                                           bool(row["settled"])) for row in rows}  # fmt: skip

    def saw(self, name: str, files: Iterable[FileSeen], gone: Iterable[str] = ()) -> None:
        """The files are so now; those that are gone are forgotten."""
        with self._rows.transaction():
            self._rows.write_many(
                "INSERT OR REPLACE INTO watched_file (name, path, stamp, sha256, settled)"
                " VALUES (?,?,?,?,?)",
                [(name, one.path, one.stamp, one.sha256, int(one.settled)) for one in files],
            )
            self._rows.write_many("DELETE FROM watched_file WHERE name = ? AND path = ?",
                                  [(name, path) for path in gone])  # fmt: skip

    def ends(self, *, within_s: float) -> list[End]:
        """How attempts ended on all nodes within the last seconds, the newest of them."""
        since = self._clock.now() - timedelta(seconds=within_s)
        rows = self._rows.read(
            "SELECT node, domain, well, at FROM ended WHERE at >= ? ORDER BY at DESC LIMIT ?",
            [iso(since), ENDS_MAX],
        )
        return [End(str(row["node"]), cast("str | None", row["domain"]), bool(row["well"]),
                    parse_iso(str(row["at"]))) for row in rows]  # fmt: skip

    def forget_others(self, kept: Iterable[tuple[str, str]]) -> None:
        """Sources that fleet.yaml does not have any more begin anew when they come back."""
        known = {(str(row["kind"]), str(row["name"])) for row in
                 self._rows.read("SELECT kind, name FROM source WHERE kind <> ?", [BUDGET])}
        gone = sorted(known - set(kept))
        if gone:
            with self._rows.transaction():
                self._rows.write_many("DELETE FROM source WHERE kind = ? AND name = ?", gone)
                files = [(name,) for kind, name in gone if kind == FILES]
                self._rows.write_many("DELETE FROM watched_file WHERE name = ?", files)


def _last(row: Row) -> LastAdded:
    at = row["last_at"]
    return LastAdded(
        str(row["kind"]), str(row["name"]), str(row["spec"]), parse_iso(str(row["seen_to"])),
        parse_iso(str(at)) if at else None, str(row["uid"] or ""), str(row["outcome"] or ""),
        str(row["because"] or ""), cast("int", row["missed"]),
    )  # fmt: skip
