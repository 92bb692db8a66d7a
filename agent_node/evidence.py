"""Judges from locks, tokens and cgroups whether an attempt lives, left something, or is dead."""

from __future__ import annotations

import fcntl
import os
import stat
from dataclasses import dataclass

from . import cgroups
from .attempts import AttemptFolder, EvidenceUnreadable, read_record
from .processes import (
    Identity,
    Seen,
    descendants,
    identify,
    is_alive,
    process_table,
    read_boot_id,
    real_uid,
)
from .traces import carrying_token, holders_of


@dataclass(frozen=True)
class Alive:
    """The shim lives; None while the work is on its way to one that has not signed in yet.

    One that has not, but holds the lock, took the work and has not begun it: it may stand still.
    """

    shim: Identity | None
    signed_in: bool = True


@dataclass(frozen=True)
class Leftovers:
    """The shim is dead and these are not: kill them, then judge again."""

    processes: tuple[Identity, ...]
    how: str
    cgroup: str | None = None


@dataclass(frozen=True)
class Dead:
    """Proven: nothing of this attempt runs any more, and nothing of it can come back."""

    why: str


@dataclass(frozen=True)
class Unprovable:
    """Neither alive nor proven dead; a person decides."""

    why: str


Evidence = Alive | Leftovers | Dead | Unprovable


@dataclass(frozen=True)
class ShimRecord:
    """What a shim wrote about itself before it started the program."""

    identity: Identity
    token: str
    cgroup: str | None


def read_shim_record(folder: AttemptFolder) -> ShimRecord | None:
    """The shim's own entry; None when it never wrote a whole one, so it started nothing."""
    record = read_record(folder.shim_json)
    if record is None:
        return None
    pid, ticks, boot = record.get("pid"), record.get("start_ticks"), record.get("boot_id")
    if not isinstance(pid, int) or not isinstance(ticks, int) or not isinstance(boot, str):
        return None
    cgroup = record.get("cgroup")
    return ShimRecord(
        identity=Identity(pid, ticks, boot),
        token=str(record.get("token")),
        cgroup=cgroup if isinstance(cgroup, str) else None,
    )


def judge_attempt(
    folder: AttemptFolder,
    token: str,
    *,
    claimed_boot: str | None = None,
    shim: Identity | None = None,
) -> Evidence:
    """What can be proved about this attempt now. It never waits, and never guesses "dead".

    `claimed_boot` is the boot in which it was claimed and `shim` who took it, by the caller's own
    records (the folder's could be forged by the program); None when the caller does not know.
    """
    record = read_shim_record(folder)
    if claimed_boot is not None and claimed_boot != read_boot_id():
        return Dead("the machine has been restarted since this attempt began")
    if is_locked(folder.shim_lock):
        return _judge_locked(folder, record)
    if record is None and shim is not None:
        if _is_shared(folder) and os.geteuid() != 0:
            return Unprovable("the shim's own entry was taken away, so whose it was is not known")
        record = ShimRecord(shim, token, None)  # its own entry was taken away
    return _judge_unlocked(folder, token, record)


def _judge_locked(folder: AttemptFolder, record: ShimRecord | None) -> Evidence:
    """The lock crosses from daemon to shim; held by nobody we know, it was stolen or inherited."""
    if record is not None and is_alive(record.identity):
        return Alive(record.identity)
    others = _name(holders_of(folder.shim_lock).found - {os.getpid()}, process_table())
    if record is None:
        return Alive(others[0] if len(others) == 1 else None, signed_in=False)
    if others:
        return Leftovers(others, "they hold shim.lock and the shim is dead")
    if is_locked(folder.shim_lock):
        return Unprovable("shim.lock is held by a process that cannot be seen")
    return Alive(record.identity)  # it ended between two looks; the next one sees it whole


def _judge_unlocked(folder: AttemptFolder, token: str, record: ShimRecord | None) -> Evidence:
    found, hidden, ending = _search_twice(folder, token, record)
    if found:
        return Leftovers(found, "they hold tree.lock, the token or the cgroup", _cgroup_of(record))
    if is_locked(folder.tree_lock):
        if ending:  # a large one takes a second; nobody has to be killed, only looked at again
            return Leftovers((), "tree.lock is held while a process is being taken down")
        return Unprovable("tree.lock is held by a process that cannot be seen")
    if hidden and (record is not None or os.path.lexists(folder.tree_lock)):
        pids = ", ".join(map(str, sorted(hidden)))
        return Unprovable(f"processes whose environment cannot be read: {pids}")
    if record is not None and record.cgroup and cgroups.is_populated(record.cgroup):
        return Unprovable(f"{record.cgroup} is not empty and its members cannot be seen")
    if record is None:
        return Dead("its program was never started, and nothing carries its token")
    return Dead("its shim is dead, its locks are free, and nothing carries its token")


