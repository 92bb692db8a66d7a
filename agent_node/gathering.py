"""Takes the files that a program named in its answer, piece by piece, and trusts none of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple

from .artifacts import PIECE, SIZE_MAX, Kept, Shelf
from .named_files import NamedFile, NotTaken, why_not
from .strict import JsonObject, JsonValue, kind_of

COUNT_MAX = 64  # artifacts of one attempt
TOTAL_MAX = 256 * 1024 * 1024  # bytes of all of them
NAME_MAX = 200  # characters, as in a reference to it
_READER = "the node's own user"

# What is yielded is said to whoever has the files, and what comes back is the answer; the node
# itself asks nobody, and only lets the loop go on.
Gathering = Generator[bytes, bytes, list[JsonValue]]
Taking = Generator[bytes, bytes, Kept]
Take = Callable[[str, int], Taking]  # its path below the working folder, the room that is left


class Wish(NamedTuple):
    """A file below the working folder, and what others will call it."""

    name: str
    path: str


def gather(said: Sequence[JsonValue], place: str, shelf: Shelf) -> Gathering:
    """What is recorded of each entry: {name, sha256, size}, or {name, because}; a piece a step.

    `place` is the working folder, into which the node's own user can look.
    """
    return gather_by(partial(_take, place, shelf), said)


def gather_by(take: Take, said: Sequence[JsonValue]) -> Gathering:
    """The same, where `take` brings one file after the other to the shelf."""
    found: list[JsonValue] = []
    names: set[str] = set()
    room = TOTAL_MAX
    for number, entry in enumerate(said[:COUNT_MAX], start=1):
        try:
            wish = wish_of(entry, names)
            kept = yield from take(wish.path, room)
        except (NotTaken, OSError) as error:
            found.append({"name": _called(entry, number), "because": why_not(error, _READER)})
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


def check_size(size: int, room: int) -> None:
    """`NotTaken` for a file that is too large, alone or with those before it."""
    if size > SIZE_MAX:
        raise NotTaken(f"{size} bytes; at most {SIZE_MAX} are taken")
    if size > room:
        raise NotTaken(f"with it the artifacts have more than {TOTAL_MAX} bytes together")


def _take(place: str, shelf: Shelf, path: str, room: int) -> Taking:
    with NamedFile(place, path) as file:
        check_size(file.size, room)
        with shelf.write() as writing:
            while data := file.read(PIECE):
                writing.add(data)
                yield b""
            return writing.keep()


def _called(entry: JsonValue, number: int) -> str:
    """The name under which a person finds the entry again."""
    said: JsonObject = entry if isinstance(entry, dict) else {"path": entry}
    name = said.get("name") or said.get("path")
    text = name if isinstance(name, str) else f"artifact {number}"
    return "".join(sign if unicodedata.category(sign) not in ("Cc", "Cs") else "?"
                   for sign in text[:NAME_MAX])  # fmt: skip
