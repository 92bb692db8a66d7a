"""Judges attempts of another user, by what a warden of that very user saw and could end."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .attempts import AttemptFolder
from .evidence import Alive, Dead, ShimRecord, is_locked, read_shim_record
from .processes import Identity, is_alive, process_table, read_boot_id, real_uid
from .strict import JsonObject, JsonValue


@dataclass(frozen=True)
class Sight:
    """What a warden found after it had ended what it could; taken when shim.lock was free.

    `hidden` are processes of that user, young enough to belong to the attempt, which even the
    user's own warden cannot look into.
    """

    left: tuple[int, ...]
    hidden: tuple[int, ...]


@dataclass(frozen=True)
class Unseen:
    """Nothing can be concluded yet: a warden has to look, or to look again."""

    why: str


def judge_other(
    folder: AttemptFolder,
    *,
    claimed_boot: str | None = None,
    shim: Identity | None = None,
    sight: Sight | None = None,
) -> Alive | Dead | Unseen:
    """What can be proved about an attempt whose processes are not ours to look into.

    No sight, or one that could not see everything, never proves death. A sight serves once: it
    says how things stood after the shim had let go of its lock.
    """
    if claimed_boot is not None and claimed_boot != read_boot_id():
        return Dead("the machine has been restarted since this attempt began")
    record = read_shim_record(folder)
    if is_locked(folder.shim_lock):
        return _judge_locked(record, shim)
    if sight is None:
        return Unseen("its shim is gone, and nobody of its user has looked yet")
    if sight.left:
        return Unseen(f"processes that do not end: {_listed(sight.left)}")
    if is_locked(folder.tree_lock):
        return Unseen("tree.lock is held by a process that cannot be seen")
    if sight.hidden and os.path.lexists(folder.tree_lock):
        return Unseen(f"processes that cannot be looked into: {_listed(sight.hidden)}")
    return Dead("its shim is dead, its locks are free, and its user's processes were looked at")


def _judge_locked(record: ShimRecord | None, shim: Identity | None) -> Alive | Unseen:
    known = record.identity if record is not None else shim
    if known is None or is_alive(known):
        return Alive(known, signed_in=known is not None)
    return Unseen("shim.lock is held, and its shim is dead")


def clearing(folder: AttemptFolder, token: str, shim: Identity | None) -> JsonObject:
    """What a warden has to know to end what is left of this attempt and to say what it saw."""
    record = read_shim_record(folder)
    known = record.identity if record is not None else shim
    lock = _place_of(folder.tree_lock)
    return {
        "do": "clear",
        "token": token,
        "lock": None if lock is None else [*lock],
        "daemon": os.getpid(),
        "born": known.start_ticks if known and known.boot_id == read_boot_id() else 0,
    }


def looking(
    folder: AttemptFolder, token: str, uid: int, *, shims: list[int], daemon: int | None
) -> JsonObject:
    """The same, to end nobody. `shims` live; `uid` is the other user's.

    What lies right below the daemon and is not that user's, as sudo is, leads to what is ours; what
    is that user's may have been left there by a program.
    """
    table = process_table()
    below = [pid for pid, seen in table.items() if seen.ppid == daemon]
    sudos = [pid for pid in below if real_uid(pid) != uid]
    lived: list[JsonValue] = [*shims]
    started: list[JsonValue] = [*sudos]
    known: JsonObject = {"do": "look", "daemon": -1, "shims": lived, "starters": started}
    return {**clearing(folder, token, None), **known}


def sight_of(reply: JsonObject | None) -> Sight | None:
    """What a warden said; None: whatever came back, if anything, says nothing of who is left."""
    if reply is None:
        return None
    left, hidden = _pids(reply.get("left")), _pids(reply.get("hidden"))
    return None if left is None or hidden is None else Sight(left, hidden)


def _pids(said: JsonValue) -> tuple[int, ...] | None:
    if not isinstance(said, list):
        return None
    pids = tuple(one for one in said if isinstance(one, int))
    return pids if len(pids) == len(said) else None


def _place_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _listed(pids: tuple[int, ...]) -> str:
    return ", ".join(map(str, sorted(pids)[:20]))
