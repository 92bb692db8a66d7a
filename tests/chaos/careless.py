"""Moves tasks as the seed did, create then close, so that the checker can show what it catches.

Two plain queues, a worker for each, and a mover that is killed between its two steps. The tables
are named as a node's, because the same checker reads them in the same way.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("program.py")
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
    """Create each task over there, then close it here; die by -9 where it is told to."""
    here, there = _open(giver), _open(taker)
    waiting = here.execute("SELECT uid FROM task WHERE state = 'READY'").fetchall()
    for place, (uid,) in enumerate(waiting):
        with there:
            there.execute("INSERT OR IGNORE INTO task VALUES (?, 'READY')", (uid,))
        if (die_at, nth) == ("between", place):
            os.kill(os.getpid(), signal.SIGKILL)
        with here:
            here.execute("UPDATE task SET state = 'MOVED' WHERE uid = ?", (uid,))


def work_off(home: Path, ledger: Path) -> None:
    """Run what waits, one by one, the way any single node would rightly do it."""
    queue = _open(home)
    for (uid,) in queue.execute("SELECT uid FROM task WHERE state = 'READY'").fetchall():
        env = {"AGENT_TASK_UID": uid, "AGENT_TASK_ATTEMPT": "1", "AGENT_NODE_HOME": str(home)}
        done = subprocess.run([sys.executable, "-I", "-S", PROGRAM, ledger], env=env, check=True)
        assert done.returncode == 0
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
            [sys.executable, "-m", "tests.chaos.careless", *words], cwd=ROOT, check=False
        ).returncode

    def move_until_killed(self, dice: Random) -> int:
        """The same with a -9 from outside, after a random few milliseconds."""
        words = [str(self.homes["iris"]), str(self.homes["loom"]), "", "0"]
        mover = subprocess.Popen([sys.executable, "-m", "tests.chaos.careless", *words], cwd=ROOT)
        try:
            return mover.wait(timeout=0.1 + dice.random() * 0.05)
        except subprocess.TimeoutExpired:
            mover.kill()
            return mover.wait()

    def work(self) -> None:
        """Both nodes work off what they believe to be theirs."""
        for home in self.homes.values():
            work_off(home, self.place)

    @property
    def databases(self) -> dict[str, Path]:
        return {name: home / "queue.db" for name, home in self.homes.items()}


if __name__ == "__main__":
    move_all(Path(sys.argv[1]), Path(sys.argv[2]), die_at=sys.argv[3], nth=int(sys.argv[4]))
