"""The giver's other steps: commit, abort, settled, and leases that end by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..commands import Because
from ..failpoints import failpoint
from ..moves import Abort, Commit, Settle, Settled, Transferred
from ..task import State
from .batches import Step, all_known, all_or_none, end_all
from .care import let_go_of_care
from .comings import arrived, left
from .keeping import keep_all_moved, keep_moved
from .move_tables import OF_A_MOVE
from .senders import check_not_quarantined, check_sender, check_term
from .spending import await_end, give_money_back
from .transaction import Transaction, may_change
from .transfers import (
    IN_ESCROW,
    Record,
    find_record,
    forgotten,
    look_up,
    mismatch,
    refuse,
    set_outcome,
    told,
    unknown_outcome,
    write_record,
)

_GIVE_BACK = f"""
UPDATE task SET state = 'READY', epoch = epoch + 1, xfer = NULL
 WHERE uid = :uid AND xfer = :xfer AND {may_change(State.READY, State.ESCROW)}
RETURNING epoch
"""
_LET_GO = f"DELETE FROM task WHERE uid = ? AND xfer = ? AND {may_change(State.MOVED)}"
FEW = 4
_MOVED = Step("giver", "committed", "task_moved", "ESCROW", "MOVED")


def commit(tx: Transaction, command: Commit) -> tuple[Transferred, ...]:
    """ESCROW(x) becomes MOVED(x): the point from which the task is the taker's."""
    return _settle_all(tx, command, _commit_one, at_once=_commit_all)


def abort(tx: Transaction, command: Abort) -> tuple[Transferred, ...]:
    """ESCROW(x) becomes READY again; an abort that comes first is written down all the same."""
    return _settle_all(tx, command, _abort_one)


def settled(tx: Transaction, command: Settled) -> tuple[Transferred, ...]:
    """Both ends are done: from now on the record may age out."""
    return _settle_all(tx, command, _settled_one)


_Settling = TypeVar("_Settling", Commit, Abort, Settled)


def _settle_all(
    tx: Transaction,
    command: _Settling,
    one: Callable[[Transaction, _Settling, Settle], Transferred],
    at_once: Callable[[Transaction, _Settling, list[str]], tuple[Transferred, ...] | None]
    | None = None,
) -> tuple[Transferred, ...]:
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    tx.generation_due = True
    xfers = look_up(tx, [move.xfer for move in command.moves])
    answers = at_once(tx, command, xfers) if at_once is not None else None
    return answers or tuple(one(tx, command, move) for move in command.moves)


def _commit_all(
    tx: Transaction, command: Commit, xfers: list[str]
) -> tuple[Transferred, ...] | None:
    """The usual batch, at once; None: something stands out, and nothing was done."""
    records = all_known(tx, command.moves, side="giver", outcome="escrowed")
    if records is None or tx.live.budgeted:
        return None
    check_term(tx, command.sender.term)
    for _ in records:  # as often as one by one: a test may strike at the nth
        failpoint("commit.before_move")
    if not all_or_none(tx, lambda: _move_all(tx, records)):
        return None
    tx.leaves(State.ESCROW, len(records))
    let_go_of_care(tx, *(record.uid for record in records))
    for record in records:
        left(tx, record.uid)
    end_all(tx, _MOVED, records, by=command.sender.by)
    return tuple(Transferred(xfer, "committed") for xfer in xfers)


def _move_all(tx: Transaction, records: list[Record]) -> bool:
    """Whether each of them was in its escrow; of all that were a kept copy is left.

    A few at a time: their copies then lie in the pages which the rows before them left. All of
    them at once write two pages more.
    """
    for first in range(0, len(records), FEW):
        few = records[first : first + FEW]
        if keep_all_moved(tx, [record.xfer for record in few]) < len(few):
            return False
        tx.db.executemany(_LET_GO, [(record.uid, record.xfer) for record in few])
    return True


