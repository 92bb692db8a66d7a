"""The queue that a good hand would write in plain sqlite3, with the same durability as ours."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

# No attempts, no events, no fences, no reasons: one table, and the index that the claim needs.
TABLE = """
CREATE TABLE task (
  seq INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,
  need TEXT NOT NULL,
  subject TEXT NOT NULL,
  body TEXT NOT NULL,
  agent TEXT,
  claimed_at TEXT,
  completed_at TEXT,
  output TEXT
)
"""
INDEX = "CREATE INDEX task_ready ON task (need, priority, seq) WHERE state = 'READY'"
# Which needs each agent meets: data, as with us; a task whose need nobody meets is skipped.
CAN = "CREATE TABLE can (agent TEXT, need TEXT, PRIMARY KEY (agent, need)) WITHOUT ROWID"
POWERS = "INSERT INTO can VALUES ('iris', ''), ('iris', 'python')"
INSERT = (
    "INSERT INTO task (uid, state, priority, need, subject, body) VALUES (?, 'READY', ?, ?, ?, ?)"
)
# One seek into the index for each need that the agent meets, then the most urgent of those few.
CLAIM = """
UPDATE task SET state = 'CLAIMED', agent = ?, claimed_at = ? WHERE state = 'READY' AND seq = (
  SELECT t.seq FROM can c JOIN task t ON t.seq = (
    SELECT r.seq FROM task r WHERE r.state = 'READY' AND r.need = c.need
     ORDER BY r.priority, r.seq LIMIT 1)
   WHERE c.agent = ? ORDER BY t.priority, t.seq LIMIT 1)
RETURNING seq, uid, priority, need, subject, body
"""
COMPLETE = (
    "UPDATE task SET state = 'COMPLETED', completed_at = ?, output = ?"
    " WHERE seq = ? AND state = 'CLAIMED'"
)
OUTPUT = {"ok": True}


class Plain(NamedTuple):
    """A task as both sides are given it."""

    uid: str
    priority: int
    need: str
    subject: str
    body: str


def connect(path: Path) -> sqlite3.Connection:
    """The same durability as the store: WAL, FULL, and the same cache and checkpoints."""
    db = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    for pragma in ("journal_mode = wal", "synchronous = FULL", "wal_autocheckpoint = 1000",
                   "cache_size = -4000", "mmap_size = 0"):  # fmt: skip
        db.execute(f"PRAGMA {pragma}").fetchall()
    return db


def stamp() -> str:
    """A time as text, the cheap way."""
    return f"{time.time():.3f}"


class FloorQueue:
    """Two transactions a task, one statement each; or both statements in one transaction."""

    def __init__(self, path: Path) -> None:
        self.db = connect(path)
        for statement in (TABLE, INDEX, CAN, POWERS):
            self.db.execute(statement)

    def add(self, tasks: Iterable[Plain]) -> None:
        """All of them in one transaction."""
        rows = ((t.uid, t.priority, t.need, t.subject, t.body) for t in tasks)
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(INSERT, rows)
        self.db.execute("COMMIT")

    def claim_and_complete(self, pairs: int) -> None:
        """So many tasks, each claimed durably and then completed durably."""
        db = self.db
        for _ in range(pairs):
            db.execute("BEGIN IMMEDIATE")
            seq, *_task = self._claim()
            db.execute("COMMIT")
            db.execute("BEGIN IMMEDIATE")
            self._complete(seq)
            db.execute("COMMIT")

    def without_begin(self, pairs: int) -> None:
        """The same, each statement left to be its own transaction: the least that there is."""
        for _ in range(pairs):
            seq, *_task = self._claim()
            self._complete(seq)

    def complete_and_claim(self, pairs: int) -> None:
        """Complete one and claim the next in one transaction, as our store does."""
        db = self.db
        seq, *_task = self._claim()
        for _ in range(pairs):
            db.execute("BEGIN IMMEDIATE")
            self._complete(seq)
            seq, *_task = self._claim()
            db.execute("COMMIT")

    def _claim(self) -> tuple[int, ...]:
        row: tuple[int, ...]
        (row,) = self.db.execute(CLAIM, ("iris", stamp(), "iris")).fetchall()
        return row

    def _complete(self, seq: int) -> None:
        if self.db.execute(COMPLETE, (stamp(), json.dumps(OUTPUT), seq)).rowcount != 1:
            raise LookupError(f"task {seq} was not claimed")

    def close(self) -> None:
        """Let go of the database."""
        self.db.close()
