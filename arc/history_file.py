"""Opens the hub's journal for a reader beside the hub: read-only, for one question at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from .errors import NoHistory, StateBroken

WAIT_S = 5.0  # for a hub that is recovering its journal; otherwise nobody waits for anybody
_NEEDED = {"arrival", "stint", "sample", "stranded_stretch", "met", "move", "run", "decision"}
_NEWEST = ("ended_at",)  # a column of `arrival`; whoever writes it has all that is read here

Row = tuple[str | int | float | None, ...]


class Reader:
    """One short look into the journal: what it reads, it reads as of one moment."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def rows(self, sql: str, values: Sequence[str | float | None] = ()) -> list[Row]:
        """Every row that the question finds."""
        return self._database.execute(sql, values).fetchall()

    def each(self, sql: str, values: Sequence[str | float | None] = ()) -> Iterator[Row]:
        """The same one by one, where a hundred thousand of them are only added up."""
        yield from self._database.execute(sql, values)


@contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """The journal, as it is at this moment. It is neither changed nor checkpointed, and its writer
    never waits. `NoHistory`: there is none here; `StateBroken`: it cannot be read.
    """
    if not path.is_file():
        raise NoHistory(f"{path}: no hub has kept anything here yet", where=str(path))
    uri = f"{path.resolve().as_uri()}?mode=ro"
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=WAIT_S, isolation_level=None)
        ) as database:
            database.execute("PRAGMA query_only = 1")
            database.execute("BEGIN")
            _check(database, path)
            yield Reader(database)
    except sqlite3.DatabaseError as error:
        raise StateBroken(
            f"{path}: the hub's journal cannot be read: {error}", where=str(path),
            hint="arc doctor   ·   a hub that runs goes on without this reader",
        ) from error  # fmt: skip


def _check(database: sqlite3.Connection, path: Path) -> None:
    found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    names = {str(name) for (name,) in found}
    columns = database.execute("SELECT name FROM pragma_table_info('arrival')").fetchall()
    if not names >= _NEEDED or _NEWEST not in columns:
        raise NoHistory(f"{path}: the hub that wrote this keeps no history yet", where=str(path),
                        hint="start the hub once with this version: arc up")  # fmt: skip
