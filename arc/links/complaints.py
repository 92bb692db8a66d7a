"""Keeps the last of what a node writes to its stderr, and notices when that never ends."""

from __future__ import annotations

from collections.abc import Callable

from agent_node.strict import LINE_MAX

KEPT_MAX = 8192  # bytes; the last ones
OFTEN_MAX, OFTEN_S = LINE_MAX, 60.0  # bytes in so many seconds, as many as one answer may take


class Complaints:
    """Each byte has to be taken out of the connection before the next answer is: what is thrown
    away costs the other nodes' cycles, too.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since, self._count = 0.0, 0
        self.last = b""
        """The end of it, for an error to repeat."""

    def add(self, data: bytes) -> bool:
        """Take what came; whether there has been too much of it lately."""
        self.last = (self.last + data[-KEPT_MAX:])[-KEPT_MAX:]
        if self._now() - self._since >= OFTEN_S:
            self._since, self._count = self._now(), 0
        self._count += len(data)
        return self._count > OFTEN_MAX
