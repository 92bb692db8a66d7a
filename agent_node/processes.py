"""Names processes so that a reused pid is never mistaken, and sees how they stand."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ctypes

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# Positions in /proc/PID/stat, counted after the program's name.
_PPID, _FLAGS, _THREADS, _START_TICKS = 1, 6, 17, 19
_EXITING = 0x4  # of the flags


class Identity(NamedTuple):
    """One process for ever: pids come back, a pid with this start time in this boot does not."""

    pid: int
    start_ticks: int
    boot_id: str


class Seen(NamedTuple):
    """One line of the process table at one moment.

    The kernel calls a process a zombie as soon as its first thread has ended. While others of its
    threads run it can do whatever it likes: it is `headless`, and no zombie.
    """

    ppid: int
    start_ticks: int
    zombie: bool
    headless: bool = False


def read_boot_id() -> str:
    """The name of this boot; nothing of an earlier boot still runs."""
    with open(_BOOT_ID, encoding="ascii") as file:
        return file.read().strip()


def look_at(pid: int) -> Seen | None:
    """This pid's place in the process table; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if len(fields) <= _START_TICKS:
        return None
    ended = fields[0] in (b"Z", b"X")
    headless = ended and int(fields[_THREADS]) > 1
    return Seen(int(fields[_PPID]), int(fields[_START_TICKS]), ended and not headless, headless)


def is_ending(pid: int) -> bool:
    """Whether the kernel is taking it down: nothing of its program runs any more, in no thread.

    That takes as long as its memory is large, and until it is over nobody but root may look into
    it, as into a zombie.
    """
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return all(_thread_is_ending(f"/proc/{pid}/task/{tid}/stat") for tid in threads)
    except (FileNotFoundError, ProcessLookupError):
        return True


def _thread_is_ending(stat: str) -> bool:
    with open(stat, "rb", buffering=0) as file:
        fields = file.read().rpartition(b")")[2].split()
    return bool(int(fields[_FLAGS]) & _EXITING)


def identify(pid: int, boot_id: str | None = None) -> Identity | None:
    """The lasting name of a process that runs now; None when it is gone or a zombie."""
    seen = look_at(pid)
    if seen is None or seen.zombie:
        return None
    return Identity(pid, seen.start_ticks, boot_id or read_boot_id())


def is_alive(identity: Identity) -> bool:
    """Whether exactly this process still runs; a zombie runs nothing and is not alive."""
    return identify(identity.pid) == identity


def open_pidfd(identity: Identity) -> int | None:
    """A handle that can only ever mean this process; None when it is no longer there."""
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    if is_alive(identity):
        return pidfd
    os.close(pidfd)
    return None


def send_signal(pidfd: int, number: int) -> bool:
    """True unless the process belongs to somebody else; one that is gone has had its signal."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def become_subreaper(*, on: bool = True) -> None:
    """From now on orphans of our descendants become our children, and can be found and reaped."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(on))


def is_subreaper() -> bool:
    """Whether orphans of our descendants become our children."""
    import ctypes

    answer = ctypes.c_int()
    if _libc().prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl")
    return bool(answer.value)


def die_with_parent(*, on: bool) -> None:
    """Ask the kernel to kill this process when the thread that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if on else 0)


def hide_from_debuggers() -> None:
    """From now on no process of the same user can trace this one, nor use what it has open.

    One that traces it already ends it.
    """
    _prctl(_PR_SET_DUMPABLE, 0)
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        if any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in file):
            raise SystemExit("agent-node: another process traces this one; it ends")


def _prctl(option: int, value: int) -> None:
    import ctypes

    libc = _libc()
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl")


@cache
def _libc() -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def reap_children(*, keep: Iterable[int] = ()) -> int:
    """Bury every dead child but those somebody else waits for; the number of burials."""
    kept, buried = set(keep), 0
    for pid, seen in process_table().items():
        if seen.ppid == os.getpid() and seen.zombie and pid not in kept:
            os.waitpid(pid, os.WNOHANG)
            buried += 1
    return buried


def process_table() -> dict[int, Seen]:
    """Every process that can be seen now. (Not every kernel has /proc/PID/task/TID/children.)"""
    pairs = ((pid, look_at(pid)) for pid in all_pids())
    return {pid: seen for pid, seen in pairs if seen is not None}


def descendants(roots: Iterable[int], table: dict[int, Seen]) -> tuple[int, ...]:
    """All that descends from the roots, parents before children, the roots themselves left out."""
    children: dict[int, list[int]] = {}
    for pid, seen in table.items():
        children.setdefault(seen.ppid, []).append(pid)
    order: list[int] = []
    todo = list(roots)
    met = set(todo)
    for pid in todo:  # grows while we walk it
        fresh = [child for child in children.get(pid, ()) if child not in met]
        met.update(fresh)
        todo.extend(fresh)
        order.extend(fresh)
    return tuple(order)


def ran_below(root: Identity, table: dict[int, Seen], now_s: float) -> float:
    """How long the oldest process below this one has run, in seconds; 0.0: none is to be seen.

    `now_s` counts since boot, sleep included, as the kernel counts when processes started.
    """
    seen = table.get(root.pid)
    if seen is None or seen.start_ticks != root.start_ticks:
        return 0.0
    born = [table[pid].start_ticks for pid in descendants((root.pid,), table)]
    return max(0.0, now_s - min(born) / os.sysconf("SC_CLK_TCK")) if born else 0.0


def real_uid(pid: int) -> int | None:
    """Who started this process, also while a setuid program runs in it; None when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            line = next(line for line in file if line.startswith("Uid:"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(line.split()[1])


def all_pids() -> Iterator[int]:
    """Whoever can be seen now."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())
