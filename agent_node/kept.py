"""A shim between two attempts, as the daemon holds it: to be given the next one, or dismissed."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import NamedTuple

from .handing import hand_over
from .processes import Identity


class Kept(NamedTuple):
    """Nothing of its last attempt runs any more, its locks are free, and it waits at its line."""

    agent: str
    shim: Identity
    pidfd: int
    line: socket.socket

    def give(self, message: bytes, descriptors: Sequence[int]) -> bool:
        """Hand it an attempt. False: it has died, and took nothing."""
        try:
            hand_over(self.line, message, descriptors)
        except OSError:
            return False
        return True

    def dismiss(self) -> None:
        """Hang up, so that it ends."""
        self.line.close()
        os.close(self.pidfd)
