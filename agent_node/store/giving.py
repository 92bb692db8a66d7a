"""The giver's side of a move: escrow, commit, abort, settled, and leases that end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from ..commands import Because
from ..errors import Refused
from ..failpoints import failpoint
from ..moves import Abort, Commit, Escrow, Move, Settle, Settled, Transferred
from ..spec import hash_of
from ..task import IMMUTABLE, State, Task, to_wire
from .rows import WHOLE, attempts_of, task_of
from .transaction import (
    Transaction,
    check_not_quarantined,
    check_sender,
    check_term,
    may_change,
)
from .transfers import (
    Record,
    find_record,
    forgotten,
    mismatch,
    refuse,
    set_outcome,
    unknown_outcome,
    write_record,
)

LEASE_MIN, LEASE_MAX = 10.0, 600.0
# A reply is one line of at most 8 MiB; the largest task (body, output, extra, history) fits in one.
REPLY_MAX = 8 * 1024 * 1024 - 64 * 1024
ROOM_FOR_ONE = 1024 * 1024

_SET_ASIDE = f"""
UPDATE task SET state = 'ESCROW', xfer = :xfer
 WHERE uid = :uid AND epoch = :epoch AND (pinned = 0 OR :even_if_pinned)
   AND EXISTS (SELECT 1 FROM node WHERE state <> 'quarantined') AND {may_change(State.ESCROW)}
RETURNING {WHOLE}, sha256
"""
_GIVE_BACK = f"""
UPDATE task SET state = 'READY', epoch = epoch + 1, xfer = NULL, ready_at = :now
 WHERE uid = :uid AND xfer = :xfer AND {may_change(State.READY, State.ESCROW)}
RETURNING epoch
"""
_LET_GO = f"""
DELETE FROM task WHERE uid = :uid AND xfer = :xfer AND {may_change(State.MOVED)}
RETURNING {WHOLE}, sha256, key
"""
_BURY = """
INSERT INTO tombstone (uid, epoch, xfer, peer, peer_incarnation, key, at, sha256, life, spec)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (uid) DO UPDATE SET epoch = excluded.epoch, xfer = excluded.xfer, peer = excluded.peer,
  peer_incarnation = excluded.peer_incarnation, key = excluded.key, ended = NULL, at = excluded.at,
  settled_at = NULL, sha256 = excluded.sha256, life = excluded.life, spec = excluded.spec
