"""Copies the whole database aside before its tables are changed, or says what room that needs."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from ..errors import DiskTrouble

SPARE = 4 * 1024 * 1024  # bytes that a copy has to leave free: the log of the change itself
_VERSION = "PRAGMA user_version"
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"


def back_up(db: sqlite3.Connection, path: Path, version: int) -> None:
    """A whole copy lies in backups/ when it returns: one of this very state that lies there
    already, or a new one. An earlier one is never replaced, and one that fails leaves nothing.
    """
    folder = path.parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    _sweep(folder)
    try:
        if not _is_there(db, folder, version):
            _check_room(db, path, folder)
            _copy(db, folder, version)
    except BaseException as error:
        with suppress(OSError):  # what went wrong first is told
            _sweep(folder)
        if _is_full(error):
            raise _no_room(path, folder, f"did not fit ({error})") from error
        raise


def _sweep(folder: Path) -> None:
    """Whoever holds the home's lock is the only one to copy: what is unfinished, nobody makes."""
    for left in folder.glob(".queue-v*"):
        left.unlink()


def _copy(db: sqlite3.Connection, folder: Path, version: int) -> None:
    target = folder / f"queue-v{version}.db"
    for number in range(2, 1000):
        if not target.exists():
            break
        target = folder / f"queue-v{version}-{number}.db"
    unfinished = folder / f".queue-v{version}.db.{os.getpid()}"
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
    copy = sqlite3.connect(unfinished)
    try:
        db.backup(copy)
    finally:
        copy.close()
    with open(unfinished, "rb") as file:
        os.fsync(file.fileno())
    unfinished.rename(target)
    names = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(names)
    finally:
        os.close(names)


def _check_room(db: sqlite3.Connection, path: Path, folder: Path) -> None:
    """Asked before the first byte: a copy that is cut off has filled the disk for everybody."""
    (pages,), (size,) = (db.execute(f"PRAGMA page_{what}").fetchone() for what in ("count", "size"))
    needed, found = pages * size + SPARE, os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if found.f_blocks and free < needed:  # without blocks nobody says what is free
        raise _no_room(path, folder, f"needs {needed} bytes free, and {free} are")


def _no_room(path: Path, folder: Path, why: str) -> DiskTrouble:
    return DiskTrouble(
        f"{folder}: the copy of {path.name} that is made before its tables are changed {why};"
        f" nothing was changed. Free some space, or move older copies elsewhere: ls -l {folder}"
    )


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_FULL")


def _is_there(db: sqlite3.Connection, folder: Path, version: int) -> bool:
    """Whether a whole copy of just this state lies there: a change that failed after its copy is
    tried again at each start, and would leave one more each time.
    """
    copies = [*folder.glob(f"queue-v{version}.db"), *folder.glob(f"queue-v{version}-*.db")]
    return any(_is_alike(db, copy) for copy in copies if copy.is_file())


def _is_alike(db: sqlite3.Connection, path: Path) -> bool:
    """Row by row through SQLite: who opens and closes the file itself drops SQLite's locks on it.
    A copy that cannot be read is none.
    """
    try:
        copy = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error:
        return False
    try:
        whole = copy.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        tables = [name for (name,) in copy.execute(_TABLES)]
        asked = (_VERSION, _SCHEMA, *(f'SELECT * FROM "{name}"' for name in tables))
        return whole and all(_say_alike(db, copy, query) for query in asked)
    except sqlite3.Error:
        return False
    finally:
        copy.close()


def _say_alike(db: sqlite3.Connection, copy: sqlite3.Connection, query: str) -> bool:
    pairs = zip_longest(db.execute(query), copy.execute(query))
    return all(ours == its for ours, its in pairs)
