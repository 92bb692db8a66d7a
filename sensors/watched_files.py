"""Looks at watched files for one round, and says which of them ask for work now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from arc.adding import Wanted
from arc.apart import apart
from arc.decisions.files import Known, Sorted, asks_for_work, sort_files
from arc.journal_work import FILES, FileSeen
from arc.polling import contents_of, stamps_of
from arc.settings import FilesEntry

if TYPE_CHECKING:
    from arc.hub import Hub

LOOK_S = 20.0  # a file system that does not answer holds up one round for so long
ADDED_MAX = 100  # tasks of one pattern and round; the other files are read in the next one
REF_MAX = 500


@dataclass(frozen=True)
class Asked:
    """Work that a file asks for, and how the file is remembered once it was added."""

    wanted: Wanted
    seen: FileSeen


async def files_now(
    hub: Hub, entry: FilesEntry, now: datetime, problems: list[str]
) -> list[Asked]:
    """The work that new and changed files ask for; what cannot be looked at is a problem.

    What is there when the entry is new counts as known. Whoever has added the work writes `seen`
    down; until then the file asks again, under the same key.
    """
    if entry.name in hub.polling:
        problems.append(f"{entry.name}: an earlier look at {entry.path} has not ended yet")
        return []
    try:
        found = await asyncio.wait_for(_polled(hub, entry), LOOK_S)
    except TimeoutError:
        problems.append(f"{entry.name}: {entry.path} could not be looked at within {LOOK_S:.0f} s")
        return []
    problems += [f"{entry.name}: {one}" for one in found.problems]
    return _judged(hub, entry, found, now)


@dataclass(frozen=True)
class Polled:
    """One look: size and time of every file, and the content of those that had to be read."""

    known: dict[str, FileSeen] | None  # None: it was the first look
    stamps: dict[str, str]
    hashes: dict[str, str]
    problems: tuple[str, ...]


async def _polled(hub: Hub, entry: FilesEntry) -> Polled:
    """In a thread of its own: a file system may hang, and must hold nothing else up."""
    last = hub.journal.work.last(FILES, entry.name)
    first = last is None or last.spec != entry.path
    known = hub.journal.work.files(entry.name)
    hub.polling.add(entry.name)

    def look() -> Polled:
        try:
            found = stamps_of(entry.path)
            wanted = [*found.stamps] if first else [*_sorted(known, found.stamps).ripe[:ADDED_MAX]]
            hashes, bad = contents_of(found.stamps, wanted)
            return Polled(None if first else known, found.stamps, hashes, (*found.problems, *bad))
        finally:
            hub.polling.discard(entry.name)

    return await apart(look, name="watched files", may_raise=(OSError, ValueError))


def _sorted(known: dict[str, FileSeen], stamps: dict[str, str]) -> Sorted:
    return sort_files({path: _as_known(one) for path, one in known.items()}, stamps)


def _as_known(one: FileSeen) -> Known:
    return Known(one.stamp, one.sha256, one.settled)


def _judged(hub: Hub, entry: FilesEntry, found: Polled, now: datetime) -> list[Asked]:
    """Write down what was seen, and say which files ask for work; of a first look none does."""
    work, stamps = hub.journal.work, found.stamps
    if found.known is None:
        there = [FileSeen(path, stamp, found.hashes.get(path, ""), settled=True)
                 for path, stamp in stamps.items()]  # fmt: skip
        work.saw(entry.name, there, work.files(entry.name).keys() - stamps.keys())
        work.begin(FILES, entry.name, entry.path, now)
        return []
    known, change = found.known, _sorted(found.known, stamps)
    fresh = [FileSeen(path, stamps[path], known[path].sha256 if path in known else "",
                      settled=False) for path in change.fresh]  # fmt: skip
    settled = [FileSeen(path, stamps[path], one, settled=True)
               for path, one in found.hashes.items()]  # fmt: skip
    same = [one for one in settled if not asks_for_work(_as_known(known[one.path]), one.sha256)]
    work.saw(entry.name, [*fresh, *same], change.gone)
    return [Asked(_wanted(entry, one, now), one)
            for one in settled if one not in same]  # fmt: skip


def _wanted(entry: FilesEntry, seen: FileSeen, now: datetime) -> Wanted:
    """Its time is part of the occasion: a file may come to what it held before, or come back."""
    occasion = f"{seen.path}\0{seen.stamp}\0{seen.sha256}"
    key = sha256(occasion.encode("utf-8", "surrogateescape")).hexdigest()
    ref = seen.path.encode("utf-8", "replace").decode()[-REF_MAX:]
    return Wanted(f"file:{entry.name}:{key}", f"file:{entry.name}", now, ref, entry.task)
