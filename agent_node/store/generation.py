"""Keeps the generation in a fsynced file beside the database, so that a restored one is noticed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import StoreUnusable
from ..plain_files import NotPlainFile, open_plain

SLOT = 256
COPIED = "this home is a copy of one that lay elsewhere, and that one may still run"


@dataclass(frozen=True)
class Mark:
    """What the file says: how far the database had come, under which incarnation, and where."""

    generation: int
    incarnation: str
    machine: str


@dataclass(frozen=True)
class Place:
    """Where a home lies: its path, hashed, and the inodes of its folder and of its database."""

    path: str
    folder: int
    database: int

    def is_copied_to(self, other: Place) -> bool:
        """Whether what lies there is a copy of what lay here: a home that is renamed keeps its
        inodes, one that is put back keeps its path.
        """
        return self.path != other.path and self != replace(other, path=self.path)


def place_of(database: Path) -> Place:
    """Where this database lies now."""
    folder = database.parent
    path = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]
    return Place(path, os.stat(folder).st_ino, os.stat(database).st_ino)


def machine_id() -> str:
    """A name for this machine that says nothing about it; the same after every boot."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            raw = Path(path).read_bytes().strip()
        except OSError:
            continue
        if raw:
            return hashlib.sha256(b"arc node machine " + raw).hexdigest()[:16]
    return "unknown"


class GenerationFile:
    """Two slots written in turn, so that a torn write leaves the one before readable.

    Behind them stands where the home lay last, and then how late it was (passing.py); versions
    that know nothing of these read past them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._next = 0  # which of the two is written next: the older one, or the torn one

    def read(self) -> Mark | None:
        """The newest whole mark; None when there is no file or no whole mark in it."""
        try:
            fd = _plain(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            raw = os.read(fd, 2 * SLOT)
        finally:
            os.close(fd)
        return max(filter(None, _marks(raw)), key=lambda mark: mark.generation, default=None)

    def write(self, mark: Mark) -> None:
        """Durable when it returns."""
        if self._fd < 0:
            self._open()
        os.pwrite(self._fd, _render(mark), SLOT * self._next)
        os.fdatasync(self._fd)
        self._next = 1 - self._next

    def read_place(self) -> Place | None:
        """Where the home lay when it was opened last; None: nobody wrote it down, or it is torn."""
        try:
            fd = _plain(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            words = os.pread(fd, SLOT, 2 * SLOT).decode("ascii", "replace").split()
        finally:
            os.close(fd)
        if len(words) != len("path P folder F database D sum S".split()):
            return None
        if not (words[3].isdigit() and words[5].isdigit()):
            return None
        place = Place(words[1], int(words[3]), int(words[5]))
        return place if _said(place).split() == words else None

    def copied(self, database: Path) -> str:
        """Why this home is none to run anything by where it lies now; empty: nothing is odd."""
        lay = self.read_place()
        return COPIED if lay is not None and lay.is_copied_to(place_of(database)) else ""

    def keep_place(self, database: Path) -> None:
        """From now on the home lies here; durable when it returns."""
        place = place_of(database)
        if place == self.read_place():
            return
        if self._fd < 0:
            self._open()
        os.pwrite(self._fd, _said(place).encode().ljust(SLOT - 1) + b"\n", 2 * SLOT)
        os.fsync(self._fd)

    def _open(self) -> None:
        self._fd = _plain(self._path, os.O_RDWR | os.O_CREAT)
        first, second = _marks(os.pread(self._fd, 2 * SLOT, 0))
        newer_first = first is not None and (second is None or second.generation < first.generation)
        self._next = 1 if newer_first else 0
        if os.fstat(self._fd).st_size < 2 * SLOT:
            # The file has its full length from the start: later writes change no metadata.
            os.pwrite(self._fd, b" " * (2 * SLOT), 0)
            os.fsync(self._fd)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _plain(path: Path, flags: int) -> int:
    try:
        return open_plain(path, flags)
    except NotPlainFile as error:
        raise StoreUnusable(f"{path}: cannot be opened: {error.strerror}") from error


def _render(mark: Mark) -> bytes:
    text = f"generation {mark.generation} incarnation {mark.incarnation} machine {mark.machine}"
    return summed(text).encode().ljust(SLOT - 1) + b"\n"


def _said(place: Place) -> str:
    return summed(f"path {place.path} folder {place.folder} database {place.database}")


def summed(text: str) -> str:
    """The text with its checksum, so that a torn slot is known as one."""
    return f"{text} sum {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _marks(raw: bytes) -> tuple[Mark | None, Mark | None]:
    """What the two slots hold; None where nothing whole stands."""
    return _parse(raw[:SLOT]), _parse(raw[SLOT:])


def _parse(slot: bytes) -> Mark | None:
    words = slot.decode("ascii", "replace").split()
    if len(words) != len("generation N incarnation I machine M sum S".split()):
        return None
    mark = Mark(int(words[1]), words[3], words[5]) if words[1].isdigit() else None
    return mark if mark and _render(mark).split() == slot.split() else None


def judge(
    *, database: Mark, file: Mark | None, here: str, unknown_attempts: list[str]
) -> str | None:
    """Why this database must not be trusted with running anything; None: it may be."""
    if database.machine != here:
        return "the database was copied from another machine"
    if file is None and database.generation == 0:
        return _strangers(unknown_attempts)  # the first start of a new home
    if file is None:
        return "the generation file beside the database is missing"
    if file.generation > database.generation:
        return (
            f"the database is at generation {database.generation}, the file beside it at"
            f" {file.generation}: an older copy was put back"
        )
    return _strangers(unknown_attempts)


def _strangers(unknown_attempts: list[str]) -> str | None:
    if not unknown_attempts:
        return None
    some = ", ".join(unknown_attempts[:3])
    return f"{len(unknown_attempts)} attempts lie on the disk that it does not know: {some}"
