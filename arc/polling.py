"""Looks at the files of a pattern, and reads those that have to be: bounded, following no link."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from glob import iglob
from itertools import islice

FILES_MAX = 1000  # of one pattern
BYTES_MAX = 64 * 1024 * 1024  # of one file; a larger one counts by its size and time
BYTES_LOOK = 256 * 1024 * 1024  # of all files of one look; the others are read in the next one
CHUNK = 1024 * 1024
PROBLEMS_MAX = 20


@dataclass(frozen=True)
class Stamps:
    """The plain files of a pattern by path, each with size and time of change; what was left out
    and why.
    """

    stamps: dict[str, str]
    problems: tuple[str, ...] = ()


def stamps_of(pattern: str) -> Stamps:
    """Every plain file now. Links, pipes and devices are left out, and what cannot be reached."""
    stamps: dict[str, str] = {}
    problems: list[str] = []
    paths = list(islice(iglob(pattern), FILES_MAX + 1))
    if len(paths) > FILES_MAX:
        problems.append(f"{pattern}: more than {FILES_MAX} files; only so many are watched")
    for path in sorted(paths[:FILES_MAX]):
        try:
            found = os.lstat(path)
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
            continue
        if stat.S_ISREG(found.st_mode):
            stamps[path] = f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"
        elif not stat.S_ISDIR(found.st_mode):
            problems.append(f"{path}: is no plain file")
    return Stamps(stamps, tuple(problems[:PROBLEMS_MAX]))


def contents_of(stamps: dict[str, str], paths: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The sha256 of each of these files by path, as far as one look goes, and the problems of those
    that cannot be read.
    """
    hashes: dict[str, str] = {}
    problems: list[str] = []
    left = BYTES_LOOK
    for path in paths:
        left -= min(int(stamps[path].split()[0]), BYTES_MAX)
        if left < 0 and hashes:
            break
        try:
            hashes[path] = _sha256(path, stamps[path])
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
    return hashes, problems[:PROBLEMS_MAX]


def _sha256(path: str, stamp: str) -> str:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path}: is no plain file")
        if found.st_size > BYTES_MAX:
            return hashlib.sha256(stamp.encode()).hexdigest()
        digest = hashlib.sha256()
        while len(data := file.read(CHUNK)) > 0 and file.tell() <= BYTES_MAX:
            digest.update(data)
        return digest.hexdigest()
