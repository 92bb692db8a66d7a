"""Makes homes as an earlier version left them, with what a node of today has written down."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest

from agent_node.store import database
from agent_node.store.schema import STEPS


def an_empty_home(home: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new folder with the tables of that version, and nothing in them."""
    home.mkdir(mode=0o700)
    with monkeypatch.context() as patched:
        patched.setattr(database, "STEPS", STEPS[:version])
        patched.setattr(database, "VERSION", version)
        database.open_database(home / "queue.db", journal="wal").close()


def columns(db: sqlite3.Connection, table: str) -> str:
    """Those that the older table has."""
    return ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))


def take_over(db: sqlite3.Connection, today: Path, tables: Iterable[str]) -> None:
    """Every row of these tables, as far as the older ones have columns for it; `today` stays
    attached, and the generation is that of a home beside which no file lies.
    """
    db.execute("ATTACH ? AS today", (str(today / "queue.db"),))
    for table in tables:
        named = columns(db, table)
        db.execute(f"INSERT INTO main.{table} ({named}) SELECT {named} FROM today.{table}")
    db.execute("UPDATE main.node SET generation = 0")