def _search_twice(
    folder: AttemptFolder, token: str, record: ShimRecord | None
) -> tuple[tuple[Identity, ...], frozenset[int], frozenset[int]]:
    """Who is left, who is hidden, who is being taken down. Twice when nobody is left: a process
    may fork and end in the very moment in which we pass it by.
    """
    hidden: frozenset[int] = frozenset()
    ending: frozenset[int] = frozenset()
    for _ in range(2):
        locked, tokened = holders_of(folder.tree_lock), carrying_token(token)
        grouped = _members(record)
        table = process_table()
        roots = locked.found | tokened.found | grouped
        found = _name((roots | set(descendants(roots, table))) - {os.getpid()}, table)
        if found:
            return found, frozenset(), frozenset()
        unreadable = _of_runners(locked.unreadable | tokened.unreadable, folder, record, table)
        hidden = _not_older(unreadable, record, table)
        ending = _not_older(_of_runners(locked.ending, folder, record, table), record, table)
    return (), hidden, ending


def _of_runners(
    pids: frozenset[int], folder: AttemptFolder, record: ShimRecord | None, table: dict[int, Seen]
) -> frozenset[int]:
    """Those that may belong to it by their user: ours, or whom the shim's own entry belongs to.

    Not those that another user's program started, as sshd starts each session of ours: an orphan
    of the attempt goes to init or to who started its node, and that was there before the shim.
    Nor what systemd keeps beside its manager of our services: that one may be younger than the shim
    where the machine's kernel went on (a container, or a first login).
    """
    born = record.identity.start_ticks if record else 0
    runners = {os.getuid(), owner_of(folder.shim_json)}
    adopters = {0, 1, *_ancestors(os.getpid(), table)}
    users = [uid for uid in runners if uid]  # root's manager is the machine's own
    theirs = {pid for pid in pids if real_uid(pid) in runners
              and not any(cgroups.is_beside_manager(pid, uid) for uid in users)}  # fmt: skip
    return frozenset(
        pid for pid in theirs
        if (parent := table[pid].ppid if pid in table else 0) in adopters
        or parent not in table or table[parent].start_ticks <= born
        or real_uid(parent) in {*runners, None}
    )  # fmt: skip


def _ancestors(pid: int, table: dict[int, Seen]) -> list[int]:
    found = [pid]
    while found[-1] in table and table[found[-1]].ppid not in found:
        found.append(table[found[-1]].ppid)
    return found


def owner_of(path: str) -> int | None:
    """Whose file this is; None when there is none."""
    try:
        return os.stat(path, follow_symlinks=False).st_uid
    except FileNotFoundError:
        return None


def _is_shared(folder: AttemptFolder) -> bool:
    try:
        return bool(os.stat(folder.path, follow_symlinks=False).st_mode & stat.S_IWOTH)
    except FileNotFoundError:
        return False


def _not_older(
    pids: frozenset[int], record: ShimRecord | None, table: dict[int, Seen]
) -> frozenset[int]:
    """Who was born before the shim, or in another boot, cannot descend from it."""
    if record and record.identity.boot_id != read_boot_id():
        return frozenset()
    born = record.identity.start_ticks if record else 0
    return frozenset(pid for pid in pids if pid in table and table[pid].start_ticks >= born)


def _name(pids: frozenset[int] | set[int], table: dict[int, Seen]) -> tuple[Identity, ...]:
    boot = read_boot_id()
    named = (identify(pid, boot) for pid in sorted(pids) if pid in table)
    return tuple(identity for identity in named if identity is not None)


def _members(record: ShimRecord | None) -> frozenset[int]:
    return cgroups.members(record.cgroup) if record and record.cgroup else frozenset()


def _cgroup_of(record: ShimRecord | None) -> str | None:
    return record.cgroup if record else None


def is_locked(path: str) -> bool:
    """Whether anybody holds this lock; a lock file that was never made is held by nobody."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        text = f"{path}: could not be tried: {error.strerror}; nothing is concluded"
        raise EvidenceUnreadable(text) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
