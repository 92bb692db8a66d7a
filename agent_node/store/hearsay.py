"""Remembers the latest incarnation heard of every node, also when the database is put back."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from ..attempts import EvidenceUnreadable, read_untrusted
from ..errors import BadInput, DiskBroken, DiskTrouble, StoreCorrupt
from ..moves import Fenced
from ..strict import decode_object
from .transaction import Transaction

FILE = "heard.json"
_LIMIT = 1024 * 1024
_HEAR = """
INSERT INTO peer (name, incarnation) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation
 WHERE excluded.incarnation > peer.incarnation
"""


def known_incarnation(tx: Transaction, node: str) -> str | None:
    """The latest incarnation of a node that was ever named here; None: it never was."""
    row = tx.db.execute("SELECT incarnation FROM peer WHERE name = ?", (node,)).fetchone()
    return None if row is None else str(row[0])


def hear_of(tx: Transaction, named: Iterable[Fenced]) -> None:
    """Remember these incarnations, where they are later than what was known."""
    for one in named:
        if one in tx.heard_of:
            continue
        tx.heard_of.add(one)
        if tx.db.execute(_HEAR, (one.node, one.incarnation)).rowcount:
            tx.changed = tx.heard = True


def write_file(db: sqlite3.Connection, home: Path) -> None:
    """The same beside the database, durable when it returns. Called before the COMMIT, for a full
    disk then undoes the command; a file that knows more than the database is harmless.
    """
    try:
        _replace(home, json.dumps({"incarnations": _known(db)}))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text = f"{home / FILE}: {error.strerror}: the change did not happen; free some space"
            raise DiskTrouble(text) from error
        raise DiskBroken(
            f"{home / FILE}: could not be written: {error}; the queue has to be opened anew"
        ) from error


def _known(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT name, incarnation FROM peer ORDER BY name").fetchall())


def _replace(home: Path, text: str) -> None:
    for left in home.glob(f".{FILE}.*"):  # whoever holds the home's lock is the only one to write
        left.unlink()
    fresh = home / f".{FILE}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(home / FILE)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_file(tx: Transaction, home: Path) -> bool:
    """Take back into the database what the file knows and an older copy of it does not. False:
    the database knows more than the file, which was lost, or whose writer was killed.
    """
    try:
        raw = read_untrusted(str(home / FILE), _LIMIT)
        said = None if raw is None else decode_object(raw, _LIMIT).get("incarnations")
    except (BadInput, EvidenceUnreadable) as error:
        text = f"{home / FILE} is damaged: {error}; remove it to start without it"
        raise StoreCorrupt(text) from error
    if not isinstance(said, dict):
        said = {}
    hear_of(tx, (Fenced(name, str(incarnation)) for name, incarnation in said.items()))
    return said == _known(tx.db)
