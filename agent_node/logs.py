"""Reads a piece of what an attempt's program wrote, following no link and trusting no byte."""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple

from .attempts import attempt_folder
from .errors import NodeError, Refused
from .job import STDERR_LOG, STDOUT_LOG

PIECE_MAX = 1024 * 1024
STREAMS = {"stdout": STDOUT_LOG, "stderr": STDERR_LOG}
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LEAD_BYTE = 0xC0  # 11xxxxxx: the first byte of a character that takes several
_UTF8_MAX = 4


class LogUnreadable(NodeError):
    """The log is there and cannot be read; that is not an empty log."""

    code = "log_unreadable"


class Piece(NamedTuple):
    """Some text of a log, the offset behind it, and how long the log is now."""

    text: str
    after: int
    size: int


def read_piece(tasks_dir: str, uid: str, n: int, *, stream: str, offset: int, limit: int) -> Piece:
    """The text from `offset` on, at most `limit` bytes; what is no UTF-8 shows as U+FFFD.

    A character that is cut at the end of the piece is left for the next one.
    """
    descriptor = _open(tasks_dir, uid, n, STREAMS[stream])
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise LogUnreadable(f"{uid}: the {stream} log of attempt {n} is not a plain file")
        raw = os.pread(descriptor, min(limit, PIECE_MAX), min(offset, found.st_size))
    finally:
        os.close(descriptor)
    kept = raw[: len(raw) - _cut_tail(raw)] or raw
    return Piece(kept.decode("utf-8", "replace"), offset + len(kept), found.st_size)


def _open(tasks_dir: str, uid: str, n: int, name: str) -> int:
    try:
        folder = attempt_folder(tasks_dir, uid, n).open()
        try:
            return os.open(name, _FLAGS, dir_fd=folder)
        finally:
            os.close(folder)
    except FileNotFoundError as error:
        raise Refused("not_found", f"{uid}: attempt {n} left no {name} here") from error
    except OSError as error:
        linked = error.errno in (errno.ELOOP, errno.ENOTDIR)
        why = "a link stands in its place" if linked else error.strerror
        raise LogUnreadable(f"{uid}: could not read {name} of attempt {n}: {why}") from error


def _cut_tail(raw: bytes) -> int:
    """How many bytes at the end begin a character whose rest is not there."""
    for back in range(1, min(_UTF8_MAX, len(raw)) + 1):
        byte = raw[-back]
        if byte >= _LEAD_BYTE:
            wanted = 2 + (byte >= 0xE0) + (byte >= 0xF0)  # noqa: PLR2004 - UTF-8's own lead bytes
            return back if back < wanted else 0
        if byte < 0x80:  # noqa: PLR2004 - ASCII
            return 0
    return 0
