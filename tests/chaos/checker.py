"""Judges a fleet from outside, by what its programs wrote and what sqlite-utils reads of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.node.daemon.living import rows_of

Row = Mapping[str, object]
Rows = Callable[[Path, str], Sequence[Row]]


class Line(NamedTuple):
    """One line of the ledger, as program.py wrote it."""

    word: str
    uid: str
    n: int
    home: str
    pid: int
    start_ticks: int
    boottime: float


@dataclass(frozen=True)
class Findings:
    """What must not be; each is empty, or names the tasks."""

    overlapped: tuple[str, ...]
    """Started while an earlier start of the same task, or anything it had started, still lived."""
    two_places: tuple[str, ...]
    """One attempt started twice, or started again although nothing proves the earlier one dead."""
    lost: tuple[str, ...]
    """Its addition was acknowledged, and it did not end as COMPLETED in exactly one home."""
    accepted_twice: tuple[str, ...]
    """More than one result of it was accepted."""
    invented: tuple[str, ...]
    """It is COMPLETED, and its program never came to its end."""

    @property
    def clean(self) -> bool:
        return not any(vars(self).values())


def read_ledger(path: Path) -> list[Line]:
    """Every line, in the order in which they were written."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="ascii").splitlines():
        word, uid, n, home, pid, ticks, boottime = text.split()
        lines.append(Line(word, uid, int(n), home, int(pid), int(ticks), float(boottime)))
    return lines


def judge(
    ledger: list[Line], databases: Mapping[str, Path], acked: Iterable[str], *, rows: Rows = rows_of
) -> Findings:
    """`databases` by the name of the home; `acked`: the uids whose addition was answered."""
    tasks = [row for path in databases.values() for row in rows(path, "task")]
    attempts = [row for path in databases.values() for row in _attempts_of(path, rows)]
    return judge_rows(ledger, tasks, attempts, acked)


def _attempts_of(path: Path, rows_of: Rows) -> list[Row]:
    """Those on file, and each one that an event says has completed its task: such a one lies in
    the task's row, where a second one would lie upon it.
    """
    filed: list[Row] = [*rows_of(path, "attempt")]
    known = {(row["uid"], row["n"]) for row in filed}
    told: list[Row] = [
        {"uid": row["uid"], "n": row["n"], "outcome": "completed"}
        for row in rows_of(path, "event")
        if row["event"] == "task_completed" and row["n"] is not None
    ]
    return filed + [row for row in told if (row["uid"], row["n"]) not in known]


def judge_rows(
    ledger: Sequence[Line], tasks: Sequence[Row], attempts: Sequence[Row], acked: Iterable[str]
) -> Findings:
    """The same of rows that have been read, those of all homes in one list."""
    completed = Counter(str(row["uid"]) for row in tasks if row["state"] == "COMPLETED")
    accepted = Counter(str(row["uid"]) for row in attempts if row["outcome"] == "completed")
    closed = {(row["uid"], row["n"]) for row in attempts if row["outcome"] is not None}
    starts = Counter((line.uid, line.n) for line in ledger if line.word == "start")
    ended = {line.uid for line in ledger if line.word == "end"}
    return Findings(
        overlapped=tuple(f"{one.uid}/{one.n}" for one in ledger if one.word == "overlap"),
        two_places=tuple(
            f"{uid}/{n}" for (uid, n), count in starts.items()
            if count > 1 or (uid, n) not in closed
        ),
        lost=tuple(uid for uid in acked if completed[uid] != 1),
        accepted_twice=tuple(uid for uid in accepted if max(accepted[uid], completed[uid]) > 1),
        invented=tuple(uid for uid in completed if uid not in ended),
    )  # fmt: skip
