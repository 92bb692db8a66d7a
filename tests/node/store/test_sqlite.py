"""Holds the SQLite store against the contract of every store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from agent_node.store.sqlite import SqliteStore, open_store
from tests.store_contract import StoreContract


def read_only(place: Path) -> sqlite3.Connection:
    """The database as anybody else reads it: no lock, no write, the node none the wiser."""
    return sqlite3.connect(f"file:{place / 'queue.db'}?mode=ro", uri=True)


def dump_of(place: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every table with every row."""
    with closing(read_only(place)) as db:
        names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for (name,) in names}


_LOST = """
SELECT uid FROM task t WHERE state = 'COMPLETED' AND life IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM event e WHERE e.seq = t.end_event AND e.uid = t.uid AND e.state = 'COMPLETED')
"""


class Sqlite:
    """How the contract opens, reads and damages a SQLite store."""

    def open(self, place: Path, **settings: Any) -> SqliteStore:
        place.mkdir(mode=0o700, exist_ok=True)
        return open_store(place, **settings)

    def dump(self, place: Path) -> dict[str, list[tuple[object, ...]]]:
        return dump_of(place)

    def damage_spec(self, place: Path, uid: str) -> None:
        with closing(sqlite3.connect(place / "queue.db")) as db, db:
            changed = db.execute(
                "UPDATE task SET spec = replace(spec, 'coin', 'coim') WHERE uid = ?", (uid,)
            )
            assert changed.rowcount == 1

    def lost(self, place: Path) -> list[str]:
        if not (place / "queue.db").is_file():
            return []
        with closing(read_only(place)) as db:
            return [uid for (uid,) in db.execute(_LOST)]

    def force_state(self, place: Path, uid: str, state: str) -> None:
        with closing(sqlite3.connect(place / "queue.db")) as db, db:
            db.execute("UPDATE task SET state = ? WHERE uid = ?", (state, uid))


class TestSqlite(Sqlite, StoreContract):
    """WAL, the default."""


class TestSqliteWithoutWal(Sqlite, StoreContract):
    """`journal = "truncate"` in node.toml."""

    def open(self, place: Path, **settings: Any) -> SqliteStore:
        return super().open(place, journal="truncate", **settings)
