"""Opens the one connection that ever writes, checks it, and brings its tables up to date."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from ..errors import DiskBroken, DiskTrouble, StoreCorrupt, StoreNewer, StoreUnusable
from ..failpoints import failpoint
from ..queries import InForce
from ..wreck import let_go
from .backups import back_up
from .schema import STEPS, VERSION, statements
from .transaction import Transaction

JOURNALS = ("wal", "truncate")
# name, what is set, what must be read back; a switch that fails is silent in SQLite.
_PRAGMAS = (
    ("synchronous", "FULL", 2),
    ("busy_timeout", "5000", 5000),
    ("foreign_keys", "ON", 1),
    ("trusted_schema", "OFF", 0),
    ("cell_size_check", "ON", 1),
    ("mmap_size", "0", 0),
    ("wal_autocheckpoint", "2000", 2000),
    ("cache_size", "-4000", -4000),
)


# Half of SQLite's own: a claim touches a dozen pages, and each is summed, written and synced whole.
PAGE = 2048
# The log is checkpointed at 2,000 frames of a page and its header, which is 4 MB, as much as 1,000
# of SQLite's own pages are; a large batch may go beyond.
LOG_LENGTH = 2200 * (PAGE + 24)


def open_database(path: Path, *, journal: str) -> sqlite3.Connection:
    """A checked connection with the tables of this version; the caller holds the home's lock."""
    fresh = not path.exists()
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        text = f"{path}: cannot be opened as a plain file: {error.strerror}"
        raise StoreUnusable(text) from error
    with translated(path):
        db = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        try:
            _configure(db, path, journal)
            _migrate(db, path, fresh=fresh)
            _check_schema(db, path)
        except BaseException as error:
            let_go(db, broken=_is_io(error))
            raise
    return db


def _configure(db: sqlite3.Connection, path: Path, journal: str) -> None:
    db.execute(f"PRAGMA page_size = {PAGE}")
    for name, value, expected in _PRAGMAS:
        db.execute(f"PRAGMA {name} = {value}")
        row = db.execute(f"PRAGMA {name}").fetchone()
        if row is not None and row[0] != expected:
            raise StoreUnusable(f"{path}: PRAGMA {name} is {row[0]}, not {expected}")
    (mode,) = db.execute(f"PRAGMA journal_mode = {journal}").fetchone()
    if mode != journal:
        raise StoreUnusable(f"{path}: journal_mode stays {mode} instead of {journal}")


def in_force(tx: Transaction, query: InForce) -> dict[str, str]:
    """By name, as SQLite has them now: a switch that fails is silent."""
    names = ("journal_mode", "synchronous", "wal_autocheckpoint", "busy_timeout")
    said = {name: str(tx.db.execute(f"PRAGMA {name}").fetchone()[0]) for name in names}
    return {**said, "sqlite": sqlite3.sqlite_version}


def lengthen_log(path: Path) -> None:
    """Give the write-ahead log its full length now, so that no commit has to make the file longer.

    A commit into bytes that are there costs one write to the disk, one beyond the end a commit of
    the file system's own journal as well: 2 ms instead of 0.1 on a node that was idle. SQLite
    takes zeros for the end of its log. On a full disk the log grows as it must.
    """
    try:
        log = os.open(f"{path}-wal", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:  # the other journal
        return
    size = was = os.fstat(log).st_size
    try:
        while size < LOG_LENGTH:
            size += os.pwrite(log, bytes(min(LOG_LENGTH - size, 2**20)), size)
        os.fsync(log)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        os.ftruncate(log, was)
    finally:
        os.close(log)


def _migrate(db: sqlite3.Connection, path: Path, *, fresh: bool) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise StoreNewer(
            f"{path} has tables of version {version}, this agent-node knows {VERSION};"
            " use the newer agent-node again, or put back a backup from before the upgrade"
        )
    if version < VERSION and not fresh and version > 0:
        back_up(db, path, version)
    for number in range(version + 1, VERSION + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements(STEPS[number - 1]):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {number}")
            failpoint("migrate.before_commit")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # SQLite may have rolled back by itself
                db.execute("ROLLBACK")
            raise


def _check_schema(db: sqlite3.Connection, path: Path) -> None:
    """We have no triggers and no views: one that is there came from somebody else."""
    query = "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view')"
    for kind, name in db.execute(query):
        raise StoreUnusable(f"{path} holds a {kind} named {name!r} that is not ours; drop it first")


def check_whole(db: sqlite3.Connection, path: Path) -> None:
    """Read the whole file once; a damaged one is refused as it lies."""
    with translated(path):
        (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise corrupt(path, said)


def corrupt(path: Path, why: object) -> StoreCorrupt:
    """The one error about a file that holds what we never wrote."""
    return StoreCorrupt(
        f"{path} is damaged: {why}. Nothing was changed. Copy the file and its -wal away, then put"
        f" back a good copy (backups in {path.parent / 'backups'}) or try: sqlite3 {path.name}"
        " .recover; the node quarantines an older copy by itself until you release its tasks"
    )


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors as ours: damaged, or the disk said no."""
    try:
        yield
    except sqlite3.Error as error:
        translate(error, path)
    except UnicodeDecodeError as error:  # we wrote UTF-8, so somebody else wrote this
        raise corrupt(path, error) from error


@contextmanager
def given_up(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """What fails inside is an error of ours, and the connection is let go of."""
    try:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            translate(error, path)
    except BaseException as error:
        let_go(db, broken=isinstance(error, DiskBroken))
        raise


def _is_io(error: BaseException) -> bool:
    return (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_IOERR")


def translate(error: sqlite3.Error | OSError, path: Path) -> NoReturn:
    """The same for one error, where a `with` would be felt: around every transaction.

    An `OSError` comes from the files beside the database: its log, the generation.
    """
    if isinstance(error, OSError):
        raise DiskBroken(
            f"{path.parent}: the files beside the database could not be written: {error};"
            " the change may have happened"
        ) from error
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        raise corrupt(path, error) from error
    if _is_io(error):
        raise DiskBroken(
            f"{path}: {error} ({name}): whether the change is on the disk is not known; the queue"
            " has to be opened anew"
        ) from error
    if name.startswith(("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        raise DiskTrouble(
            f"{path}: {error} ({name}): the change did not happen; free some space or see dmesg"
        ) from error
    if name.startswith("SQLITE_BUSY"):
        raise DiskTrouble(
            f"{path} is locked by another program that writes to it; end that program: {error}"
        ) from error
    raise error