def _commit_one(tx: Transaction, command: Commit, move: Settle) -> Transferred:
    record = find_record(tx, move.xfer)
    if record is None:
        return unknown_outcome(tx, move.xfer)
    wrong = mismatch(record, move, "giver")
    if wrong is not None or record.outcome != "escrowed":
        return wrong or record.answer()
    check_term(tx, command.sender.term)
    failpoint("commit.before_move")
    if not keep_moved(tx, uid=record.uid, xfer=record.xfer, peer=record.peer,
                      peer_incarnation=record.peer_incarnation):  # fmt: skip
        return refuse(move.xfer, "not_escrow", f"{record.uid} is not in escrow for {move.xfer}")
    tx.db.execute(_LET_GO, (record.uid, record.xfer))
    let_go_of_care(tx, record.uid)
    tx.leaves(State.ESCROW)
    if tx.live.budgeted:
        await_end(tx, record.uid)
    left(tx, record.uid)
    set_outcome(tx, record.xfer, "committed")
    tx.event("task_moved", record.uid, n=OF_A_MOVE, was="ESCROW", state="MOVED",
             by=command.sender.by, because=record.why,
             data=told(record.xfer, "to", record.peer))  # fmt: skip
    return Transferred(record.xfer, "committed")


def _abort_one(tx: Transaction, command: Abort, move: Settle) -> Transferred:
    record = find_record(tx, move.xfer)
    if record is None:
        if forgotten(tx, move.xfer):
            return unknown_outcome(tx, move.xfer)
        check_term(tx, command.sender.term)
        check_not_quarantined(tx)
        because = Because("aborted_first", "the abort came before the escrow")
        write_record(
            tx,
            Record(move.xfer, move.uid, 0, "giver", move.peer, move.peer_incarnation, "moved",
                   "aborted", because.rule, because.text, None),
        )  # fmt: skip
        return Transferred(move.xfer, "aborted", because)
    wrong = mismatch(record, move, "giver")
    if wrong is not None or record.outcome != "escrowed":
        return wrong or record.answer()
    check_term(tx, command.sender.term)
    give_back(tx, record.xfer, record.uid, Because("aborted", "the hub called it off"),
              by=command.sender.by)  # fmt: skip
    return Transferred(record.xfer, "aborted", Because("aborted", "the hub called it off"))


def give_back(tx: Transaction, xfer: str, uid: str, because: Because, *, by: str) -> None:
    """ESCROW(x) is READY again, at the next epoch, and x is recorded as aborted.

    It has waited since it was READY first: who is offered in vain again and again waits for long.
    """
    row = tx.db.execute(_GIVE_BACK, {"uid": uid, "xfer": xfer}).fetchone()
    assert row is not None, f"{uid} was not in escrow for {xfer}"
    tx.moves(State.ESCROW, State.READY)
    give_money_back(tx, xfer)
    set_outcome(tx, xfer, "aborted", because)
    tx.event("task_given_back", uid, n=OF_A_MOVE, was="ESCROW", state="READY", by=by,
             because=because.text, data={"xfer": xfer})  # fmt: skip
    arrived(tx, uid)


def _settled_one(tx: Transaction, command: Settled, move: Settle) -> Transferred:
    record = find_record(tx, move.xfer)
    if record is None:
        return unknown_outcome(tx, move.xfer)
    wrong = mismatch(record, move, "giver")
    if wrong is not None:
        return wrong
    if record.outcome == "escrowed":
        return refuse(move.xfer, "not_over", f"{move.xfer} is neither committed nor aborted")
    check_term(tx, command.sender.term)
    if record.settled_at is None:
        check_not_quarantined(tx)
        tx.db.execute(
            "UPDATE transfer SET settled_at = ? WHERE xfer = ?", (tx.stamp, record.xfer)
        )
        tx.changed = True
    if move.ended is not None:
        _note_end(tx, record, move.ended)
    return Transferred(record.xfer, "settled")


def _note_end(tx: Transaction, record: Record, ended: str) -> None:
    done = tx.db.execute(
        "UPDATE tombstone SET ended = ?, settled_at = ?"
        " WHERE uid = ? AND xfer = ? AND ended IS NULL",
        (ended, tx.stamp, record.uid, record.xfer),
    )
    if done.rowcount:
        check_not_quarantined(tx)  # which takes it back: nothing changes there
        tx.event("task_ended_elsewhere", record.uid, state=ended, by=record.peer,
                 because=f"{record.peer}, which has it now, ended it so")  # fmt: skip


def end_leases(tx: Transaction) -> int:
    """Give back every escrow whose lease ended: by boot seconds, or because of a reboot."""
    rows = tx.db.execute(
        f"SELECT x.xfer, x.uid FROM {IN_ESCROW}"
        " AND (lease_boot <> ? OR lease_until <= ?)",
        (tx.clock.boot_id(), tx.clock.boottime()),
    ).fetchall()
    for xfer, uid in rows:
        because = Because("lease_ended", "no commit came before the lease ended")
        give_back(tx, xfer, uid, because, by="lease")
        tx.generation_due = True
    return len(rows)
