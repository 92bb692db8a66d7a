"""Keeps what a detached daemon says in a file of the home that never grows without end."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from .home import Home
from .text import safe_text

NAME = "daemon.log"
LOG_MAX = 4 * 1024 * 1024
KEPT = 256 * 1024  # of its end, once it has grown longer
TOLD_BYTES, TOLD_LINES = 4096, 5
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def path_of(home: Home) -> Path:
    """Where it lies; under systemd the journal has it instead."""
    return home.root / NAME


def size_of(path: Path) -> int:
    """How much is there; 0 when nothing is."""
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0


def shorten(home: Home) -> bool:
    """Cut it to its end when it has grown too long; whether it had. Writers append, so none is
    disturbed; what one writes in that very moment may be lost.
    """
    path = path_of(home)
    if size_of(path) <= LOG_MAX:
        return False
    with suppress(OSError):
        descriptor = os.open(path, _APPEND)
        try:
            end = os.pread(descriptor, KEPT, os.fstat(descriptor).st_size - KEPT)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, end.partition(b"\n")[2])
        finally:
            os.close(descriptor)
    return True


def last_words(path: Path, since: int = 0) -> str:
    """The last lines that were written after `since`, on one line; empty: there are none."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return ""
    try:
        size = os.fstat(descriptor).st_size
        begin = max(since, size - TOLD_BYTES)
        text = os.pread(descriptor, TOLD_BYTES, begin).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return safe_text(" | ".join(lines[-TOLD_LINES:]), 600)
