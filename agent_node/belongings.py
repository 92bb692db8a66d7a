"""Lays what an attempt is given of other tasks' files into its folder, each checked on the way."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable, Generator, Iterator

from .artifacts import PIECE, Shelf, write_all
from .attempts import AttemptFolder
from .errors import NodeError
from .job import INPUTS, NEW_FILE
from .porter import CHUNK, DONE, NEW, WRITE
from .references import read_reference
from .strict import JsonObject, JsonValue

_NAME_MAX = 200  # bytes of a file's name, with room for what makes it the only one
_MODE = 0o444
_WHY_MAX = 300  # characters of a reason that another user's process gave

# What is yielded is said to whoever lays the files out, and what comes back is the answer; the
# node itself asks nobody, and only lets the loop go on.
Handing = Generator[bytes, bytes, JsonObject]
Copying = Generator[bytes, bytes, None]


class InputGone(NodeError):
    """An artifact is not on the shelf, or not what its name says; the attempt did not begin."""

    code = "input_damaged"
    hint = "nothing: it is brought again where another node or the hub has it"

    def __init__(self, sha256: str, message: str) -> None:
        super().__init__(message)
        self.sha256 = sha256


class NotLaid(NodeError):
    """What another user's task was to be given could not be laid out in that user's home."""


def has_files(context: JsonObject) -> bool:
    """Whether anything of it is a file."""
    return any(sha256_of(ref, value) for ref, value in context.items())


def sha256_of(ref: str, value: JsonValue) -> str | None:
    """The hash of the file that this reference stands for; None: it stands for none."""
    reference = read_reference(ref)
    if reference is None or reference.kind != "artifact" or not isinstance(value, dict):
        return None
    sha256 = value.get("sha256")
    return sha256 if isinstance(sha256, str) else None


def hand_in(context: JsonObject, folder: AttemptFolder, shelf: Shelf, shown: str) -> Handing:
    """The same context, where each file has a `path` below `shown`; a piece of a file a step.

    Copies, never links: the program may do with them what it likes, and the shelf stays whole.
    """
    inputs = folder.file(INPUTS)

    def copy(sha256: str, name: str) -> Copying:
        return _copy(shelf, sha256, f"{inputs}/{name}")

    os.mkdir(inputs, 0o755)
    return (yield from _hand_each(context, shown, copy))


def hand_over(context: JsonObject, folder: AttemptFolder, shelf: Shelf, shown: str) -> Handing:
    """The same, where a warden of the program's own user lays the files out below `shown`.

    The empty folder in the attempt's own says that something of it lies there.
    """

    def copy(sha256: str, name: str) -> Copying:
        return _say(shelf, sha256, name)

    os.mkdir(folder.file(INPUTS), 0o755)
    return (yield from _hand_each(context, shown, copy))


def _hand_each(
    context: JsonObject, shown: str, copy: Callable[[str, str], Copying]
) -> Handing:  # fmt: skip
    given: JsonObject = {}
    names: set[str] = set()
    for ref, value in context.items():
        sha256 = sha256_of(ref, value)
        if sha256 is None or not isinstance(value, dict):
            given[ref] = value
            continue
        name = file_name(str(value.get("name")), sha256, names)
        yield from copy(sha256, name)
        given[ref] = {**value, "path": os.path.join(shown, INPUTS, name)}
    return given


def file_name(name: str, sha256: str, taken: set[str]) -> str:
    """The last part of what the artifact is called, made safe, and unlike those in `taken`."""
    last = name.rpartition("/")[2]
    plain = "".join(sign for sign in last if unicodedata.category(sign) not in ("Cc", "Cf", "Cs"))
    while len(plain.encode()) > _NAME_MAX:
        plain = plain[1:]  # its end says what kind of file it is
    if plain.strip(". ") == "" or plain in taken:
        plain = f"{sha256[:8]}-{plain}" if plain.strip(". ") else sha256
    while plain in taken:
        plain = f"{len(taken)}-{plain}"
    taken.add(plain)
    return plain


def _copy(shelf: Shelf, sha256: str, path: str) -> Copying:
    target = os.open(path, NEW_FILE, _MODE)
    try:
        os.fchmod(target, _MODE)
        for data in _pieces(shelf, sha256, PIECE):
            write_all(target, data)
            yield b""
    finally:
        os.close(target)


def _say(shelf: Shelf, sha256: str, name: str) -> Copying:
    """A no is no disk of ours that fails, but that user's: the attempt did not begin."""
    _laid((yield NEW + name.encode()))
    for data in _pieces(shelf, sha256, CHUNK):
        _laid((yield WRITE + data))


def _laid(answer: bytes) -> None:
    if answer[:1] != DONE:
        raise NotLaid(f"a file for it: {answer[1:].decode(errors='replace')[:_WHY_MAX]}")


def _pieces(shelf: Shelf, sha256: str, size: int) -> Iterator[bytes]:
    """All of its bytes, up to `size` at a time; `InputGone` at the end where they are others."""
    source, found = shelf.open(sha256), hashlib.sha256()
    if source is None:
        raise InputGone(sha256, f"artifact {sha256} is not here any more")
    try:
        while data := os.read(source, size):
            found.update(data)
            yield data
    finally:
        os.close(source)
    if found.hexdigest() != sha256:
        shelf.throw_away(sha256)
        raise InputGone(sha256, f"artifact {sha256} was damaged on the disk")
