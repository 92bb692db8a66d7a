"""Reads secrets from files that are their owner's alone; a secret never stands anywhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agent_node.plain_files import NotPlainFile, open_plain

from .errors import ArcError

SECRET_MAX = 4096


class BadSecret(ArcError):
    """A secret cannot be read, or others can read it too; nothing was done with it."""

    code = "ARC-SECRET"
    exit_code = 2


def read_secret(path: Path) -> bytes:
    """The secret, read anew each time; `BadSecret` says what is wrong with its file."""
    try:
        with open(open_plain(path, os.O_RDONLY), "rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise BadSecret(f"{path}: others can read this secret", hint=f"chmod 600 {path}")
            found = file.read(SECRET_MAX + 1).strip()
    except (OSError, NotPlainFile) as error:
        raise BadSecret(f"{path}: the secret cannot be read: {error.strerror}") from error
    if not found or len(found) > SECRET_MAX:
        raise BadSecret(f"{path}: holds no secret of 1 to {SECRET_MAX} bytes")
    return found
