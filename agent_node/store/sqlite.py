"""Keeps the queue in SQLite: one connection writes, and each command is durable or not done."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, TypeVar, cast

from .. import commands
from ..artifacts import FOLDER
from ..budget import Money
from ..clock import Clock
from ..commands import Command
from ..errors import DiskBroken
from ..failpoints import failpoint
from ..queries import Query
from ..task import UNDERWAY, State
from ..wreck import let_go
from . import hearsay, quarantining
from .counting import counted
from .database import (
    check_whole,
    corrupt,
    given_up,
    lengthen_log,
    open_database,
    translate,
    translated,
)
from .forgetting import any_graphs
from .generation import GenerationFile, Mark, judge, machine_id
from .history import unknown_attempts
from .live import Live
from .naming import check_name, write_first_row
from .purses import note_budgets
from .transaction import Transaction
from .turns import last_moment
from .verbs import answer, carry_out
from .weights import any_weights

Outcome = TypeVar("Outcome")
Answer = TypeVar("Answer")

_BUSY = (State.READY, *UNDERWAY, State.ESCROW, State.HELD)
_FAILING = "SELECT name FROM agent WHERE streak <> 0"


class SqliteStore:
    """The store of one home; whoever makes one holds the home's lock."""

    def __init__(
        self, home: Path, db: sqlite3.Connection, *, clock: Clock, rng: Random, live: Live
    ) -> None:
        self.path = home / "queue.db"
        self.live = live
        self._db = db
        self._clock, self._rng = clock, rng
        self._file = GenerationFile(home / "generation")
        self._raised_at = clock.boottime()
        self.unraised = False  # something changed since the file was last told
        self.broken = False  # the disk failed: nothing may be built upon this connection
        self._owes_hearsay = False  # the file knows less, so it is written before the next answer
        self.applied = 0  # how often something was to be changed, whatever came of it
        self._counts = counted(db)
        live.failing.update(name for (name,) in db.execute(_FAILING))
        live.graphs, live.weighed = any_graphs(db), any_weights(db)
        live.paces.update(pace for (pace,) in db.execute("SELECT pace FROM pace"))
        self._note_idle(self._transaction())
        try:
            live.order_ms = last_moment(db)
        except (ValueError, OverflowError) as error:
            raise corrupt(home / "queue.db", error) from error
        note_budgets(self._transaction())

    def spend_within(self, money: Money, *, from_now_on: bool = True) -> None:
        """What node.toml says of money holds. `from_now_on`: what waits goes by it, too; who only
        looks in frees nobody, and rewrites no reason.
        """
        self.live.read_money(money, holds=from_now_on)
        self.applied += 1
        with self._reading():
            note_budgets(self._transaction())

    def apply(self, command: Command[Outcome], *, dry_run: bool = False) -> Outcome:
        """One command in one durable transaction; `dry_run` rolls it back and tells the same."""
        (outcome,) = self._carry_out([command], dry_run=dry_run)
        return cast("Outcome", outcome)

    def together(self, commands: Sequence[Command[object]]) -> list[object]:
        """Several commands in one durable transaction: all, or none."""
        return self._carry_out(commands, dry_run=False)

    def _carry_out(self, commands: Sequence[Command[Any]], *, dry_run: bool) -> list[object]:
        self.applied += 1
        self._check_disk()
        try:
            return self._in_transaction(commands, dry_run=dry_run)
        except DiskBroken:
            self.broken = True
            raise

    def _check_disk(self) -> None:
        if self.broken:
            raise DiskBroken(f"{self.path}: the disk failed before; it has to be opened anew")

    def _in_transaction(self, commands: Sequence[Command[Any]], *, dry_run: bool) -> list[object]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                tx = self._transaction()
                outcomes = [carry_out(tx, command) for command in commands]
                raised = self._raise_generation(tx) if tx.changed and not dry_run else None
                if not dry_run and (tx.heard or self._owes_hearsay):
                    hearsay.write_file(self._db, self.path.parent)
                    self._owes_hearsay = False
                failpoint("store.before_commit")
                self._db.execute("COMMIT" if tx.changed and not dry_run else "ROLLBACK")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            translate(error, self.path)
        if not dry_run:
            self._after_commit(tx, raised)
        return outcomes

    def _transaction(self) -> Transaction:
        return Transaction(
            self._db, clock=self._clock, rng=self._rng, live=self.live, counts=self._counts
        )

    def _raise_generation(self, tx: Transaction) -> Mark | None:
        """What the file is told: with every move, and once a second while anything else changes."""
        if not tx.generation_due and self._clock.boottime() - self._raised_at < 1.0:
            self.unraised = True
            return None
        node = tx.node
        return Mark(tx.raise_generation(), node.incarnation, node.machine)

    def _after_commit(self, tx: Transaction, raised: Mark | None) -> None:
        for state, number in tx.moved.items():
            self._counts[state] = self._counts.get(state, 0) + number
        self._note_idle(tx)
        self.live.order_ms = tx.order_ms or self.live.order_ms
        self.live.last_event, self.live.life, self.live.node = tx.last_event, tx.life, tx.known_node
        self.live.money_read = self.live.money_read and not tx.limit_looked
        try:
            self._write_beside(raised)
        except OSError as error:
            translate(error, self.path)

    def _write_beside(self, raised: Mark | None) -> None:
        """What has to be on the disk before the answer leaves; a repeat of it is harmless."""
        if raised is not None:
            failpoint("generation.before_file")
            self._file.write(raised)
            self.live.generation = raised.generation
            self._raised_at = self._clock.boottime()
            self.unraised = False

    def _note_idle(self, tx: Transaction) -> None:
        if self._counts.get("READY") or any(self._counts.get(state, 0) > 0 for state in _BUSY):
            self.live.idle_since = None
        else:  # a clock that is put back must not make a node idle since a time to come
            self.live.idle_since = min(self.live.idle_since or tx.stamp, tx.stamp)

    def read(self, query: Query[Answer]) -> Answer:
        """Answer from one consistent moment of the database."""
        (answered,) = self.read_all([query])
        return cast("Answer", answered)

    def read_all(self, queries: Sequence[Query[Any]]) -> list[Any]:
        """Answer them all from one and the same moment. A read that fails breaks as a sync does:
        within a command it always did, and what cannot be read is no ground to write upon.
        """
        with self._reading():
            return self._read(queries)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._check_disk()
        try:
            with translated(self.path):
                yield
        except DiskBroken:
            self.broken = True
            raise

    def _read(self, queries: Sequence[Query[Any]]) -> list[Any]:
        self._db.execute("BEGIN")
        try:
            tx = self._transaction()
            return [answer(tx, query) for query in queries]
        finally:
            if self._db.in_transaction:  # SQLite may have rolled back by itself
                self._db.execute("ROLLBACK")

    @property
    def has_ready(self) -> bool:
        """Whether any task is READY."""
        return self._counts.get(State.READY, 0) > 0

    def node_state(self) -> str:
        """active, paused, draining or quarantined."""
        with self._reading():
            return str(self._db.execute("SELECT state FROM node").fetchone()[0])

    def close(self) -> None:
        """Let go of the database and of the generation file; a disk that failed syncs no more."""
        try:
            if self.unraised and not self.broken:
                self.apply(commands.Raise())
        finally:
            self._file.close()
            let_go(self._db, broken=self.broken)

    def settle_in(
        self, *, machine: str, unknown_attempts: list[str], distrust: str = ""
    ) -> str | None:
        """Judge the database against its file; a restored or copied one is quarantined here.

        `distrust` is why it is one, where the caller knows that by itself.
        """
        self._take_back_hearsay()
        tx = self._transaction()
        node, file = tx.node, self._file.read()
        mark = Mark(tx.generation, node.incarnation, node.machine)
        why = distrust or self._file.copied(self.path) or judge(
            database=mark, file=file, here=machine, unknown_attempts=unknown_attempts
        )
        self.live.generation = mark.generation
        self._settle(why, mark, file, machine=machine)
        self._file.keep_place(self.path)  # only now: a copy that dies here is looked at again
        return why

    def _settle(self, why: str | None, mark: Mark, file: Mark | None, *, machine: str) -> None:
        node = self._transaction().node
        if why is None:
            if mark.generation == 0:
                self._file.write(mark)  # first: a database that has come further needs its file
                self.apply(commands.Raise())
            elif file != mark:
                self._file.write(mark)
        elif node.state != "quarantined" or (file and file.generation > mark.generation):
            self._quarantine(why, machine=machine, newest=file or mark)

    def _take_back_hearsay(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            whole = hearsay.read_file(self._transaction(), self.path.parent)
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        self._owes_hearsay = not whole

    def _quarantine(self, why: str, *, machine: str, newest: Mark) -> None:
        """Under an incarnation later than any that this home had, in whichever file it stands."""
        self._db.execute("BEGIN IMMEDIATE")
        tx = self._transaction()
        tx.set_node(
            state="active", machine=machine, counted_event=tx.newest_event,
            generation=max(tx.generation, newest.generation),
            incarnation=max(tx.node.incarnation, newest.incarnation),
        )  # fmt: skip
        quarantining.enter_quarantine(tx, why, by="agent-node")
        tx.flush()
        raised = self._raise_generation(tx)
        self._db.execute("COMMIT")
        self._after_commit(tx, raised)


def open_store(
    home: Path, *, name: str | None, clock: Clock, rng: Random | None = None, journal: str = "wal",
    queue_max: int = 10_000, machine: str | None = None, check: bool = False,
) -> SqliteStore:  # fmt: skip
    """The store of this home. The caller holds the home's lock. `name` None: whoever's it is.

    `check` is for who stays: it reads the whole file, and lays out the log for many commits.
    """
    path, chance, here = home / "queue.db", rng or SystemRandom(), machine or machine_id()
    db = open_database(path, journal=journal)
    with given_up(db, path):
        if check:
            check_whole(db, path)
        if name is not None:
            write_first_row(db, path, name=name, clock=clock, rng=chance, machine=here)
        check_name(db, name)
        live = Live(queue_max=queue_max, tasks_dir=home / "tasks",
                    artifacts_dir=home / FOLDER)  # fmt: skip
        store = SqliteStore(home, db, clock=clock, rng=chance, live=live)
        store.settle_in(machine=here, unknown_attempts=unknown_attempts(db, home / "tasks"))
        if check:
            lengthen_log(path)
    return store
