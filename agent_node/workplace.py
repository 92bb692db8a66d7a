"""Keeps the folder in which another user's program works, in that user's own home."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress

from .job import ANSWER_JSON, INPUTS, NEW_FILE, WORK

ANSWER_ROOM = 256 * 1024 + 1  # one byte more than an answer may have, so that it shows
RUN_FOLDER = ".agent-node-run"  # in the user's own home: one folder for each attempt
COMMAND = "agent-node"
BIN = "bin"
STAGED = ".inputs"  # behind the place that they go to as soon as it is made
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1024 * 1024


def make_place(place: str) -> None:
    """`place` with a folder to work in, and what was laid out for it; FileExistsError when
    somebody made one before us.
    """
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(place), 0o700)
    os.mkdir(place, 0o700)
    os.mkdir(f"{place}/{WORK}", 0o700)
    with suppress(FileNotFoundError):  # most tasks are given no files
        os.rename(f"{place}{STAGED}", f"{place}/{INPUTS}")


def take_answer(place: str, folder: int) -> None:
    """Copy the program's answer to where the node reads it; its owner may have closed it to all.

    Of a link, a pipe or what else cannot be taken nothing is read: a folder in the answer's place
    tells the node so. One that is too long is copied too long, for the node to say so.
    """
    try:
        answer = os.open(f"{place}/{ANSWER_JSON}", _PLAIN)
    except FileNotFoundError:
        return
    except OSError:
        _refuse(folder)
        return
    try:
        about = os.fstat(answer)
        if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
            _write_new(ANSWER_JSON, os.pread(answer, ANSWER_ROOM, 0), folder)
        else:
            _refuse(folder)
    except OSError:
        _refuse(folder)
    finally:
        os.close(answer)


def _refuse(folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(ANSWER_JSON, dir_fd=folder)
    with suppress(OSError):  # on a full disk the attempt counts, and its answer does not
        os.mkdir(ANSWER_JSON, 0o755, dir_fd=folder)


def provide_command(code: int) -> None:
    """Put `agent-node` where this user's programs find it: they cannot read the node's own.

    It is this user's file, no less and no more to be trusted than the rest of that home.
    """
    import pwd

    home = pwd.getpwuid(os.getuid()).pw_dir
    target = f"{home}/{RUN_FOLDER}/{BIN}"
    try:
        os.makedirs(target, 0o700, exist_ok=True)
        _copy(code, target)
    except OSError as error:
        raise SystemExit(f"agent-node: its user has no place to work in: {error}") from error


def _copy(code: int, target: str) -> None:
    fresh = f".{COMMAND}.{os.urandom(6).hex()}"
    folder = os.open(target, _FOLDER)
    try:
        content = os.pread(code, os.fstat(code).st_size, 0).split(b"\n", 1)[1]
        _write_new(fresh, f"#!{sys.executable} -IS\n".encode() + content, folder, 0o700)
        os.rename(fresh, COMMAND, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _write_new(name: str, content: bytes, folder: int, mode: int = 0o644) -> None:
    descriptor = os.open(name, NEW_FILE, mode, dir_fd=folder)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left[:_CHUNK]) :]
    finally:
        os.close(descriptor)
