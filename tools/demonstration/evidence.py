"""Checks the demo from what the programs themselves wrote, and from /proc; not from the node."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ENDED = ("COMPLETED", "DEAD_LETTERED", "CANCELLED")


@dataclass(frozen=True)
class LedgerNote:
    """One line of the ledger: what a program did in which attempt."""

    uid: str
    attempt: int
    what: str
    pid: int


def read_notes(notes: Path) -> list[LedgerNote]:
    """Everything that programs wrote, in the order they wrote it; none have run: nothing."""
    ledger = notes / "ledger"
    if not ledger.exists():
        return []
    lines = ledger.read_text(encoding="utf-8").splitlines()
    return [LedgerNote(**json.loads(line)) for line in lines]


def run_twice(notes: Iterable[LedgerNote]) -> set[str]:
    """Tasks that ran beside themselves, whose attempt began again, or that were done again."""
    counts = Counter((note.uid, note.attempt, note.what) for note in notes)
    done = Counter(uid for uid, _, what in counts.elements() if what == "done")
    again = {uid for (uid, _, what), number in counts.items()
             if what == "began_twice" or (what == "began" and number > 1)}
    return again | {uid for uid, number in done.items() if number > 1}


def lost(states: Mapping[str, str], notes: Iterable[LedgerNote]) -> set[str]:
    """Tasks that have not ended, or are called completed though no program was done with them."""
    done = {note.uid for note in notes if note.what == "done"}
    return {uid for uid, state in states.items()
            if state not in ENDED or (state == "COMPLETED" and uid not in done)}


def left_behind(home: Path, within_s: float = 2.0) -> set[int]:
    """Processes of this home that are there though all work has ended, after a moment to go."""
    until = time.monotonic() + within_s
    while (left := processes_of(home)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def processes_of(home: Path) -> set[int]:
    """Every process that was started under this home, found by its environment in /proc."""
    mark = b"AGENT_NODE_HOME=" + os.fsencode(home) + b"\0"
    return {int(entry.name) for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and entry.name != str(os.getpid()) and has(entry, mark)}


def has(process: Path, mark: bytes) -> bool:
    """Whether the process runs with this word in its environment; one that has ended does not."""
    try:
        return mark in (process / "environ").read_bytes() + b"\0"
    except OSError:
        return False


def end_all(home: Path) -> int:
    """Kill what still runs under this home, by pid; how many there were."""
    ended: set[int] = set()
    while found := processes_of(home) - ended:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        ended |= found
    return len(ended)
