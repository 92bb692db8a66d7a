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
INSERT = (
    "INSERT INTO task (uid, state, priority, need, subject, body) VALUES (?, 'READY', ?, ?, ?, ?)"
)
# One seek for each word that the agent can do, then the more urgent of the few that are left.
_FIRST = (
    "SELECT * FROM (SELECT priority, seq FROM task"
    " WHERE state = 'READY' AND need = {} ORDER BY priority, seq LIMIT 1)"
)
CLAIM = (
    "UPDATE task SET state = 'CLAIMED', agent = ?, claimed_at = ? WHERE state = 'READY' AND seq ="
    f" (SELECT seq FROM ({_FIRST.format('?')} UNION ALL {_FIRST.format('?')})"
    " ORDER BY priority, seq LIMIT 1)"
    " RETURNING seq, uid, priority, need, subject, body"
)
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
    """Two transactions a task, one statement each; with `together`, one transaction."""

    def __init__(self, path: Path) -> None:
        self.db = connect(path)
        self.db.execute(TABLE)
        self.db.execute(INDEX)

    def add(self, tasks: Iterable[Plain]) -> None:
        """All of them in one transaction."""
        self.db.execute("BEGIN IMMEDIATE")
        rows = ((t.uid, t.priority, t.need, t.subject, t.body) for t in tasks)
        self.db.executemany(INSERT, rows)
        self.db.execute("COMMIT")

    def claim_and_complete(self, pairs: int) -> None:
        """So many tasks, each claimed durably and then completed durably."""
        for _ in range(pairs):
            ((seq, *_task),) = self.db.execute(CLAIM, ("iris", stamp(), "", "python")).fetchall()
            self.db.execute(COMPLETE, (stamp(), json.dumps(OUTPUT), seq))

    def complete_and_claim(self, pairs: int) -> None:
        """The same in one transaction a task: complete one, claim the next."""
        db = self.db
        ((seq, *_task),) = db.execute(CLAIM, ("iris", stamp(), "", "python")).fetchall()
        for _ in range(pairs):
            db.execute("BEGIN IMMEDIATE")
            db.execute(COMPLETE, (stamp(), json.dumps(OUTPUT), seq))
            ((seq, *_task),) = db.execute(CLAIM, ("iris", stamp(), "", "python")).fetchall()
            db.execute("COMMIT")

    def close(self) -> None:
        """Let go of the database."""
        self.db.close()
