"""Puts a task back whose program asked to wait for what it made, with its folder kept for it."""

from __future__ import annotations

from dataclasses import replace

from ..commands import Finish
from ..graph_words import WaitAsked
from ..task import State
from .completing import spent
from .ending import Ending, New
from .ends import settle
from .spending import is_used_up
from .transaction import Transaction

USED_UP = "it would wait for what it made, and has cost all that it may"
_ASKED = "SELECT 1 FROM edge WHERE uid = ? AND n = ?"
_NOT_GIVEN = (
    "DELETE FROM input WHERE uid = :uid AND here = 0 AND kind = 'outcome' AND source IN"
    " (SELECT needs FROM edge WHERE uid = :uid AND n = :n)"
)
_DROP = "UPDATE edge SET n = NULL, came = coalesce(came, 'skipped') WHERE uid = :uid AND n = :n"


def wait_asked(tx: Transaction, query: WaitAsked) -> bool:
    """Whether it did."""
    return tx.db.execute(_ASKED, (query.uid, query.n)).fetchone() is not None


def as_asked(tx: Transaction, command: Finish) -> Finish:
    """An attempt that ended well and had asked to wait has not completed its task.

    One that ended in another way waits for nothing: its task is tried again, or it is over. Nor
    does one that has cost all that it may: there is nothing left for it to go on with.
    """
    asked = tx.db.execute(_ASKED, (command.uid, command.n)).fetchone() is not None
    if command.result.kind == "completed" and asked:
        (spec,) = tx.db.execute("SELECT spec FROM task WHERE uid = ?", (command.uid,)).fetchone()
        if not is_used_up(tx, spec, command=command):
            return replace(command, result=replace(command.result, kind="waiting"))
        end = replace(command.result, kind="failed", error_kind="budget_exceeded",
                      message=USED_UP, output=None, artifacts=[])  # fmt: skip
        command = replace(command, result=end)
    if command.result.kind != "completed":
        for statement in (_NOT_GIVEN, _DROP):
            tx.db.execute(statement, {"uid": command.uid, "n": command.n})
    return command


def put_back(ending: Ending) -> New:
    """The task waits again, at no cost; its next attempt goes on where this one worked."""
    tx, uid, n = ending.tx, ending.command.uid, ending.command.n
    ending.change(
        State.READY, "task_waiting", "waits for tasks that it made", spent(ending.result),
        agent=None, ready_at=tx.stamp, pinned=1,
    )  # fmt: skip
    tx.db.execute("INSERT OR IGNORE INTO workspace (uid, n) VALUES (?, ?)", (uid, n))
    return New(State.READY)


def let_wait(tx: Transaction, uid: str) -> None:
    """READY only for this moment, unless all that it waits for has ended already."""
    settle(tx, [uid], State.READY)
