"""Opens files that a program named: inside one folder, through no link, plain and of one name."""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import Self

PATH_MAX, DEPTH_MAX = 4096, 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SAID = {
    errno.ENOENT: "there is no such file",
    errno.ELOOP: "a link, or a path through one; none is followed",
    errno.ENOTDIR: "a link or a file, where its path needs a folder",
    errno.ENXIO: "no plain file",
    errno.ENAMETOOLONG: "its path is too long",
}  # fmt: skip


class NotTaken(Exception):
    """Why a file is not taken; the attempt counts without it."""


class NamedFile:
    """One that is open to be read once, from its first byte to its last."""

    def __init__(self, place: str, path: str) -> None:
        self._descriptor = open_inside(place, path)
        self._before = os.fstat(self._descriptor)
        self._read = 0
        if not stat.S_ISREG(self._before.st_mode) or self._before.st_nlink != 1:
            self.close()
            raise NotTaken("no plain file of one name")

    @property
    def size(self) -> int:
        """Its bytes when it was opened; it has no more and no fewer, or is not taken."""
        return self._before.st_size

    def read(self, limit: int) -> bytes:
        """The next bytes; empty when all were read, and it is still as it was when opened."""
        data = os.read(self._descriptor, limit)
        self._read += len(data)
        over = self._read > self.size
        if over or (not data and (self._read != self.size or self._has_changed())):
            raise NotTaken("it changed while it was copied")
        return data

    def _has_changed(self) -> bool:
        return _print(os.fstat(self._descriptor)) != _print(self._before)

    def close(self) -> None:
        """Let it go; nothing of it was changed."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_inside(place: str, path: str) -> int:
    """A descriptor of this file below `place`; no link on the way to it is followed."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise NotTaken("should be a path inside the working folder")
    if len(path) > PATH_MAX or len(parts) > DEPTH_MAX:
        raise NotTaken("its path is too long")
    folder = os.open(place, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _PLAIN, dir_fd=folder)
    except UnicodeEncodeError as error:
        raise NotTaken("its path is no text that a file can have") from error
    finally:
        os.close(folder)


def why_not(error: NotTaken | OSError, reader: str) -> str:
    """The reason in words, for whoever named the file; `reader` is who tried to read it."""
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.EACCES:
        return f"it cannot be read by {reader}"
    return _SAID.get(error.errno or 0) or f"it could not be kept: {error.strerror}"


def _print(about: os.stat_result) -> tuple[int, ...]:
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_nlink
