"""Takes the files that a program named in its answer, piece by piece, and trusts none of them."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Generator, Sequence
from typing import NamedTuple

from .artifacts import PIECE, SIZE_MAX, Kept, Shelf
from .strict import JsonObject, JsonValue, kind_of

COUNT_MAX = 64  # artifacts of one attempt
TOTAL_MAX = 256 * 1024 * 1024  # bytes of all of them
NAME_MAX = 200  # characters, as in a reference to it
PATH_MAX, DEPTH_MAX = 4096, 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SAID = {
    errno.ENOENT: "there is no such file",
    errno.ELOOP: "a link, or a path through one; none is followed",
    errno.ENOTDIR: "a link or a file, where its path needs a folder",
    errno.ENXIO: "no plain file",
    errno.EACCES: "it cannot be read by the node's own user",
    errno.ENAMETOOLONG: "its path is too long",
}  # fmt: skip

Gathering = Generator[None, None, list[JsonValue]]


class NotTaken(Exception):
    """Why a file is not taken; the attempt counts without it."""


class Wish(NamedTuple):
    """A file below the working folder, and what others will call it."""

    name: str
    path: str


def gather(said: Sequence[JsonValue], place: str | None, shelf: Shelf) -> Gathering:
    """What is recorded of each entry: {name, sha256, size}, or {name, because}; a piece a step.

    `place` is the working folder; None: the node's own user cannot look into it.
    """
    found: list[JsonValue] = []
    names: set[str] = set()
    room = TOTAL_MAX
    for number, entry in enumerate(said[:COUNT_MAX], start=1):
        try:
            wish = wish_of(entry, names)
            kept = yield from _take(wish.path, place, shelf, room)
        except (NotTaken, OSError) as error:
            found.append({"name": _called(entry, number), "because": _why(error)})
            continue
        room -= kept.size
        found.append({"name": wish.name, "sha256": kept.sha256, "size": kept.size})
    if len(said) > COUNT_MAX:
        more = f"{len(said) - COUNT_MAX} more were named; at most {COUNT_MAX} are taken"
        found.append({"name": "", "because": more})
    return found


def wish_of(entry: JsonValue, names: set[str]) -> Wish:
    """What this entry asks for, under a name that is not in `names` yet, which it joins."""
    path = entry.get("path") if isinstance(entry, dict) else entry
    if not isinstance(path, str):
        raise NotTaken(f"a {kind_of(entry)} where a path, or path and name, belongs")
    name = entry.get("name", path) if isinstance(entry, dict) else path
    if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX:
        raise NotTaken(f"its name should be a text of 1 to {NAME_MAX} characters")
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in name):
        raise NotTaken("its name has a control character in it")
    if name in names:
        raise NotTaken("another artifact of this attempt has that name")
    names.add(name)
    return Wish(name, path)


def open_inside(place: str, path: str) -> int:
    """A descriptor of this file below `place`; no link on the way to it is followed."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise NotTaken("should be a path inside the working folder")
    if len(path) > PATH_MAX or len(parts) > DEPTH_MAX:
        raise NotTaken("its path is too long")
    folder = os.open(place, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _PLAIN, dir_fd=folder)
    except UnicodeEncodeError as error:
        raise NotTaken("its path is no text that a file can have") from error
    finally:
        os.close(folder)


def _take(path: str, place: str | None, shelf: Shelf, room: int) -> Generator[None, None, Kept]:
    if place is None:
        raise NotTaken("its agent runs as another user, whose files the node does not take")
    source = open_inside(place, path)
    try:
        before = os.fstat(source)
        _check(before, room)
        with shelf.write() as writing:
            while data := os.read(source, PIECE):
                if writing.size + len(data) > before.st_size:
                    break
                writing.add(data)
                yield
            if writing.size != before.st_size or _print(os.fstat(source)) != _print(before):
                raise NotTaken("it changed while it was copied")
            return writing.keep()
    finally:
        os.close(source)


def _check(about: os.stat_result, room: int) -> None:
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        raise NotTaken("no plain file of one name")
    if about.st_size > SIZE_MAX:
        raise NotTaken(f"{about.st_size} bytes; at most {SIZE_MAX} are taken")
    if about.st_size > room:
        raise NotTaken(f"with it the artifacts have more than {TOTAL_MAX} bytes together")


def _print(about: os.stat_result) -> tuple[int, ...]:
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_nlink


def _why(error: NotTaken | OSError) -> str:
    if isinstance(error, OSError):
        return _SAID.get(error.errno or 0) or f"it could not be kept: {error.strerror}"
    return str(error)


def _called(entry: JsonValue, number: int) -> str:
    """The name under which a person finds the entry again."""
    said: JsonObject = entry if isinstance(entry, dict) else {"path": entry}
    name = said.get("name") or said.get("path")
    text = name if isinstance(name, str) else f"artifact {number}"
    return "".join(sign if unicodedata.category(sign) not in ("Cc", "Cs") else "?"
                   for sign in text[:NAME_MAX])  # fmt: skip
