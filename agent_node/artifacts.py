"""Keeps files that tasks left by what is in them, each whole under its hash or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from .failpoints import failpoint
from .job import NEW_FILE
from .plain_files import NotPlainFile, open_plain

PIECE = 1024 * 1024  # bytes that are read, written and hashed at a time
SIZE_MAX = 64 * 1024 * 1024  # bytes of one artifact
SYNC_EVERY = 8 * PIECE  # so that the last sync never has much to do
KEEP_S = 30 * 86_400.0  # what nobody refers to stays this long after it was written
LEFTOVER_S = 86_400.0  # what a crash or a sender left unfinished
LOOKED_AT_MAX = 10_000  # files that one round of forgetting looks at
FOLDER = "artifacts"  # in a home
NEW, PART = ".new-", ".part-"
is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch


@dataclass(frozen=True)
class Kept:
    """What was put on the shelf."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Piece:
    """Some bytes of an artifact, and how many it has in all."""

    data: bytes
    size: int


class Shelf:
    """The folder `artifacts` of a home: `ab/SHA256`, for its owner alone."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path_of(self, sha256: str) -> Path:
        """Where an artifact of this hash stands, or would."""
        return path_of(self.root, sha256)

    def has(self, sha256: str) -> int | None:
        """How many bytes it has; None: it is not here."""
        return size_of(self.root, sha256)

    def open(self, sha256: str) -> int | None:
        """A descriptor to read it by, which the caller closes; None: it is not here."""
        try:
            return open_plain(self.path_of(sha256), os.O_RDONLY)
        except (FileNotFoundError, NotPlainFile):
            return None

    def read(self, sha256: str, offset: int, limit: int) -> Piece | None:
        """Up to `limit` bytes from `offset` on; None: it is not here."""
        descriptor = self.open(sha256)
        if descriptor is None:
            return None
        try:
            return Piece(os.pread(descriptor, limit, offset), os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)

    def write(self) -> Writing:
        """A new artifact, whose hash is known when its bytes are."""
        make_folder(self.root)
        return Writing(self)

    def put_in_place(self, aside: Path, sha256: str) -> None:
        """What is whole and synced gets its name; a damaged one of that name is replaced so."""
        folder = self.path_of(sha256).parent
        make_folder(folder)
        failpoint("artifact.before_rename")
        os.rename(aside, self.path_of(sha256))
        failpoint("artifact.after_rename")
        sync_folder(folder)

    def throw_away(self, sha256: str) -> None:
        """It is not what its name says; whoever needs it asks for it again."""
        self.path_of(sha256).unlink(missing_ok=True)

    def forget(self, needed: Callable[[Collection[str]], Collection[str]]) -> int:
        """Let go of what is old and needed by nobody, and of what was never finished."""
        now, old = time.time(), list[Path]()
        for entry in _files(self.root):
            with suppress(FileNotFoundError):
                age_s = now - entry.stat().st_mtime
                if entry.name.startswith((NEW, PART)):
                    if age_s > LEFTOVER_S:
                        entry.unlink()
                elif age_s > KEEP_S:
                    old.append(entry)
        kept = needed([entry.name for entry in old]) if old else ()
        gone = [entry for entry in old if entry.name not in kept]
        for entry in gone:
            entry.unlink(missing_ok=True)
        return len(gone)


def shelf_of(home: Path) -> Shelf:
    """The shelf of the node whose home this is."""
    return Shelf(home / FOLDER)


class Writing:
    """Bytes under a name that nobody looks for; unless they are kept they are gone at the end."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._path = shelf.root / f"{NEW}{os.urandom(8).hex()}"
        self._descriptor = os.open(self._path, NEW_FILE, 0o600)
        self._hash = hashlib.sha256()
        self._kept = False
        self.size = 0

    def add(self, data: bytes) -> None:
        """The next bytes, at most a piece."""
        write_all(self._descriptor, data)
        self._hash.update(data)
        self.size += len(data)
        if self.size % SYNC_EVERY < len(data):
            os.fdatasync(self._descriptor)

    def keep(self) -> Kept:
        """Nothing more comes: on the disk, in its place, and there after a power cut."""
        sha256 = self._hash.hexdigest()
        sync(self._descriptor)
        self._shelf.put_in_place(self._path, sha256)
        self._kept = True
        return Kept(sha256, self.size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)
        if not self._kept:
            self._path.unlink(missing_ok=True)


def path_of(root: Path, sha256: str) -> Path:
    """Where an artifact of this hash stands in this folder; a strange hash never becomes a path."""
    if not is_sha256(sha256):
        raise ValueError(f"{sha256!r} is no sha256 in hex")
    return root / sha256[:2] / sha256


def size_of(root: Path, sha256: str) -> int | None:
    """How many bytes it has; None: it is not here. One look at the folder."""
    try:
        found = os.lstat(path_of(root, sha256))
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def write_all(descriptor: int, data: bytes) -> None:
    """Every byte, or the disk's word why not."""
    failpoint("artifact.before_write")
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def sync(descriptor: int) -> None:
    """What was written is on the disk when this returns."""
    failpoint("artifact.before_sync")
    os.fsync(descriptor)


def make_folder(path: Path) -> None:
    """A folder for its owner alone whose name is on the disk; one that is there stays."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """The names in it are on the disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(root: Path) -> list[Path]:
    """Everything that lies there, one level deep, up to a bound."""
    found: list[Path] = []
    try:
        for entry in root.iterdir():
            found += entry.iterdir() if len(entry.name) == len("ab") else [entry]
            if len(found) >= LOOKED_AT_MAX:
                break
    except (FileNotFoundError, NotADirectoryError):
        return found
    return found
