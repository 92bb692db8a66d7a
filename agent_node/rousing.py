"""Lets a zygote and those that wait with it go on, where somebody of their user stopped them."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterable

from .processes import Identity, identify, open_pidfd, process_table, send_signal

_STOPPED, _IN_THE_KERNEL = b"T", b"D"


def rouse(pids: Collection[int]) -> int:
    """Send CONT to each of these that stands still; how many did. A pid that changed hands is not
    touched, and one that is not ours to signal stays as it is.

    Who starts a program waits inside the kernel until its child has become it. If that child was
    stopped before, both go on: the first may have a stop ahead of it, which CONT takes away.
    """
    known = {pid for pid in pids if _state(pid) == _STOPPED}
    starting = {pid for pid in pids if _state(pid) == _IN_THE_KERNEL}
    for pid, seen in process_table().items() if starting else ():
        if seen.ppid in starting and _state(pid) == _STOPPED:
            known |= {pid, seen.ppid}
    found = [one for pid in known if (one := identify(pid))]
    return sum(map(_go_on, found))


def with_their_children(pids: Iterable[int]) -> set[int]:
    """These and what they have forked: a zygote's children are its waiting shims, and no other."""
    roots = set(pids)
    return roots | {pid for pid, seen in process_table().items() if seen.ppid in roots}


def _go_on(known: Identity) -> bool:
    pidfd = open_pidfd(known)
    if pidfd is None:
        return False
    try:
        return send_signal(pidfd, signal.SIGCONT)
    finally:
        os.close(pidfd)


def _state(pid: int) -> bytes:
    """The kernel's letter for it; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return file.read().rpartition(b")")[2].split()[0]
    except OSError:
        return b""
