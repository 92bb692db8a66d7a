"""Takes artifacts in piece by piece from somebody who may be cut off at any of them."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .artifacts import (
    PART,
    PIECE,
    SIZE_MAX,
    SYNC_EVERY,
    Shelf,
    make_folder,
    sync,
    write_all,
)
from .errors import BadInput, Refused
from .plain_files import open_plain

if TYPE_CHECKING:
    from hashlib import _Hash

UNFINISHED_MAX = 8  # begun and not whole; the one that rested longest makes room
HASHED_AT_ONCE = 8 * PIECE  # after a restart what lies there is hashed again, so much a time


@dataclass(frozen=True)
class Progress:
    """How many bytes of it are here; only when it is `done` it is an artifact."""

    have: int
    done: bool


@dataclass(eq=False)
class _Upload:
    path: Path
    have: int
    hashed: int = 0
    hash: _Hash = field(default_factory=hashlib.sha256)


class Uploads:
    """What was begun lies beside the artifacts and outlives this process."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._begun: dict[str, _Upload] = {}

    def progress(self, sha256: str) -> Progress:
        """How far it is; nothing is changed."""
        size = self._shelf.has(sha256)
        if size is not None:
            return Progress(size, done=True)
        return Progress(_size(self._path(sha256)) or 0, done=False)

    def put(self, sha256: str, *, size: int, offset: int, data: bytes) -> Progress:
        """Add these bytes where they belong next; others change nothing, and the answer says so.

        `Refused` when all are here and have another hash: they are thrown away.
        """
        if not 0 <= size <= SIZE_MAX:
            raise BadInput(f"{size} bytes; an artifact has at most {SIZE_MAX}", "size")
        there = self._shelf.has(sha256)
        if there is not None:
            return Progress(there, done=True)
        try:
            return self._go_on(sha256, size, offset, data)
        except OSError:  # after a sync that failed a second may lie: its bytes come and go anew
            self._begun.pop(sha256, None)
            with suppress(OSError):
                self._path(sha256).unlink(missing_ok=True)
            raise

    def _go_on(self, sha256: str, size: int, offset: int, data: bytes) -> Progress:
        upload = self._find(sha256, size)
        if offset == upload.have and data:
            if upload.have + len(data) > size:
                raise BadInput(f"more than the {size} bytes that were announced", "data")
            _append(upload, data)
        whole = _catch_up(upload) and upload.have == size
        if not whole:
            return Progress(upload.have, done=False)
        self._finish(sha256, upload)
        return Progress(size, done=True)

    def _path(self, sha256: str) -> Path:
        return self._shelf.root / f"{PART}{self._shelf.path_of(sha256).name}"

    def _find(self, sha256: str, size: int) -> _Upload:
        path = self._path(sha256)
        known, have = self._begun.get(sha256), _size(path)
        if have is None or have > size:
            path.unlink(missing_ok=True)
            self._make_room()
            known, have = None, 0
            make_folder(self._shelf.root)
            os.close(open_plain(path, os.O_WRONLY | os.O_CREAT))
        if known is None or known.have != have:
            known = self._begun[sha256] = _Upload(path, have)
        return known

    def _make_room(self) -> None:
        """For one more; whoever sent what goes here begins it again."""
        parts = [path for path in self._shelf.root.glob(f"{PART}*") if _size(path) is not None]
        parts.sort(key=lambda path: path.stat().st_mtime)
        for path in parts[: max(len(parts) - UNFINISHED_MAX + 1, 0)]:
            path.unlink(missing_ok=True)
        self._begun = {sha: one for sha, one in self._begun.items() if one.path.exists()}

    def _finish(self, sha256: str, upload: _Upload) -> None:
        del self._begun[sha256]
        if upload.hash.hexdigest() != sha256:
            upload.path.unlink(missing_ok=True)
            raise Refused("hash_mismatch", f"{sha256}: other bytes came; they were thrown away")
        descriptor = open_plain(upload.path, os.O_WRONLY)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
        self._shelf.put_in_place(upload.path, sha256)


def _append(upload: _Upload, data: bytes) -> None:
    descriptor = open_plain(upload.path, os.O_WRONLY)
    try:
        os.lseek(descriptor, upload.have, os.SEEK_SET)
        write_all(descriptor, data)
        if upload.hashed == upload.have:
            upload.hash.update(data)
            upload.hashed += len(data)
        upload.have += len(data)
        if upload.have % SYNC_EVERY < len(data):
            os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def _catch_up(upload: _Upload) -> bool:
    """Whether all that lies there is hashed by now."""
    if upload.hashed == upload.have:
        return True
    descriptor = open_plain(upload.path, os.O_RDONLY)
    try:
        data = os.pread(descriptor, HASHED_AT_ONCE, upload.hashed)
    finally:
        os.close(descriptor)
    upload.hash.update(data)
    upload.hashed += len(data)
    return upload.hashed == upload.have


def _size(path: Path) -> int | None:
    """Its size; None: there is none."""
    try:
        return path.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return None
