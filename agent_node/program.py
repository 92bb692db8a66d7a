"""Knows which program this process is, and keeps the programs of a home side by side."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from .failpoints import failpoint
from .home import Home

LINK = "agent-node.pyz"  # what forced commands and units name; it leads to the current program
FOLDER = "program"
_ID = 12  # hex digits of the sha256 in a program's name
_is_program = re.compile(r"agent-node-([0-9a-f]{12})\.pyz").fullmatch
_is_leftover = re.compile(r"\.(new|link)-[0-9a-f]{16}").fullmatch
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def folder_of(home: Home) -> Path:
    """Where the home's programs lie."""
    return home.root / FOLDER


def link_of(home: Home) -> Path:
    """The name under which a home's current program is always found."""
    return folder_of(home) / LINK


def path_of(home: Home, sha256: str) -> Path:
    """Where the program with this hash lies, or would; a name is never used for other bytes."""
    return folder_of(home) / f"agent-node-{sha256[:_ID]}.pyz"


def current(home: Home) -> Path | None:
    """The program that starts here from now on; None: the home has none of its own."""
    found = link_of(home).resolve()
    return found if _is_program(found.name) and found.is_file() else None


def running() -> Path | None:
    """The file this process reads its modules from; None: it is installed as single files."""
    archive = Path(__file__).parents[1]
    return archive if archive.is_file() else None


@cache
def running_id() -> str | None:
    """The first digits of this program's sha256, as its name has them; None: it is named else."""
    archive = running()
    return id_in(archive) if archive else None


def id_in(path: Path) -> str | None:
    """The first digits of a program's sha256, as its name has them; None: it is named else."""
    named = _is_program(path.name)
    return named.group(1) if named else None


def running_in(home: Home) -> Path | None:
    """This process's program where it is one of this home's own; None: it came another way."""
    archive = running()
    own = archive is not None and archive.parent == folder_of(home).resolve()
    return archive if own and running_id() is not None else None


def abilities() -> dict[str, int]:
    """What another program has to know before it gives way to this one."""
    from .store.schema import VERSION
    from .wire import OLDEST_WIRE, WIRE

    return {"wire": WIRE, "oldest_wire": OLDEST_WIRE, "schema": VERSION}


def start_words(program: Path) -> list[str]:
    """The beginning of every command line of this program: nothing of the site, by its own name."""
    return [sys.executable, "-I", "-S", str(program)]


def hash_of_file(path: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_program(home: Home, content: bytes) -> Path:
    """The program's path; it is there whole and stays through a power cut, or nothing is there."""
    sha256 = hashlib.sha256(content).hexdigest()
    path = path_of(home, sha256)
    if path.is_file() and hash_of_file(path) == sha256:
        return path
    replace(path, content, 0o700)
    return path


def replace(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file durably in one step: under a random new name, synced, renamed, synced."""
    fresh = path.parent / f".new-{os.urandom(8).hex()}"
    descriptor = os.open(fresh, _NEW, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            failpoint("program.before_sync")
            os.fsync(file.fileno())
        failpoint("program.before_rename")
        fresh.rename(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def point_link(home: Home, target: Path) -> None:
    """From now on this program is what starts here; the link is never missing in between."""
    fresh = folder_of(home) / f".link-{os.urandom(8).hex()}"
    fresh.symlink_to(target.name)
    try:
        failpoint("program.before_link")
        fresh.rename(link_of(home))
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    _sync_folder(folder_of(home))
    failpoint("program.after_link")


def remove_old(home: Home, keep: frozenset[Path]) -> list[str]:
    """Take away programs that are neither kept nor run by anybody, and unfinished files.

    Only who holds the upgrade's lock may. A program that runs holds a lock on its own file.
    """
    named = _named_by_processes(folder_of(home))
    gone = []
    for path in sorted(folder_of(home).iterdir()):
        old = _is_program(path.name) and path not in keep and path.name not in named
        if (old and _is_free(path)) or _is_leftover(path.name):
            path.unlink(missing_ok=True)
            gone.append(path.name)
    return gone


def _is_free(path: Path) -> bool:
    """Whether no process holds the lock that `__main__` takes on its own program."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _named_by_processes(folder: Path) -> frozenset[str]:
    """Programs of this folder that stand in a command line: zygotes and shims hold no lock on
    theirs. Another home on this machine may run one of the same name.
    """
    named: set[str] = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                named |= {os.fsdecode(word) for word in words if word.endswith(b".pyz")}
    return frozenset(os.path.basename(path) for path in named if _may_lie_in(folder, path))


def _may_lie_in(folder: Path, path: str) -> bool:
    """Whether this path of another process leads there; a relative one may."""
    try:
        return not os.path.isabs(path) or os.path.samefile(os.path.dirname(path), folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
