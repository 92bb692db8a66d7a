"""Says which watched files have changed and are no longer being written; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """What was remembered of a file: size and time, the content that counted last, and whether
    anything about it is still to be found out.
    """

    stamp: str
    sha256: str
    settled: bool


@dataclass(frozen=True)
class Sorted:
    """What a look at the stamps of all files comes to."""

    fresh: tuple[str, ...]  # new or changed: somebody may still write; look again
    ripe: tuple[str, ...]  # unchanged since the last look: their content is read now
    gone: tuple[str, ...]


def sort_files(known: Mapping[str, Known], stamps: Mapping[str, str]) -> Sorted:
    """A file is read when two looks in a row found it alike: half-written ones ask for nothing."""
    fresh = [path for path, stamp in stamps.items()
             if path not in known or known[path].stamp != stamp]  # fmt: skip
    ripe = [path for path, stamp in stamps.items()
            if path in known and known[path].stamp == stamp and not known[path].settled]
    gone = known.keys() - stamps.keys()
    return Sorted(tuple(sorted(fresh)), tuple(sorted(ripe)), tuple(sorted(gone)))


def asks_for_work(before: Known, sha256: str) -> bool:
    """Whether the content is another one than that which counted last."""
    return before.sha256 != sha256
