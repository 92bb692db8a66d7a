"""Writes files whole or not at all, follows no link, and leaves nothing behind when it fails."""

from __future__ import annotations

import os
import stat

from .words import Refused

READ_MAX = 1024 * 1024


def make_folder(path: str) -> bool:
    """A folder of ours alone (0700), with those above it; whether it had to be made."""
    if os.path.isdir(path) and not os.path.islink(path):
        return False
    os.makedirs(path, mode=0o700, exist_ok=False)
    return True


def kind_of(path: str) -> str:
    """What stands there: missing, link, file, folder or other. A link is never followed."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return "missing"
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def read_own(path: str) -> str | None:
    """The text of a plain file of ours; None: there is none. Anything else there is refused."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    kind = kind_of(path)
    if kind == "missing":
        return None
    if kind != "file":
        raise Refused("not_a_file", f"{path}: is a {kind}, not a plain file; it was left alone",
                      f"put a plain file there, or take it away: ls -l {path}")  # fmt: skip
    with os.fdopen(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise Refused("not_yours", f"{path}: belongs to user {found.st_uid}; left alone")
        data = file.read(READ_MAX + 1)
    if len(data) > READ_MAX:
        raise Refused("too_large", f"{path}: is larger than {READ_MAX} bytes; it was left alone")
    return data.decode("utf-8", "surrogateescape")


def write_own(path: str, data: bytes, mode: int = 0o600) -> None:
    """These bytes in the place of whatever file stands there, durable, in one step."""
    folder = os.path.dirname(path)
    draft = os.path.join(folder, f".new-{os.urandom(8).hex()}")  # a name that the node sweeps
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, path)
    except BaseException:
        if os.path.lexists(draft):
            os.unlink(draft)
        raise
    sync_folder(folder)


def point(link: str, target: str) -> None:
    """Let this link lead to that file from now on, in one step."""
    draft = os.path.join(os.path.dirname(link), f".link-{os.urandom(8).hex()}")
    os.symlink(target, draft)
    try:
        os.rename(draft, link)
    except BaseException:
        os.unlink(draft)
        raise
    sync_folder(os.path.dirname(link))


def sync_folder(folder: str) -> None:
    """What was renamed in this folder stays so through a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
