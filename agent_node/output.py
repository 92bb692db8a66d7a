"""Keeps the head and the tail of what a program prints, and counts what lies between."""

from __future__ import annotations

import os
from typing import NamedTuple


class Count(NamedTuple):
    """What a program printed on one stream, and how much of it is not in the log."""

    bytes: int
    dropped: int


class HeadAndTail:
    """A log of bounded size: the head is in the file at once, the tail joins it at the end.

    A disk that refuses a write never reaches the program: from then on everything counts as tail,
    and what cannot be written at the end either counts as dropped.
    """

    def __init__(self, log: int, cap: int) -> None:
        self._log = log
        self._head_left = cap - cap // 2
        self._tail = _Ring(cap // 2)
        self._total = 0
        self._written = 0

    def take(self, chunk: bytes) -> None:
        """Never raises and never keeps more than half the cap in memory."""
        self._total += len(chunk)
        if self._head_left:
            head = chunk[: self._head_left]
            written = self._write(head)
            self._head_left = self._head_left - written if written == len(head) else 0
            chunk = chunk[written:]
        if chunk:
            self._tail.push(chunk)

    def finish(self) -> Count:
        """Write the tail behind a line that says how much is missing; the log is then whole."""
        tail = self._tail.content()
        between = self._total - self._written - len(tail)
        if between:
            self._write_aside(f"\n[… {between} bytes dropped here …]\n".encode())
        self._write(tail)
        return Count(self._total, self._total - self._written)

    def close(self) -> None:
        """Let go of the file; nothing can be taken or finished any more."""
        os.close(self._log)

    def _write(self, content: bytes) -> int:
        written = self._write_aside(content)
        self._written += written
        return written

    def _write_aside(self, content: bytes) -> int:
        written = 0
        while written < len(content):
            try:
                written += os.write(self._log, memoryview(content)[written:])
            except OSError:  # counted by the caller: a full disk must not stop the program
                return written
        return written


class _Ring:
    """The last `size` bytes of what was pushed; it grows only as far as there is something."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept = bytearray()
        self._start = 0  # of the oldest byte, once the ring is full

    def push(self, chunk: bytes) -> None:
        room = self._size - len(self._kept)
        self._kept += chunk[:room]
        rest = memoryview(chunk)[room:]
        rest = rest[max(0, len(rest) - self._size) :]
        first = min(len(rest), self._size - self._start)
        self._kept[self._start : self._start + first] = rest[:first]
        self._kept[: len(rest) - first] = rest[first:]
        if self._size:
            self._start = (self._start + len(rest)) % self._size

    def content(self) -> bytes:
        return bytes(self._kept[self._start :] + self._kept[: self._start])
