"""Remembers what was seen, decided and moved, in one SQLite file that only the hub writes."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from sqlite_utils import Database

from agent_node.clock import Clock, iso
from agent_node.failpoints import failpoint
from agent_node.wreck import let_go

from .errors import MachineFailed, StateBroken
from .exhausted import no_fault_of_the_file
from .fences import FenceFile
from .journal_ahead import put_right
from .journal_deliveries import DeliveryBook
from .journal_disk import is_failed, last_failure, leave_word, write_down
from .journal_ends import EndBook
from .journal_history import HistoryBook
from .journal_lives import LifeBook
from .journal_nodes import NodeBook
from .journal_notices import NoticeBook
from .journal_outbox import OutBook
from .journal_runs import RunBook
from .journal_tables import STEPS
from .journal_tallies import TallyBook
from .journal_ties import TieBook
from .journal_words import WordBook
from .journal_work import WorkBook

KEEP_DAYS = 30  # runs with their decisions, and log lines
KEEP_MOVES_DAYS = 365
NEVER = ""  # no stamp is older than that
ROWS_MAX = {"run": 100_000, "line": 200_000, "move": 500_000, "alert": 20_000, "ended": 200_000,
            "task_end": 200_000, "end_told": 200_000, "birth": 200_000,
            "owed_cancel": 200_000, "notice": 50_000, "tie": 500_000,
            "attempt_cost": 200_000,
            "delivery": 200_000}  # fmt: skip
# An end that a store was told of stays as long as that is remembered: without it, the task would
# be taken to live again.
_UNTOLD = ("AND NOT EXISTS (SELECT 1 FROM end_told AS t"
           " WHERE t.uid = task_end.uid AND t.node = task_end.node)")  # fmt: skip
# A trouble that stands is known for as long as it does, and that it was told as well: else it would
# begin anew, and be told again.
_OVER = ("AND NOT EXISTS (SELECT 1 FROM alert WHERE alert.ended_at IS NULL"
         " AND alert.node = notice.node AND alert.at = notice.at)")  # fmt: skip
CHUNK = 5_000  # rows that one pruning takes away at most, so that it never takes long

Value = str | int | float | None
Row = dict[str, Value]


class Rows:
    """The journal's rows by plain SQL; a damaged or full disk is one error that says what to do.

    Once its disk failed nothing is asked of it any more, and `broke` is told why: what this
    connection would answer may not be on the disk, so only another process may go on.
    """

    def __init__(self, database: Database, path: Path, broke: Callable[[str], None]) -> None:
        self._database, self._path = database, path
        self._inode = os.stat(path).st_ino
        self._broke, self.broken = broke, ""

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Every row that the question finds, by its columns' names."""
        with self._said():
            found = self._database.execute(sql, list(values))
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]

    def write(self, sql: str, values: Sequence[Value] = ()) -> int:
        """Change rows inside a transaction; the id of what was inserted last."""
        with self._said():
            return self._database.execute(sql, list(values)).lastrowid or 0

    def write_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        """The same statement for each of these rows."""
        with self._said():
            self._database.conn.executemany(sql, rows)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """All of it or nothing. `durable`: on the disk before this returns, for what a person said;
        anything else may lose its last moments with the machine's power, never its form. One within
        another is a part of it.
        """
        if self._database.conn.in_transaction and not durable:
            yield
            return
        with self._said():
            if durable:
                self._check_in_place()
                self._database.execute("PRAGMA synchronous=FULL")
            try:
                with self._database.atomic():
                    yield
                    failpoint("journal.before_commit")
                failpoint("journal.after_commit")
            finally:
                if durable and not self._database.conn.in_transaction:
                    self._database.execute("PRAGMA synchronous=NORMAL")

    def _check_in_place(self) -> None:
        """A file that was removed or replaced takes every word, and none of them comes back."""
        try:
            found = os.stat(self._path).st_ino
        except OSError:
            found = 0
        if found != self._inode:
            raise broken(self._path, "it was taken away while the hub runs; restart the hub")

    @contextmanager
    def _said(self) -> Iterator[None]:
        if self.broken:
            raise MachineFailed(self.broken)
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            if not is_failed(error):
                raise broken(self._path, why) from error
            raise self._break_off(why) from error

    def _break_off(self, why: str) -> MachineFailed:
        self.broken = (f"the hub's journal: its disk failed ({self._path}: {why}); whether the last"
                       " change is there is not known, and this hub ends, so that the next one"
                       " reads what is really on the disk")  # fmt: skip
        self._broke(self.broken)
        return MachineFailed(self.broken)


