"""Writes lines, and cuts what a peer sends into them, holding no more than one line may take."""

from __future__ import annotations

from .compact import writer
from .strict import LINE_MAX, JsonObject

encode = writer(finite=True)


def line_of(document: JsonObject) -> bytes:
    """One line of the wire."""
    return encode(document).encode() + b"\n"


class Lines:
    """Bytes go in as they come, whole lines come out; a line without an end is noticed."""

    def __init__(self, limit: int = LINE_MAX) -> None:
        self.limit = limit
        """Bytes; it may change between two looks."""
        self._held = bytearray()
        self._searched = 0
        self._end = -1

    def add(self, data: bytes) -> None:
        """Take what came."""
        self._held += data

    @property
    def waiting(self) -> bool:
        """Whether a whole line is there."""
        if self._end < 0:
            self._end = self._held.find(b"\n", self._searched)
            self._searched = len(self._held)
        return self._end >= 0

    @property
    def too_long(self) -> bool:
        """Whether the line at the front is beyond what is taken; nothing after it is trusted."""
        return (self._end if self.waiting else len(self._held)) > self.limit

    def take(self) -> bytes:
        """The next line without its end; only where one is `waiting`."""
        if not self.waiting:
            raise IndexError("no whole line is waiting")
        line = bytes(memoryview(self._held)[: self._end])
        del self._held[: self._end + 1]
        self._searched, self._end = 0, -1
        return line

    def put_back(self, line: bytes) -> None:
        """Undo one `take`."""
        self._held[:0] = line + b"\n"
        self._searched, self._end = 0, -1

    def rest(self) -> bytes:
        """Everything that was not taken, whole lines and a begun one; nothing is left here."""
        held = bytes(self._held)
        self.clear()
        return held

    def clear(self) -> None:
        """Let go of everything."""
        self._held = bytearray()
        self._searched, self._end = 0, -1

    def __len__(self) -> int:
        return len(self._held)
