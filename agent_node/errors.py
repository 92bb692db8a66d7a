"""Every error a node raises, drawn as a tree; each says what failed, why, and what now."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import TypeGuard

_DISK = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS})


class NodeError(Exception):
    """Something failed that has no code of its own; the text says what.

    The root of all that the node itself raises. `code` is for machines, the text for people.
    """

    code = "failed"
    exit_code = 1
    hint = ""


class BadInput(NodeError):
    """What came in cannot be read as what it should be; nothing changed.

    `faults`: each of several that were told together, this one first; `more` were only counted.
    """

    code = "bad_input"
    exit_code = 2
    faults: tuple[BadInput, ...] = ()
    more = 0

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


class BadSettings(NodeError):
    """node.toml says something that cannot be obeyed; nothing was started."""

    code = "bad_settings"
    exit_code = 2


class HomeRefused(NodeError):
    """The node's home is not a place where a queue is safe; nothing was opened."""

    code = "home_refused"
    exit_code = 2


class Refused(NodeError):
    """The node said no, with a rule and a reason; nothing changed."""

    code = "refused"

    def __init__(self, code: str, message: str, rule: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.rule = code, message, rule
        self.exit_code = _EXIT_OF_REFUSAL.get(code, 1)


_EXIT_OF_REFUSAL = {
    "bad_request": 2,
    "bad_input": 2,
    "not_found": 5,
    "needs_alone": 7,
    "needs_yes": 7,
    "needs_reason": 7,
}


class NotRunning(NodeError):
    """No daemon runs here and the request needs one; nothing changed."""

    code = "not_running"
    exit_code = 8
    hint = "start it with: agent-node run"


class ConnectionOld(NodeError):
    """The SSH connection is older than a hub's ever is; nothing was asked."""

    code = "connection_old"
    hint = "connect and log in anew: the key is asked for again"


class Starting(NodeError):
    """Somebody holds the node's lock and does not answer yet; nothing changed, ask again."""

    code = "starting"


class DoorTimeout(NodeError):
    """The request left and no answer came in time; it may have happened. Asking again is safe."""

    code = "timeout"
    exit_code = 9


class StoreUnusable(NodeError):
    """The queue's database cannot be used as it is; nothing was moved or repaired."""

    code = "store_unusable"


class StoreCorrupt(StoreUnusable):
    """The database is damaged; it was left exactly as it was found."""

    code = "store_corrupt"


class StoreNewer(StoreUnusable):
    """The database was written by a newer version; this one does not touch it."""

    code = "store_newer"


class DiskTrouble(NodeError):
    """The disk refused a write; the transaction did not happen."""

    code = "disk"


class DiskBroken(DiskTrouble):
    """The disk failed to read or to sync: what is on it is not known until it is opened anew."""

    code = "disk_broken"


def is_of_the_disk(error: Exception) -> TypeGuard[OSError]:
    """Whether the disk itself said no, which is no mistake of ours."""
    return isinstance(error, OSError) and error.errno in _DISK


class BrokenRule(NodeError):
    """A state change that the table in task.py does not know: a fault of ours, nothing changed."""

    code = "bug"


def missing(needed: str, given: Iterable[str]) -> BadInput:
    """What every task has, and one has not; of the words that it gave, and nobody knows, one may
    have been meant for it.
    """
    import difflib  # only where something is wrong: a node starts without it

    close = difflib.get_close_matches(needed, [one[:80] for one in given], n=1, cutoff=0.6)
    meant = f"; is {close[0]!r} meant for it?" if close else ""
    return BadInput(f"missing or empty; every task has one{meant}", needed)