class Journal:
    """What the hub remembers. Fences lie beside it as well, so it may be moved away.

    One thread, one process: the lease's holder.
    """

    def __init__(
        self, path: Path, clock: Clock, *, broke: Callable[[str], None] = lambda because: None
    ) -> None:
        self.path, self._clock, self._tell = path, clock, broke
        self._database = _opened(path)
        self._rows = Rows(self._database, path, self._broke)
        self.tallies = TallyBook(self._rows, clock)
        self.runs = RunBook(self._rows, clock, self.tallies)
        self.nodes = NodeBook(self._rows, clock, self.tallies)
        self.ends = EndBook(self._rows)
        self.outbox = OutBook(self._rows, clock)
        self.work = WorkBook(self._rows, clock)
        self.notices = NoticeBook(self._rows, clock)
        self.history = HistoryBook(self._rows, clock)
        self.ties = TieBook(self._rows, clock)
        self.deliveries = DeliveryBook(self._rows, clock)
        self.lives = LifeBook(self._rows, clock)
        try:
            self.put_right()
            self.words = WordBook(self._rows, clock, FenceFile(path.parent))
            write_down(self)
            self.disk_failed = last_failure(self._rows, clock.now())  # before it was opened
        except BaseException:
            self.close()
            raise

    def _broke(self, because: str) -> None:
        leave_word(self.path, because, at=self._clock.now())
        self._tell(because)

    @property
    def changes(self) -> int:
        """How many rows were changed since it was opened: while it is the same, nothing was."""
        return self._database.conn.total_changes

    def put_right(self) -> None:
        """Call it when the wall clock was put back: what lies ahead of it counts as of now."""
        put_right(self._rows, self._clock.now())

    def ran_between(self, since: datetime, until: datetime) -> bool:
        """Whether any run of a sensor began then."""
        return bool(self._rows.read("SELECT 1 FROM run WHERE at BETWEEN ? AND ? LIMIT 1",
                                    [iso(since), iso(until)]))  # fmt: skip

    def prune(self, *, by_age: bool = True) -> None:
        """Let go of what is old, a bounded piece at a time; call it now and then. Not `by_age`:
        only of what is too much, where the clock of now is not to be believed. A cancel that is
        owed never grows old: a person's word holds until it is carried out, or there is no task.
        """
        now = self._clock.now()
        old = iso(now - timedelta(days=KEEP_DAYS)) if by_age else NEVER
        with self._rows.transaction():
            for table in ("run", "line", "ended", "end_told", "birth",
                          "tie", "attempt_cost", "delivery"):
                self._forget(table, old)
            self._forget("owed_cancel", NEVER)
            self._forget("alert", old, but="AND ended_at IS NOT NULL")
            self._forget("notice", old, but=_OVER)
            self._forget("task_end", old, but=_UNTOLD)
            self._forget("move", iso(now - timedelta(days=KEEP_MOVES_DAYS)) if by_age else NEVER)
            self._rows.write("DELETE FROM refusal WHERE at < ?", [iso(now - timedelta(days=1))])
            self._rows.write("DELETE FROM stranded WHERE day < ?", [old[:10]])
            self._rows.write("DELETE FROM replaced WHERE at < ?", [old])
            self._rows.write("DELETE FROM lost_task WHERE NOT EXISTS (SELECT 1 FROM replaced r"
                             " WHERE r.node = lost_task.node AND r.life = lost_task.life)")
            if by_age:
                self.tallies.fold()

    def _forget(self, table: str, old: str, *, but: str = "") -> None:
        """By age, and by number where a loud month would fill the disk."""
        self._rows.write(
            f"DELETE FROM {table} WHERE rowid IN"  # noqa: S608 - the names are our own
            f" (SELECT rowid FROM {table} WHERE (at < ? OR rowid <="
            f" (SELECT max(rowid) FROM {table}) - ?) {but} LIMIT ?)",
            [old, ROWS_MAX[table], CHUNK],
        )

    @contextmanager
    def together(self) -> Iterator[None]:
        """What several books write in here is one transaction: all of it or nothing."""
        with self._rows.transaction():
            yield

    def close(self) -> None:
        """Let go of the file; closing twice is fine."""
        let_go(self._database, broken=bool(self._rows.broken))


@no_fault_of_the_file()
def _opened(path: Path) -> Database:
    """The database, private, sound and with all its tables; `StateBroken` says what to do else."""
    database = None
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.chmod(path, 0o600)
        # A transaction of ours is begun by hand alone (`atomic`), never by the first statement.
        database = Database(sqlite3.connect(path, isolation_level=None), execute_plugins=False)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            database.execute(f"PRAGMA {pragma}").fetchall()
        said = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if said != "ok":
            raise broken(path, str(said))
        STEPS.apply(database)
    except sqlite3.DatabaseError as error:
        if database is not None:
            let_go(database, broken=is_failed(error))
        raise broken(path, str(error)) from error
    except OSError as error:
        raise broken(path, error.strerror or str(error)) from error
    return database


def broken(path: Path, why: str) -> StateBroken:
    """The one error about the journal: which file, and what a person may do about it."""
    return StateBroken(
        f"{path}: the hub's journal cannot be used: {why}",
        hint=f"free the disk if it is full; else move it away ({_away(path)}) and start"
        " again: no task depends on it, but say again which nodes are fenced, suspended or paused",
        where=str(path),
    )


def _away(path: Path) -> str:
    """As a person types it: with its -wal and -shm, of which the newest words may stand in one."""
    folder = shlex.quote(str(path.with_suffix(".broken")))
    return f"mkdir -m 700 {folder} && mv {shlex.quote(str(path))}* {folder}"
