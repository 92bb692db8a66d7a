"""Gives each attempt a cgroup of its own, where a part of the v2 tree is ours to divide."""

from __future__ import annotations

import os
import time

_PREFIX = "arc-attempt-"
_ENTERED_BY_S = 60.0


def find_base(
    *, own: str = "/proc/self/cgroup", mounts: str = "/proc/self/mountinfo"
) -> str | None:
    """Our own v2 cgroup's folder when we may make cgroups in it; None when there is none to use.

    Root's own tree is never taken: where nobody delegated one, the machine's is not ours.
    """
    path, mount = _own_path(own), mount_point(mounts)
    if path in (None, "/") or mount is None:
        return None
    base = f"{mount}{path}"
    writable = os.access(base, os.W_OK) and os.access(f"{base}/cgroup.procs", os.W_OK)
    return base if writable and os.path.exists(f"{base}/cgroup.kill") else None


def find_base_of(pid: int | None) -> str | None:
    """The same of another process of ours, None for our own; None also where it has ended."""
    try:
        return find_base(own=f"/proc/{pid or 'self'}/cgroup")
    except OSError:
        return None


def is_beside_manager(pid: int, uid: int, *, proc: str = "/proc") -> bool:
    """Whether it lives where systemd keeps its manager of this user's services and `(sd-pam)`, the
    manager's child into which nobody may look. No process comes there but by moving itself.
    """
    try:
        with open(f"{proc}/{pid}/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            return any(line.endswith(f"/user@{uid}.service/init.scope\n") for line in file)
    except OSError:
        return False


def enter_new(base: str, name: str) -> str:
    """Make a cgroup below `base` and move this process in; children are born inside."""
    path = f"{base}/{_PREFIX}{name}"
    os.mkdir(path, 0o700)
    _write(f"{path}/cgroup.procs", b"0")
    return path


def is_populated(path: str) -> bool:
    """Whether anything lives in this cgroup or below; one that is gone has nobody in it."""
    try:
        with open(f"{path}/cgroup.events", encoding="ascii") as file:
            return "populated 1" in file.read().splitlines()
    except FileNotFoundError:
        return False


def members(path: str) -> frozenset[int]:
    """Who lives in this cgroup; members of cgroups below it are left to `kill_all`."""
    try:
        with open(f"{path}/cgroup.procs", encoding="ascii") as file:
            return frozenset(int(line) for line in file)
    except FileNotFoundError:
        return frozenset()


def kill_all(path: str) -> None:
    """End everything in this cgroup at once, forks in flight included."""
    try:
        _write(f"{path}/cgroup.kill", b"1")
    except FileNotFoundError:
        return


def remove(path: str) -> bool:
    """True when the cgroup is gone; False while something still lives in it."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:  # EBUSY: it is not empty yet; the caller tries again later
        return False
    return True


def sweep(base: str) -> None:
    """Remove what ended attempts left empty; one made a moment ago may be about to be entered."""
    with os.scandir(base) as entries:
        ours = [entry for entry in entries if entry.name.startswith(_PREFIX)]
    for entry in ours:
        if time.time() - entry.stat(follow_symlinks=False).st_ctime > _ENTERED_BY_S:
            remove(entry.path)


def _own_path(own: str) -> str | None:
    with open(own, encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.rstrip("\n") for line in file]
    return next((line[3:] for line in lines if line.startswith("0::")), None)


def mount_point(mounts: str = "/proc/self/mountinfo") -> str | None:
    """Where the v2 tree is mounted; None: nowhere."""
    with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            head, _, tail = line.partition(" - ")
            if tail.startswith("cgroup2 "):
                return head.split()[4]
    return None


def _write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