"""


def escrow(tx: Transaction, command: Escrow) -> tuple[Transferred, ...]:
    """Set tasks aside for a taker; each known transfer answers what was recorded."""
    if not LEASE_MIN <= command.lease_s <= LEASE_MAX:
        text = f"lease_s is {command.lease_s:g}; it goes from {LEASE_MIN:g} to {LEASE_MAX:g}"
        raise Refused("bad_request", text)
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    tx.generation_due = True
    room = REPLY_MAX
    answers: list[Transferred] = []
    for move in command.moves:
        answer = _escrow_one(tx, command, move, room=room)
        room -= 0 if answer.task is None else size_on_wire(answer.task)
        answers.append(answer)
    return tuple(answers)


def size_on_wire(task: Task) -> int:
    """About how many bytes a task takes in a reply; never less."""
    text = json.dumps(to_wire(task), ensure_ascii=False)
    return (len(text) if text.isascii() else len(text.encode())) + 256


def _escrow_one(tx: Transaction, command: Escrow, move: Move, *, room: int) -> Transferred:
    if room < ROOM_FOR_ONE:
        return refuse(move.xfer, "batch_full", "the reply is full; ask for this one again")
    record = find_record(tx, move.xfer)
    if record is not None:
        return _escrowed_before(tx, record, command, move)
    check_term(tx, command.sender.term)
    if forgotten(tx, move.xfer):
        return unknown_outcome(tx, move.xfer)
    values = {"xfer": move.xfer, "uid": move.uid, "epoch": move.epoch,
              "even_if_pinned": command.even_if_pinned}  # fmt: skip
    row = tx.db.execute(_SET_ASIDE, values).fetchone()
    if row is None:
        return _escrow_refused(tx, command, move)
    tx.moves(State.READY, State.ESCROW)
    if hash_of(row[-2]) != row[-1]:
        return _park_damaged(tx, command, move)
    lease = (tx.clock.boot_id(), tx.clock.boottime() + command.lease_s)
    write_record(tx, _record(command, move, "escrowed"), lease=lease)
    tx.event("task_escrowed", move.uid, was="READY", state="ESCROW", by=command.sender.by,
             because=command.why, data={"xfer": move.xfer, "to": command.to})  # fmt: skip
    return _offer(tx, move.xfer, move.uid, row)


def _record(command: Escrow, move: Move, outcome: str, because: Because | None = None) -> Record:
    rule, text = (because.rule, because.text) if because else (None, None)
    return Record(move.xfer, move.uid, move.epoch, "giver", command.to, move.peer_incarnation,
                  command.why, outcome, rule, text, None)  # fmt: skip


def _offer(tx: Transaction, xfer: str, uid: str, row: tuple[object, ...]) -> Transferred:
    task = task_of(row[:-1], attempts_of(tx.db, uid))
    return Transferred(xfer, "escrowed", task=task, sha256=str(row[-1]))


def _escrowed_before(tx: Transaction, record: Record, command: Escrow, move: Move) -> Transferred:
    asked = Settle(move.xfer, move.uid, command.to, move.peer_incarnation)
    wrong = mismatch(record, asked, "giver")
    if wrong is not None or record.outcome != "escrowed":
        return wrong or record.answer()
    query = f"SELECT {WHOLE}, sha256 FROM task WHERE uid = ? AND xfer = ?"
    return _offer(tx, move.xfer, move.uid, tx.db.execute(query, (move.uid, move.xfer)).fetchone())


def _escrow_refused(tx: Transaction, command: Escrow, move: Move) -> Transferred:
    because = _why_not(tx, command, move)
    if because.rule != "quarantined":
        write_record(tx, _record(command, move, "refused", because))
    return Transferred(move.xfer, "refused", because)


def _why_not(tx: Transaction, command: Escrow, move: Move) -> Because:
    if tx.node.state == "quarantined":
        return Because("quarantined", f"{tx.node.name} is quarantined: {tx.node.reason}")
    row = tx.db.execute(
        "SELECT state, epoch, pinned FROM task WHERE uid = ?", (move.uid,)
    ).fetchone()
    if row is None:
        return gone(tx, move.uid)
    state, epoch, pinned = row
    if epoch != move.epoch:
        return Because("epoch_changed", f"{move.uid} is at epoch {epoch}, not {move.epoch}")
    if state != State.READY:
        return Because("not_ready", f"{move.uid} is {state}")
    assert pinned, "a READY task at this epoch is refused only when it is pinned"
    return Because("pinned", f"{move.uid} is pinned to {tx.node.name}; move it by hand with --yes")


def gone(tx: Transaction, uid: str) -> Because:
    """Why there is no row of this uid: it moved on, or never was here."""
    row = tx.db.execute("SELECT peer FROM tombstone WHERE uid = ?", (uid,)).fetchone()
    if row is None:
        return Because("unknown_task", f"{tx.node.name} has no task {uid}")
    return Because("moved_to", f"{uid} moved to {row[0] or 'another node, by a person'}")


def _park_damaged(tx: Transaction, command: Escrow, move: Move) -> Transferred:
    because = Because("hash_mismatch", f"{move.uid}: its stored text is not what was added")
    tx.db.execute(
        f"UPDATE task SET state = 'PARKED', xfer = NULL, failure_reason = ? WHERE uid = ?"
        f" AND {may_change(State.PARKED, State.ESCROW)}",
        (f"{because.rule}: {because.text}", move.uid),
    )
    tx.moves(State.ESCROW, State.PARKED)
    tx.event("task_parked", move.uid, was="READY", state="PARKED", because=because.rule)
    write_record(tx, _record(command, move, "refused", because))
    return Transferred(move.xfer, "refused", because)


def commit(tx: Transaction, command: Commit) -> tuple[Transferred, ...]:
    """ESCROW(x) becomes MOVED(x): the point from which the task is the taker's."""
    return _settle_all(tx, command, _commit_one)


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
) -> tuple[Transferred, ...]:
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    tx.generation_due = True
    return tuple(one(tx, command, move) for move in command.moves)


