"""Writes files of the hub in one durable step: the old text or the new one, whatever happens."""

from __future__ import annotations

import os
from pathlib import Path

from agent_node.failpoints import failpoint


class NotSynced(OSError):
    """The new text is in its place, and a loss of power may still bring the old one back."""


def write_durably(
    path: Path, text: str, *, point: str, mode: int = 0o600, new: bool = False
) -> None:
    """Write the whole file and have it on the disk before this returns, or leave all as it was.

    `point` names its crash points. `new`: `FileExistsError` where the file is there already.
    `NotSynced` is the one error after which the new text may stand. No sync is ever repeated: a
    second try writes another file, because after a sync that failed the next one may lie.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)  # of a process that died here and had our number
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(draft, flags, mode), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        failpoint(f"{point}.before_rename")
        (os.link if new else os.replace)(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_names(path, point=point)


def sync_names(path: Path, *, point: str) -> None:
    """What was put in the place of `path` stays there through a loss of power; else `NotSynced`."""
    try:
        failpoint(f"{point}.after_rename")
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise NotSynced(error.errno, error.strerror, str(path)) from error
