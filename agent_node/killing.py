"""Ends whole process trees: of a shim's own program, and what a dead shim left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from .processes import Identity, Seen, descendants, look_at, open_pidfd, process_table, send_signal

_PASSES_MAX = 400  # of one chase; a tree that stands still is through after one
_DEPTH_MAX = 1_000


def ask_tree_to_end() -> frozenset[int]:
    """TERM to every descendant of this process, stopped ones woken to hear it; who was told."""
    return _signal_tree((signal.SIGTERM, signal.SIGCONT))


def kill_round() -> frozenset[int]:
    """KILL every descendant of this subreaper; who was there. Repeat until nobody is left.

    All are stopped first, newcomers too, until there are none: a tree that forks faster than we
    look at the whole process table would otherwise outrun its own end.
    """
    return _chase(_signal_tree((signal.SIGSTOP,))) | _signal_tree((signal.SIGKILL,))


def _chase(stopped: frozenset[int]) -> frozenset[int]:
    """Stop whoever appears, looking at new pids alone: as fast as a process can fork and exit."""
    met = set(stopped)
    strangers = {os.getpid()}
    for _ in range(_PASSES_MAX):
        still = True
        for pid in _pids_but(met | strangers):
            ours = _descends_from_us(pid)
            if ours is False:
                strangers.add(pid)
                continue
            still = False  # somebody came, or came and went while we looked
            seen = look_at(pid) if ours else None
            if seen is not None and _signal_if_same(pid, seen, (signal.SIGSTOP,)):
                met.add(pid)
        if still:
            break
    return frozenset(met)


def _pids_but(known: set[int]) -> list[int]:
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid not in known]


def _descends_from_us(pid: int) -> bool | None:
    """Up the line of parents; None when the line broke under our eyes: it lives, and moves."""
    me = os.getpid()
    for _ in range(_DEPTH_MAX):
        seen = look_at(pid)
        if seen is None:
            return None
        if seen.ppid == me:
            return not seen.zombie
        if seen.ppid in (0, 1):
            return False
        pid = seen.ppid
    return False


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


def kill_strays(keep: Iterable[int]) -> frozenset[int]:
    """KILL what descends from this process and from none of those kept; who was there.

    The daemon is a subreaper that starts nothing but its zygote, so a child of its own that is
    neither the zygote nor a known shim was left behind by a shim that died.
    """
    kept = set(keep)
    table = process_table()
    me = os.getpid()
    strays = {pid for pid, seen in table.items() if seen.ppid == me and not seen.zombie} - kept
    tree = [*strays, *descendants(strays, table)]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in tree:
            _signal_if_same(pid, table[pid], (number,))
    return frozenset(tree)


def _signal_tree(numbers: tuple[int, ...]) -> frozenset[int]:
    table = process_table()
    found = [pid for pid in descendants((os.getpid(),), table) if not table[pid].zombie]
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
