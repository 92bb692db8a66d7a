"""Removes a folder whole and nothing beyond it, or says why something of it stays."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOUNTED = "something is mounted in it: unmount that first"
UNFINISHED = "it holds more than goes at once: the rest goes later"


class _Over(Exception):
    """Whoever waits for it waits no longer."""


def remove_folder(
    parent: str, name: str, over: Callable[[], bool] = lambda: False
) -> str | None:
    """Why something of it stays; None: nothing is there any more.

    What its owner, who we are, made read-only is opened first. A link in it goes and is never
    followed; what is mounted in it, and what stands in its place, is left as it is. Once `over`
    says so, the rest of it stays: a program that still runs may fill it faster than it is emptied.
    """
    try:
        outer = os.open(parent, _FOLDER & ~os.O_NOFOLLOW)  # a person may keep it elsewhere
        try:
            return _remove(outer, name, over)
        finally:
            os.close(outer)
    except _Over:
        return UNFINISHED
    except OSError as error:
        return _why(error) if os.path.lexists(f"{parent}/{name}") else None


def _remove(outer: int, name: str, over: Callable[[], bool]) -> str | None:
    mount, stays = _mount_of(outer), list[str]()
    with _opened(name, outer, mount) as top:
        _empty(top, mount, stays, over)
    if stays:
        return MOUNTED if MOUNTED in stays else stays[0]
    os.rmdir(name, dir_fd=outer)
    return None


def _empty(top: int, mount: bytes, stays: list[str], over: Callable[[], bool]) -> None:
    """Its folders are emptied one at a time, and what they hold of folders is lifted to the top: a
    program may have nested them deeper than descriptors, or calls within calls, would reach.
    """
    fresh = (f".going-{os.urandom(8).hex()}-{number}" for number in count())
    ahead = _clear(top, stays, over)
    while ahead:
        name = ahead.pop()
        with _noted(stays):
            with _opened(name, top, mount) as inner:
                for child in _clear(inner, stays, over):
                    with _noted(stays), _opened(child, inner, mount):  # ours to move, from here on
                        lifted = next(fresh)
                        os.rename(child, lifted, src_dir_fd=inner, dst_dir_fd=top)
                        ahead.append(lifted)
            os.rmdir(name, dir_fd=top)


def _clear(folder: int, stays: list[str], over: Callable[[], bool]) -> list[str]:
    """All of it goes but folders that hold something; their names."""
    left = []
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if over():
            raise _Over
        if not is_folder:
            with _noted(stays):
                os.unlink(name, dir_fd=folder)
            continue
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:  # mostly it is not empty; else that is told when it is looked at again
            left.append(name)
    return left


@contextmanager
def _opened(name: str, parent: int, mount: bytes) -> Iterator[int]:
    """The folder itself, with all rights that its owner can have; never one that is mounted."""
    place = os.open(name, _PLACE, dir_fd=parent)
    try:
        if _mount_of(place) != mount:
            raise OSError(errno.EBUSY, MOUNTED)
        if os.fstat(place).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            with suppress(PermissionError):  # not ours: what can be done without is done
                os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)
        folder = os.open(".", _FOLDER, dir_fd=place)
    finally:
        os.close(place)
    try:
        yield folder
    finally:
        os.close(folder)


def _mount_of(folder: int) -> bytes:
    """The mount that it lies in, as the kernel numbers them; nothing where it does not say."""
    with open(f"/proc/self/fdinfo/{folder}", "rb") as lines:
        return next((line for line in lines if line.startswith(b"mnt_id:")), b"")


@contextmanager
def _noted(stays: list[str]) -> Iterator[None]:
    """What cannot go keeps nothing else; what is gone already is no trouble."""
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        stays.append(_why(error))


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__
