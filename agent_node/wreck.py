"""Keeps connections over a disk that failed from being closed, and ends the process with them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Protocol

_LEFT: list[object] = []  # referred to for ever: who collects a connection closes it, too


class Closes(Protocol):
    """Whatever can be closed."""

    def close(self) -> object:
        """Let go of it."""


def let_go(connection: Closes, *, broken: bool) -> None:
    """It is closed; over a disk that failed it stays open: to close it would sync once more, and a
    second sync may say that all is well.
    """
    if broken:
        _LEFT.append(connection)
    else:
        connection.close()


def any_left() -> bool:
    """Whether this process has one, and is to end soon, so that another reads what is there."""
    return bool(_LEFT)


def end_with(code: int) -> int:
    """The exit code; this very call ends a process that left one, for an interpreter that goes
    would close it in the end.
    """
    if not _LEFT:
        return code
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
