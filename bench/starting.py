"""Measures how soon `agent-node version` has answered, from the zipapp."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from statistics import median

from .machine import load
from .measuring import Place, Row, in_turns, milliseconds, ratio

AGAINST = "python3 -I -S -c pass, the same interpreter"


def run_once(argv: list[str]) -> None:
    """From the start of the process to its end; its output goes nowhere."""
    null = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=(null,))
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"{argv}: ended with {status}")


def version_rows(place: Place) -> Iterator[Row]:
    """One row, after a few starts that only warm the page cache."""
    bare = [place.python, "-I", "-S", "-c", "pass"]
    ours = [place.python, "-I", "-S", str(place.zipapp), "version"]
    whole = [place.python, "-I", "-S", str(place.zipapp), "--help"]
    for argv in (bare, ours, whole) * 3:
        run_once(argv)
    mine, floor, helped = in_turns(
        place.rounds(60),
        *[milliseconds(partial(run_once, argv)) for argv in (ours, bare, whole)],
    )
    middle, spread = ratio(mine, floor)
    yield Row(
        "version", "zipapp: agent-node version, from start to end of the process",
        median(mine), median(floor), "ms", middle, 3.0, against=AGAINST, spread=spread,
        load=load(), more={"agent-node --help, ms": median(helped)},
    )  # fmt: skip
