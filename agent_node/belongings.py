"""Lays what an attempt is given of other tasks' files into its folder, each checked on the way."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Generator

from .artifacts import PIECE, Shelf, write_all
from .attempts import AttemptFolder
from .errors import NodeError
from .job import NEW_FILE
from .references import read_reference
from .strict import JsonObject, JsonValue

INPUTS = "inputs"  # in the attempt's folder
_NAME_MAX = 200  # bytes of a file's name, with room for what makes it the only one
_MODE = 0o444

Handing = Generator[None, None, JsonObject]


class InputGone(NodeError):
    """An artifact is not on the shelf, or not what its name says; the attempt did not begin."""

    code = "input_damaged"
    hint = "nothing: it is brought again where another node or the hub has it"

    def __init__(self, sha256: str, message: str) -> None:
        super().__init__(message)
        self.sha256 = sha256


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
    given: JsonObject = {}
    names: set[str] = set()
    os.mkdir(folder.file(INPUTS), 0o755)
    for ref, value in context.items():
        sha256 = sha256_of(ref, value)
        if sha256 is None or not isinstance(value, dict):
            given[ref] = value
            continue
        name = file_name(str(value.get("name")), sha256, names)
        yield from _copy(shelf, sha256, f"{folder.file(INPUTS)}/{name}")
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


def _copy(shelf: Shelf, sha256: str, path: str) -> Generator[None, None, None]:
    source = shelf.open(sha256)
    if source is None:
        raise InputGone(sha256, f"artifact {sha256} is not here any more")
    target, found = -1, hashlib.sha256()
    try:
        target = os.open(path, NEW_FILE, _MODE)
        os.fchmod(target, _MODE)
        while data := os.read(source, PIECE):
            write_all(target, data)
            found.update(data)
            yield
    finally:
        os.close(source)
        if target >= 0:
            os.close(target)
    if found.hexdigest() != sha256:
        shelf.throw_away(sha256)
        raise InputGone(sha256, f"artifact {sha256} was damaged on the disk")
