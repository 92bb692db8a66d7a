"""Reads what strace wrote: which calls went to which file, and which of them are worth a blow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

WRITES = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate")
NAMES = ("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat",
         "mkdir", "mkdirat")  # fmt: skip
CALLS = (*WRITES, *NAMES)
_STRACE = ("strace", "-f", "-qq", "-y", "-e", "signal=SIGKILL")

_LINE = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)( resumed>|\()(.*)")
_FILE = re.compile(r"\w+<([^>]*)>")
_AT = re.compile(r'\w+<([^>]*)>, "([^"]*)"|"([^"]*)"')
# `.name.PID` and `.name.RANDOM`: the file next to the one that it is going to replace.
_PASSING = re.compile(r"/\.([^/]+)\.(?:\d+|[0-9a-f]{8,})$")
_SQLITE = re.compile(r"\.db(?:-wal|-shm|-journal)?$")


def strace(trace: Path, *words: str, alone: bool = False, signals: bool = False) -> list[str]:
    """To stand before a command: it and what it starts, or it `alone`, is written to `trace`.

    With a filter in the kernel it stops at our calls only, but then it sends no `signals`, and
    follows every child.
    """
    how = ("-b", "execve") if alone else () if signals else ("--seccomp-bpf",)
    return [*_STRACE, *how, "-o", str(trace), *words]


@dataclass(frozen=True)
class Call:
    """One call: of the so many-th process, on this file of the world, and where strace meets it."""

    process: int
    name: str
    file: str  # beneath the world, a name made by chance as `*`
    aim: str  # the path to give to strace; empty: it has a name that nobody knows before
    of_name: int  # the so many-th call of this name in its process
    of_aim: int  # the same among those on `aim`


@dataclass
class Counted:
    """What a scenario does to its own files, and what else it wrote to, by why it is left out."""

    calls: list[Call] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def count(lines: Iterable[str], place: str) -> Counted:
    """Every call of ours on a file beneath `place`."""
    counted = Counted()
    processes: dict[str, int] = {}
    of_name: Counter[tuple[str, str]] = Counter()
    of_aim: Counter[tuple[str, str, str]] = Counter()
    for pid, name, said in _begun(lines):
        process = processes.setdefault(pid, len(processes))
        of_name[pid, name] += 1
        file, aim = where(name, said, place)
        if aim:
            of_aim[pid, name, aim] += 1
        if file.startswith("?"):
            counted.left_out[file[1:]] += 1
            continue
        counted.calls.append(
            Call(process, name, file, aim, of_name[pid, name], of_aim[pid, name, aim])
        )
    return counted


def where(name: str, said: str, place: str) -> tuple[str, str]:
    """The file beneath the world, and the path to give to strace; `?why` for no such file."""
    if name in WRITES:
        match = _FILE.match(said)
        paths = [match[1] if match else "?"]
        aims = list(paths)
    else:
        found = [(at, given or alone) for at, given, alone in _AT.findall(said)]
        paths = [name if name[:1] == "/" else f"{at or place}/{name}" for at, name in found]
        aims = [at or path for (at, _), path in zip(found, paths, strict=True)]
    if not paths or not paths[-1].startswith(f"{place}/"):
        return _why_not(paths[-1] if paths else ""), ""
    file = _PASSING.sub(r"/.\1.*", paths[-1]).removeprefix(f"{place}/")
    return file, "" if _PASSING.search(aims[0]) else aims[0]  # strace looks at the first name only


def _why_not(path: str) -> str:
    for word in ("pipe", "socket", "anon_inode"):
        if path.startswith((word, word.upper())):
            return f"?{word}"
    return "?socket" if path.startswith(("UNIX", "TCP")) else "?a file elsewhere"


def _begun(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for line in lines:
        match = _LINE.match(line)
        if match and match[3] == "(" and match[2] in CALLS:
            yield match[1], match[2], match[4]


def struck(lines: Iterable[str], place: str) -> list[str]:
    """The files beneath the world that a blow met, or why it met none."""
    begun: dict[str, tuple[str, str]] = {}
    met = []
    for line in lines:
        match = _LINE.match(line)
        if match and match[3] == "(" and match[2] in CALLS:
            begun[match[1]] = match[2], match[4]
        pid = line.split(" ", 1)[0]
        if ("INJECTED" in line or "killed by SIGKILL" in line) and pid in begun:
            met.append(where(*begun.pop(pid), place)[0])
    return met


def worth_a_blow(calls: list[Call], dice: Random) -> list[Call]:
    """Those of one scenario that differ: the same call at the same place is struck once.

    SQLite's writes to one of its files between two other calls are struck at the first, at the
    last and at one by chance: until its next sync it relies on none of them and on no order of
    them, a disk may drop or turn them around as it likes, and a reader believes a log only up
    to its last whole commit. Everything else is struck one by one.
    """
    kept: list[Call] = []
    for run in _runs(calls):
        within = run[1:-1] if _SQLITE.search(run[0].file) and run[0].name == "pwrite64" else []
        kept += [one for one in run if one not in within]
        kept += [dice.choice(within)] if within else []
    return list({_place_of(one): one for one in kept}.values())


def _place_of(call: Call) -> tuple[str, str, str, int]:
    """Two processes that make one call on one file are struck in one blow: each has its count."""
    return call.name, call.file, call.aim, call.of_aim if call.aim else call.of_name


def _runs(calls: list[Call]) -> Iterator[list[Call]]:
    """What one process did to one file by one call, uninterrupted by another of its calls."""
    open_: dict[int, list[Call]] = {}
    for call in calls:
        run = open_.get(call.process)
        if run and (run[0].name, run[0].file) == (call.name, call.file):
            run.append(call)
            continue
        if run:
            yield run
        open_[call.process] = [call]
    yield from open_.values()
