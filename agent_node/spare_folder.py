"""Keeps one attempt's folder made while a node is at rest, for the first attempt that comes."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from .attempts import AttemptFolder, attempt_folder, create_folder
from .failpoints import failpoint

SPARE = ".next"  # beside the folders of tasks, and no name of one
FIRST = "1"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SECOND = 1_000_000_000  # in the units of a file's times


class _Look(NamedTuple):
    """Which folder stands there, and when it was changed last."""

    device: int
    inode: int
    mode: int
    mtime_ns: int
    ctime_ns: int


class Folders:
    """Lays out the folder of each attempt. New folders are dear where the processor has slept, so
    a first attempt takes one that lies ready, `.next/1`, and all that is left to do is a rename.

    A rename never replaces what holds anything, a link or a file, so it never hides evidence. And
    only what this very process made is taken, with nothing in it: else it goes the longer way.
    """

    def __init__(self, tasks_dir: str) -> None:
        self._tasks, self._spare = tasks_dir, f"{tasks_dir}/{SPARE}"
        self._made: tuple[_Look, _Look] | None = None  # how both folders looked when they were made

    @property
    def has_spare(self) -> bool:
        """Whether one was made and not used; what somebody did to it since is seen when it is."""
        return self._made is not None

    def create(self, uid: str, n: int) -> AttemptFolder:
        """A new, empty folder of mode 0700, or `AttemptExists`: nothing is ever run over another
        attempt's.
        """
        folder = attempt_folder(self._tasks, uid, n)
        if str(n) == FIRST and self._take(uid):
            return folder
        return create_folder(self._tasks, uid, n)

    def make_spare(self) -> None:
        """Have one ready; nothing depends on it, so that a disk may say no and nobody is told."""
        self._made = None
        with suppress(OSError):
            _remove_spare(self._tasks)
            os.mkdir(self._spare, 0o700)
            failpoint("spare.before_inner")
            os.mkdir(f"{self._spare}/{FIRST}", 0o700)
            self._made = self._sealed()

    def _take(self, uid: str) -> bool:
        """Whether what lay ready is this task's now. Looked at before, not after: nothing has moved
        then if it is not as it was made, and who could change it in between could do so afterwards.
        """
        made, self._made = self._made, None
        if made is None:
            return False
        try:
            if self._looks() != made:
                return False
            failpoint("spare.before_rename")
            os.rename(self._spare, f"{self._tasks}/{uid}")
        except OSError:
            return False
        return True

    def _sealed(self) -> tuple[_Look, _Look] | None:
        """Put their times a second back: whatever comes into them sets one that differs, even in
        the same tick of the kernel's clock. None where something had come before that.
        """
        for path in (f"{self._spare}/{FIRST}", self._spare):
            ago = os.lstat(path).st_mtime_ns - _SECOND
            os.utime(path, ns=(ago, ago), follow_symlinks=False)
        looks = self._looks()
        return None if is_taken(self._tasks) else looks

    def _looks(self) -> tuple[_Look, _Look]:
        return _look(self._spare), _look(f"{self._spare}/{FIRST}")


def is_taken(tasks_dir: str) -> bool:
    """Whether there is anything in the spare's place but what a daemon makes, or nothing."""
    spare = f"{tasks_dir}/{SPARE}"
    try:
        names = os.listdir(spare) if not os.path.islink(spare) else [SPARE]
        return names not in ([], [FIRST]) or (names == [FIRST] and _holds_any(f"{spare}/{FIRST}"))
    except FileNotFoundError:
        return False
    except OSError:
        return True  # no folder, or none of ours


def _holds_any(folder: str) -> bool:
    return os.path.islink(folder) or bool(os.listdir(folder))


def _look(path: str) -> _Look:
    found = os.lstat(path)
    return _Look(
        found.st_dev, found.st_ino, found.st_mode, found.st_mtime_ns, found.st_ctime_ns
    )  # fmt: skip


def _remove_spare(tasks_dir: str) -> None:
    """One that was left, if it is empty: what somebody put there stays, and so does a link."""
    outer = os.open(tasks_dir, _FOLDER)
    try:
        with suppress(FileNotFoundError):
            _remove_first(outer)
            os.rmdir(SPARE, dir_fd=outer)
    finally:
        os.close(outer)


def _remove_first(outer: int) -> None:
    inner = os.open(SPARE, _FOLDER, dir_fd=outer)
    try:
        with suppress(FileNotFoundError):
            os.rmdir(FIRST, dir_fd=inner)
    finally:
        os.close(inner)
