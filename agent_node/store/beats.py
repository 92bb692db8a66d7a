"""Notes that attempts are alive: in memory at once, on the disk at most once a minute."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..commands import Beat, Stalled
from ..strict import JsonObject
from ..takeover import TakenOver
from ..task import Task
from .transaction import Transaction

WRITE_EVERY_S = 60.0
WORD_EVERY_S = 5.0  # a word on how far it is, that has changed
_RUNS = """
SELECT agent, progress FROM task WHERE uid = ? AND attempt = ?
   AND state IN ('CLAIMED', 'RUNNING', 'VALIDATING')
"""


class Beaten(NamedTuple):
    """The last sign of life of an attempt. `own`: its program itself sent one before."""

    n: int
    agent: str | None
    at: str
    number: int
    own: bool
    progress: str | None
    written: str | None  # the word on its progress that is on the disk
    written_at: float  # in seconds since boot


def beat(tx: Transaction, command: Beat) -> bool:
    """The attempt is alive; False when it is no longer the task's own.

    What is not written here is told all the same while this process lives, and written later.
    """
    row = tx.db.execute(_RUNS, (command.uid, command.n)).fetchone()
    if row is None:
        return False
    agent, on_disk = row
    before = tx.live.beats.get(command.uid)
    if before is None or before.n != command.n:
        before = Beaten(
            command.n, agent, tx.stamp, number=0, own=False, progress=on_disk, written=on_disk,
            written_at=0.0,
        )  # fmt: skip
    now = before._replace(
        at=tx.stamp, number=before.number + 1, own=before.own or command.own,
        progress=before.progress if command.progress is None else command.progress,
    )  # fmt: skip
    if _is_due(tx, now):
        _write(tx, command.uid, now)
        now = now._replace(written=now.progress, written_at=tx.clock.boottime())
    if tx.live.dispatching:
        tx.live.beats[command.uid] = now
    return True


def _is_due(tx: Transaction, beaten: Beaten) -> bool:
    """The first one is; without a daemon each is, for nothing outlives the request otherwise."""
    if not beaten.written_at:
        return True
    since = tx.clock.boottime() - beaten.written_at
    return since >= (WRITE_EVERY_S if beaten.progress == beaten.written else WORD_EVERY_S)


def _write(tx: Transaction, uid: str, beaten: Beaten) -> None:
    tx.db.execute(
        "UPDATE task SET heartbeat_at = ?, progress = ? WHERE uid = ?",
        (beaten.at, beaten.progress, uid),
    )
    tx.db.execute(
        "UPDATE agent SET last_heartbeat = ? WHERE name = ?", (beaten.at, beaten.agent)
    )
    tx.changed = True


def stalled(tx: Transaction, command: Stalled) -> bool:
    """What everybody may hear of; False when the attempt is no longer the task's own."""
    row = tx.db.execute(_RUNS, (command.uid, command.n)).fetchone()
    if row is None:
        return False
    tx.event("task_stalled", command.uid, by=row[0], because=command.because)
    return True


def taken_over(tx: Transaction, command: TakenOver) -> int:
    """Told in the life of each task, whatever becomes of its attempt next."""
    told = 0
    for uid, n in command.attempts:
        row = tx.db.execute(_RUNS, (uid, n)).fetchone()
        if row is not None:
            because = f"a daemon that was started meanwhile follows attempt {n}"
            tx.event("task_adopted", uid, by=row[0], because=because)
            told += 1
    return told


def end_beats(tx: Transaction, uid: str, n: int) -> None:
    """The attempt ends: its last word goes with its result."""
    beaten = tx.live.beats.pop(uid, None)
    if beaten is not None and beaten.n == n and beaten.progress != beaten.written:
        _write(tx, uid, beaten)


def as_beaten(tx: Transaction, task: Task) -> Task:
    """The task with the sign of life that is not on the disk yet."""
    beaten = tx.live.beats.get(task.uid)
    if beaten is None or task.claim is None:
        return task
    claim: JsonObject = {**task.claim, "heartbeat_at": beaten.at}
    return replace(task, claim=claim, progress=beaten.progress)


def last_beat(tx: Transaction, agent: str, written: str | None) -> str | None:
    """When anything that this agent runs last gave a sign of life; None: it never did."""
    known = [beaten.at for beaten in tx.live.beats.values() if beaten.agent == agent]
    return max([*known, written] if written else known, default=None)
