"""Opens files that only this program makes: plain, of one name, and never waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_ALWAYS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_STRANGE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV})


class NotPlainFile(OSError):
    """Something else stands where a file of ours belongs; it was neither read nor written."""


def open_plain(path: Path, flags: int, *, linked: bool = False) -> int:
    """A descriptor of the plain file at `path`; what `flags` make new is for this user alone.

    `NotPlainFile` for a link, a file that has another name as well, a FIFO, a device or a folder.
    `linked` lets a person put a link there, as settings are often kept; it still ends at a file.
    """
    asked = flags | (_ALWAYS & ~os.O_NOFOLLOW if linked else _ALWAYS)
    try:
        descriptor = os.open(path, asked, 0o600)
    except OSError as error:
        if error.errno in _STRANGE:
            raise _strange(path) from error
        raise
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        os.close(descriptor)
        raise NotPlainFile(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(found.st_mode) or (found.st_nlink > 1 and not linked):
        os.close(descriptor)
        raise _strange(path)
    return descriptor


def read_plain(path: Path, limit: int, *, linked: bool = False) -> bytes:
    """What the file says, and never more than `limit` bytes: a longer one is no file of ours."""
    with open(open_plain(path, os.O_RDONLY, linked=linked), "rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise NotPlainFile(errno.EFBIG, f"it has more than {limit} bytes", os.fspath(path))
    return raw


def _strange(path: Path) -> NotPlainFile:
    return NotPlainFile(errno.EINVAL, "it is no plain file with one name", os.fspath(path))
