"""Keeps the generation in a fsynced file beside the database, so that a restored one is noticed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import StoreUnusable
from ..plain_files import NotPlainFile, open_plain

_SLOT = 256


@dataclass(frozen=True)
class Mark:
    """What the file says: how far the database had come, under which incarnation, and where."""

    generation: int
    incarnation: str
    machine: str


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
    """Two slots written in turn, so that a torn write leaves the one before readable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def read(self) -> Mark | None:
        """The newest whole mark; None when there is no file or no whole mark in it."""
        try:
            fd = _plain(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            raw = os.read(fd, 2 * _SLOT)
        finally:
            os.close(fd)
        marks = [mark for slot in (raw[:_SLOT], raw[_SLOT:]) if (mark := _parse(slot))]
        return max(marks, key=lambda mark: mark.generation, default=None)

    def write(self, mark: Mark) -> None:
        """Durable when it returns."""
        if self._fd < 0:
            self._open()
        slot = _SLOT * (mark.generation % 2)
        os.pwrite(self._fd, _render(mark), slot)
        os.fdatasync(self._fd)

    def _open(self) -> None:
        self._fd = _plain(self._path, os.O_RDWR | os.O_CREAT)
        if os.fstat(self._fd).st_size < 2 * _SLOT:
            # The file has its full length from the start: later writes change no metadata.
            os.pwrite(self._fd, b" " * (2 * _SLOT), 0)
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
    line = f"{text} sum {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return line.encode().ljust(_SLOT - 1) + b"\n"


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
