"""Lays out the folder of one attempt, and reads what the shim and the program left in it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from .errors import BadInput, NodeError
from .job import (
    ANSWER_JSON,
    HEARTBEAT,
    NEW_FILE,
    SHIM_JSON,
    SHIM_LOCK,
    STDERR_LOG,
    STDOUT_LOG,
    TREE_LOCK,
    VERDICT_JSON,
)
from .strict import JsonObject, decode_object
from .ulid import is_ulid

RECORD_MAX = 64 * 1024  # bytes of a shim's own small documents
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_is_number = re.compile(r"[1-9][0-9]{0,8}").fullmatch


class AttemptExists(NodeError):
    """This attempt has a folder already, so it may have run; nothing was started or changed."""

    code = "attempt_exists"
    hint = "an attempt number is used once; look at the folder before anything else"


class EvidenceUnreadable(NodeError):
    """A file that would tell how an attempt stands cannot be read; nothing follows from that."""

    code = "evidence_unreadable"


@dataclass(frozen=True)
class AttemptFolder:
    """Where everything about one attempt lies: `tasks/UID/N/`."""

    path: str
    uid: str
    n: int

    @property
    def stdout(self) -> str:
        return self.file(STDOUT_LOG)

    @property
    def stderr(self) -> str:
        return self.file(STDERR_LOG)

    @property
    def answer(self) -> str:
        return self.file(ANSWER_JSON)

    @property
    def verdict(self) -> str:
        return self.file(VERDICT_JSON)

    @property
    def shim_lock(self) -> str:
        return self.file(SHIM_LOCK)

    @property
    def tree_lock(self) -> str:
        return self.file(TREE_LOCK)

    @property
    def shim_json(self) -> str:
        return self.file(SHIM_JSON)

    @property
    def heartbeat(self) -> str:
        return self.file(HEARTBEAT)

    def file(self, name: str) -> str:
        """The path of one of the files named above."""
        return f"{self.path}/{name}"

    def open(self) -> int:
        """A descriptor of the folder itself, to reach its files by; the caller closes it."""
        return os.open(self.path, _FOLDER)

    def add(self, name: str, content: bytes) -> None:
        """A new file for this user alone; one that stands there already is never written over."""
        written = 0
        descriptor = os.open(self.file(name), NEW_FILE, 0o600)
        try:
            while written < len(content):
                written += os.write(descriptor, memoryview(content)[written:])
        finally:
            os.close(descriptor)

    def share(self) -> None:
        """Let a shim of another user work here; only by a descriptor does it get past the home."""
        with os.scandir(self.path) as entries:
            for entry in entries:
                os.chmod(entry.path, 0o755 if entry.is_dir() else 0o644)
        os.chmod(self.path, 0o777)  # noqa: S103 - nobody else can enter the home above it

    def take_shim_lock(self) -> int:
        """The locked descriptor that goes to the shim; as long as a copy is open, it may live."""
        descriptor = os.open(self.shim_lock, NEW_FILE, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor


def attempt_folder(tasks_dir: str, uid: str, n: int) -> AttemptFolder:
    """The place of an attempt, whether or not it exists; a strange uid never becomes a path."""
    if not is_ulid(uid) or not _is_number(str(n)):
        raise BadInput(f"{uid!r} attempt {n} does not name an attempt", "uid")
    return AttemptFolder(f"{tasks_dir}/{uid}/{n}", uid, n)


def create_folder(tasks_dir: str, uid: str, n: int) -> AttemptFolder:
    """A new, empty folder of mode 0700, or `AttemptExists`: nothing is ever run over evidence."""
    folder = attempt_folder(tasks_dir, uid, n)
    outer = os.open(tasks_dir, _FOLDER)
    try:
        with suppress(FileExistsError):  # an earlier attempt's; a link there fails to open
            os.mkdir(uid, 0o700, dir_fd=outer)
        inner = os.open(uid, _FOLDER, dir_fd=outer)
    finally:
        os.close(outer)
    try:
        os.mkdir(str(n), 0o700, dir_fd=inner)
    except FileExistsError as error:
        raise AttemptExists(
            f"{uid}: could not start attempt {n}: {folder.path} is there already"
        ) from error
    finally:
        os.close(inner)
    return folder


def list_attempts(tasks_dir: str) -> Iterator[tuple[str, int]]:
    """Every (uid, n) that has a folder here, one at a time however many there are."""
    with os.scandir(tasks_dir) as entries:
        for entry in entries:
            if is_ulid(entry.name) and entry.is_dir(follow_symlinks=False):
                for n in attempt_numbers(tasks_dir, entry.name):
                    yield entry.name, n


def attempt_numbers(tasks_dir: str, uid: str) -> tuple[int, ...]:
    """The numbers of this task's attempts that left a folder, in order; empty when none did."""
    try:
        with os.scandir(f"{tasks_dir}/{uid}") as entries:
            return tuple(sorted(int(entry.name) for entry in entries if _is_number(entry.name)))
    except FileNotFoundError:
        return ()


def read_untrusted(path: str, limit: int) -> bytes | None:
    """The bytes of a plain small file, `BadInput` for anything else; None when there is none.

    `EvidenceUnreadable` when the disk or the permissions fail: that is not "nothing there".
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise BadInput("a link or a socket, not a plain file") from error
        raise _unreadable(path, error) from error
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
            raise BadInput("not a plain file of its own")
        if about.st_size > limit:
            raise BadInput(f"{about.st_size} bytes where at most {limit} are taken")
        return _read_to(descriptor, limit)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)


def _unreadable(path: str, error: OSError) -> EvidenceUnreadable:
    return EvidenceUnreadable(f"{path}: could not be read: {error.strerror}; nothing is concluded")


def _read_to(descriptor: int, limit: int) -> bytes:
    content = b""
    while len(content) <= limit:
        chunk = os.read(descriptor, limit + 1 - len(content))
        if not chunk:
            return content
        content += chunk
    raise BadInput(f"more than {limit} bytes")


def read_record(path: str) -> JsonObject | None:
    """One of the shim's own documents; None when it is not there, or torn by a crash."""
    try:
        raw = read_untrusted(path, RECORD_MAX)
        return None if raw is None else decode_object(raw, RECORD_MAX)
    except BadInput:  # renamed into place whole, so half a document means the machine went down
        return None