def _commit_one(tx: Transaction, command: Commit, move: Settle) -> Transferred:
    record = find_record(tx, move.xfer)
    if record is None:
        return unknown_outcome(tx, move.xfer)
    wrong = mismatch(record, move, "giver")
    if wrong is not None or record.outcome != "escrowed":
        return wrong or record.answer()
    check_term(tx, command.sender.term)
    failpoint("commit.before_move")
    row = tx.db.execute(_LET_GO, {"uid": record.uid, "xfer": record.xfer}).fetchone()
    if row is None:
        return refuse(move.xfer, "not_escrow", f"{record.uid} is not in escrow for {move.xfer}")
    _bury(tx, record, task_of(row[:-2]), spec=row[-3], sha256=row[-2], key=row[-1])
    tx.moves(State.ESCROW, None)
    set_outcome(tx, record.xfer, "committed")
    tx.event("task_moved", record.uid, was="ESCROW", state="MOVED", by=command.sender.by,
             because=record.why, data={"xfer": record.xfer, "to": record.peer})  # fmt: skip
    return Transferred(record.xfer, "committed")


def _bury(tx: Transaction, record: Record, task: Task, *, spec: str, sha256: str, key: str) -> None:
    whole = to_wire(task)
    whole["attempts"] = attempts_of(tx.db, task.uid)
    life = {name: value for name, value in whole.items() if name not in IMMUTABLE}
    values = (
        task.uid, task.epoch + 1, record.xfer, record.peer, record.peer_incarnation, key,
        tx.stamp, sha256, json.dumps(life, ensure_ascii=False, separators=(",", ":")), spec,
    )  # fmt: skip
    tx.db.execute(_BURY, values)


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
    """ESCROW(x) is READY again, at the next epoch, and x is recorded as aborted."""
    row = tx.db.execute(_GIVE_BACK, {"uid": uid, "xfer": xfer, "now": tx.stamp}).fetchone()
    assert row is not None, f"{uid} was not in escrow for {xfer}"
    tx.moves(State.ESCROW, State.READY)
    set_outcome(tx, xfer, "aborted", because)
    tx.event("task_given_back", uid, was="ESCROW", state="READY", by=by, because=because.text,
             data={"xfer": xfer})  # fmt: skip


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
        tx.db.execute(
            "UPDATE transfer SET settled_at = ? WHERE xfer = ?", (tx.stamp, record.xfer)
        )
        tx.changed = True
    if move.ended is not None:
        _note_end(tx, record, move.ended)
    return Transferred(record.xfer, "settled")


def _note_end(tx: Transaction, record: Record, ended: str) -> None:
    done = tx.db.execute(
        "UPDATE tombstone SET ended = ?, settled_at = ? WHERE uid = ? AND xfer = ? AND ended IS NULL",
        (ended, tx.stamp, record.uid, record.xfer),
    )
    if done.rowcount:
        tx.event("task_ended_elsewhere", record.uid, state=ended, by=record.peer)


def end_leases(tx: Transaction) -> int:
    """Give back every escrow whose lease ended: by boot seconds, or because the machine rebooted."""
    rows = tx.db.execute(
        "SELECT xfer, uid FROM transfer WHERE outcome = 'escrowed'"
        " AND (lease_boot <> ? OR lease_until <= ?)",
        (tx.clock.boot_id(), tx.clock.boottime()),
    ).fetchall()
    for xfer, uid in rows:
        because = Because("lease_ended", "no commit came before the lease ended")
        give_back(tx, xfer, uid, because, by="lease")
        tx.generation_due = True
    return len(rows)
