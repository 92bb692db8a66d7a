"""Ends whole process trees: of a shim's own program, and what a dead shim left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable

from .processes import (
    Identity,
    Seen,
    descendants,
    look_at,
    open_pidfd,
    process_table,
    real_uid,
    send_signal,
)

Table = dict[int, Seen]
_PASSES_MAX = 50  # of one round; a stopped process forks no more, so two or three do


def ask_tree_to_end() -> frozenset[int]:
    """TERM to every descendant of this process, stopped ones woken to hear it; who was told."""
    return _signal_all(_below_us, (signal.SIGTERM, signal.SIGCONT))


def kill_round() -> frozenset[int]:
    """KILL every descendant of this subreaper; who was there. Repeat until nobody is left."""
    return stop_and_kill(_below_us)


def kill_strays(keep: Iterable[int]) -> frozenset[int]:
    """KILL what descends from this process and from none of those kept; who was there.

    The daemon is a subreaper that starts nothing but its zygotes, so a child of its own that is
    neither a zygote nor a known shim was left behind by a shim that died. Repeat as above.
    """
    kept = set(keep)

    def strays(table: Table) -> tuple[int, ...]:
        me = os.getpid()
        mine = [pid for pid, seen in table.items() if seen.ppid == me and pid not in kept]
        roots = [pid for pid in mine if os.geteuid() == 0 or real_uid(pid) == os.getuid()]
        return (*roots, *descendants(roots, table))

    return stop_and_kill(strays)


def kill_leftovers(leftovers: Iterable[Identity]) -> tuple[Identity, ...]:
    """KILL exactly these processes, whatever their pids mean by now; who we may not kill."""
    held = [(identity, open_pidfd(identity)) for identity in leftovers]
    try:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            refused = [
                identity
                for identity, pidfd in held
                if pidfd is not None and not send_signal(pidfd, number)
            ]
    finally:
        for _, pidfd in held:
            if pidfd is not None:
                os.close(pidfd)
    return tuple(refused)


def reap_all() -> tuple[dict[int, int], bool]:
    """The wait status of every child that ended, and True when no descendant is left at all.

    A subreaper without children has no descendants: the kernel gives it every orphan.
    """
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, True
        if pid == 0:
            return ended, False
        ended[pid] = status


def _below_us(table: Table) -> tuple[int, ...]:
    return descendants((os.getpid(),), table)


def stop_and_kill(find: Callable[[Table], tuple[int, ...]]) -> frozenset[int]:
    """KILL what `find` names in a table of all processes; who was there. Repeat as above.

    All are stopped first, pass after pass, until a pass finds nobody new: a tree that forks while
    we look would otherwise grow faster than it is cut.
    """
    stopped: frozenset[int] = frozenset()
    for _ in range(_PASSES_MAX):
        found = _signal_all(find, (signal.SIGSTOP,))
        if found <= stopped:
            break
        stopped |= found
    return stopped | _signal_all(find, (signal.SIGKILL,))


def _signal_all(
    find: Callable[[Table], tuple[int, ...]], numbers: tuple[int, ...]
) -> frozenset[int]:
    table = process_table()
    found = [pid for pid in find(table) if not table[pid].zombie]
    return frozenset(pid for pid in found if _signal_if_same(pid, table[pid], numbers))


def _signal_if_same(pid: int, seen: Seen, numbers: tuple[int, ...]) -> bool:
    """Through a pidfd, so that a pid which changed hands since we looked is left alone."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        now = look_at(pid)
        if now is None or now.zombie or now.start_ticks != seen.start_ticks:
            return False
        for number in numbers:
            send_signal(pidfd, number)
        return True
    finally:
        os.close(pidfd)
