"""Says on what machine a run was made, and how quiet it was."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from agent_node import __version__

FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, EXT4_TOPDIR = 0x80086601, 0x40086602, 0x00020000
QUIET_LOAD = 1.5
PATIENCE_S = 60.0
Told = dict[str, str | int | float]


def describe(folder: Path) -> Told:
    """Everything that a figure has to be read with."""
    return {
        "agent_node": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "file_system": file_system(folder),
        "fdatasync_us": round(fdatasync_us(folder), 1),
        "load_before": load(),
        "sqlite_utils": installed("sqlite-utils"),
        "commit": commit(),
    }


def load() -> float:
    """How many wanted a core, on average, in the last minute."""
    return round(os.getloadavg()[0], 2)


def wait_for_quiet(patience_s: float = PATIENCE_S) -> None:
    """Give the machine a while to calm down; after it, measuring goes on anyway."""
    give_up = time.monotonic() + patience_s
    while load() > QUIET_LOAD and time.monotonic() < give_up:
        time.sleep(2.0)


def cpu_model() -> str:
    """What the kernel calls this processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def file_system(folder: Path) -> str:
    """Of what kind the disk below this folder is: on a tmpfs nothing is durable."""
    real, best = str(folder.resolve()), ("", "unknown")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind = line.split()[:3]
        if f"{real}/".startswith(f"{mount.rstrip('/')}/") and len(mount) > len(best[0]):
            best = (mount, kind)
    return best[1]


def spread_folders(base: Path) -> None:
    """Ask ext4 to lay each folder of `base` in a place of its own on the disk.

    ext4 looks one by one past the inodes that were deleted within the last minutes; beside the
    remains of the last run each new file would cost 0.3 ms more. Elsewhere nothing is asked.
    """
    descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = bytearray(8)
        fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, flags)
        number = int.from_bytes(flags, sys.byteorder) | EXT4_TOPDIR
        fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, number.to_bytes(8, sys.byteorder))
    except OSError as error:
        if error.errno not in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EPERM, errno.EINVAL):
            raise
    finally:
        os.close(descriptor)


def fdatasync_us(folder: Path) -> float:
    """What one durable write of a page costs here: the part that no code of ours can save."""
    path = folder / "fdatasync"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    page, took = b"x" * 4096, []
    try:
        for _ in range(200):
            os.pwrite(descriptor, page, 0)
            began = time.perf_counter()
            os.fdatasync(descriptor)
            took.append(time.perf_counter() - began)
    finally:
        os.close(descriptor)
        path.unlink()
    return median(took) * 1e6


def installed(name: str) -> str:
    """The version of a peer, or that it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def commit() -> str:
    """The commit that was measured; with a plus where the tree differs from it."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    said = subprocess.run(
        [git, "describe", "--always", "--dirty=+"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return said.stdout.strip() or "unknown"
