"""Moves tasks as the seed did, create then close, so that the checker can show what it catches.

Two plain queues, a worker for each, and a mover that is killed between its two steps. The tables
are named as a node's, because the same checker reads them in the same way.
"""

from __future__ import annotations

import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("program.py")
PATIENCE_S = 60.0  # with a process of ours that should answer at once
_TABLES = """
CREATE TABLE task (uid TEXT PRIMARY KEY, state TEXT);
CREATE TABLE attempt (uid TEXT, n INTEGER, outcome TEXT);
CREATE TABLE event (uid TEXT, n INTEGER, event TEXT);
"""


def make_queue(home: Path, uids: list[str]) -> None:
    """A queue with these tasks, waiting."""
    home.mkdir()
    with sqlite3.connect(home / "queue.db") as queue:
        queue.executescript(_TABLES)
        queue.executemany("INSERT INTO task VALUES (?, 'READY')", [(uid,) for uid in uids])
    queue.close()


def move_all(giver: Path, taker: Path, *, die_at: str = "", nth: int = 0) -> None:
    """Create each task over there, then close it here; die by -9 where it is told to.

    It says when it begins and how long it took: who kills it from outside knows when to.
    """
    here, there = _open(giver), _open(taker)
    print("begun", flush=True)
    began = time.perf_counter()
    waiting = here.execute("SELECT uid FROM task WHERE state = 'READY'").fetchall()
    for place, (uid,) in enumerate(waiting):
        with there:
            there.execute("INSERT OR IGNORE INTO task VALUES (?, 'READY')", (uid,))
        if (die_at, nth) == ("between", place):
            os.kill(os.getpid(), signal.SIGKILL)
        with here:
            here.execute("UPDATE task SET state = 'MOVED' WHERE uid = ?", (uid,))
    print(time.perf_counter() - began, flush=True)


def work_off(home: Path, ledger: Path) -> None:
    """Run what waits, one by one, the way any single node would rightly do it."""
    with closing(_open(home)) as queue:
        _work_off(queue, home, ledger)


def _work_off(queue: sqlite3.Connection, home: Path, ledger: Path) -> None:
    for (uid,) in queue.execute("SELECT uid FROM task WHERE state = 'READY'").fetchall():
        env = {"AGENT_TASK_UID": uid, "AGENT_TASK_ATTEMPT": "1", "AGENT_NODE_HOME": str(home)}
        words = [sys.executable, "-I", "-S", str(PROGRAM), str(ledger), "alone"]
        subprocess.run(words, env=env, check=True, timeout=PATIENCE_S)
        with queue:
            queue.execute("UPDATE task SET state = 'COMPLETED' WHERE uid = ?", (uid,))
            queue.execute("INSERT INTO attempt VALUES (?, 1, 'completed')", (uid,))


def _open(home: Path) -> sqlite3.Connection:
    queue = sqlite3.connect(home / "queue.db")
    queue.execute("PRAGMA synchronous = FULL")
    return queue


class Careless:
    """Two such queues under the same kills as the real ones."""

    def __init__(self, place: Path, uids: list[str]) -> None:
        self.place = place
        self.homes = {"iris": place / "iris", "loom": place / "loom"}
        make_queue(self.homes["iris"], uids)
        make_queue(self.homes["loom"], [])

    def move(self, *, die_at: str = "", nth: int = 0) -> int:
        """Move everything in a process of its own; its exit code, -9 when it died on the way."""
        words = [str(self.homes["iris"]), str(self.homes["loom"]), die_at, str(nth)]
        return subprocess.run(
            [sys.executable, "-m", "tests.chaos.careless", *words], cwd=ROOT, check=False,
            stdout=subprocess.DEVNULL,
        ).returncode  # fmt: skip

    def move_until_killed(self, dice: Random, takes_s: float) -> int:
        """The same with a -9 from outside, at any moment of the time that it usually takes."""
        with self._mover() as mover:
            _line_of(mover)
            try:
                return mover.wait(timeout=dice.random() * takes_s)
            except subprocess.TimeoutExpired:
                mover.kill()
                return mover.wait()

    def moved_in_s(self) -> float:
        """How long it takes where nobody kills it."""
        with self._mover() as mover:
            _line_of(mover)
            return float(_line_of(mover))

    def _mover(self) -> subprocess.Popen[str]:
        words = [str(self.homes["iris"]), str(self.homes["loom"]), "", "0"]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.careless", *words], cwd=ROOT,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def work(self) -> None:
        """Both nodes work off what they believe to be theirs."""
        for home in self.homes.values():
            work_off(home, self.place)

    @property
    def databases(self) -> dict[str, Path]:
        return {name: home / "queue.db" for name, home in self.homes.items()}


def _line_of(mover: subprocess.Popen[str]) -> str:
    assert mover.stdout is not None
    assert select.select([mover.stdout], [], [], PATIENCE_S)[0], "the mover says nothing"
    return mover.stdout.readline()


if __name__ == "__main__":
    move_all(Path(sys.argv[1]), Path(sys.argv[2]), die_at=sys.argv[3], nth=int(sys.argv[4]))
