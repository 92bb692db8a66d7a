"""The giver's first step: tasks are set aside for a taker, whole and with their hash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import itemgetter

from ..commands import Because
from ..errors import Refused
from ..fields import TAG_MAX
from ..moves import Escrow, Move, Settle, Transferred
from ..spec import hash_of
from ..strict import JsonValue
from ..task import State, Task
from .batches import Step, all_new, all_or_none, begin_all
from .move_tables import OF_A_MOVE
from .rows import SET_ASIDE, find_task, task_aside, told_aside
from .senders import check_sender, check_term
from .spending import Ask, afford_move
from .transaction import Transaction, may_change, rows_to_json
from .transfers import (
    Record,
    find_record,
    forgotten,
    look_up,
    mismatch,
    refuse,
    told,
    unknown_outcome,
    write_record,
)
from .weights import weight_of, weights_of

LEASE_MIN, LEASE_MAX = 10.0, 600.0
# A reply is one line of at most 8 MiB; the largest task (body, output, extra, history) fits in one.
REPLY_MAX = 8 * 1024 * 1024 - 64 * 1024
ROOM_FOR_ONE = 3 * 1024 * 1024
_REPLY_FULL = "the reply is full; ask for this one again"
_SHORT = 6000  # bytes of a text whose exact size is not worth the time
WIRE_FRAME = 4096  # the names of all fields, numbers and times
REFUSAL = 256  # as much is kept for each answer: what `batch_full` takes, or any without its text
_texts = itemgetter(
    "subject", "progress", "failure_reason", "key", "ref", "origin", "source", "domain"
)
_lists = itemgetter("skills", "needs", "tags", "models", "fallback_models")
_loose = itemgetter(
    "attempts", "output", "extra", "artifacts", "tokens", "retry", "depends_on", "context_refs",
    "validate",
)  # fmt: skip

_MAY_LEAVE = f"""(pinned = 0 OR :even_if_pinned)
   AND EXISTS (SELECT 1 FROM node WHERE state <> 'quarantined') AND {may_change(State.ESCROW)}"""
_SET_ASIDE = f"""
UPDATE task SET state = 'ESCROW', xfer = :xfer, shared = 1
 WHERE uid = :uid AND epoch = :epoch AND {_MAY_LEAVE}
RETURNING {SET_ASIDE}, sha256
"""
_SET_ALL_ASIDE = f"""
UPDATE task SET state = 'ESCROW', xfer = j.value ->> 0, shared = 1 FROM json_each(:moves) j
 WHERE uid = j.value ->> 1 AND epoch = j.value ->> 2 AND {_MAY_LEAVE}
RETURNING task.xfer, {SET_ASIDE}, sha256
"""
_ESCROWED = Step("giver", "escrowed", "task_escrowed", "READY", "ESCROW")


def escrow(tx: Transaction, command: Escrow) -> tuple[Transferred, ...]:
    """Set tasks aside for a taker; each known transfer answers what was recorded."""
    if not LEASE_MIN <= command.lease_s <= LEASE_MAX:
        text = f"lease_s is {command.lease_s:g}; it goes from {LEASE_MIN:g} to {LEASE_MAX:g}"
        raise Refused("bad_request", text)
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    tx.generation_due = True
    xfers = look_up(tx, [move.xfer for move in command.moves])
    lease = (tx.clock.boot_id(), tx.clock.boottime() + command.lease_s)
    return _escrow_all(tx, command, xfers, lease=lease) or _one_by_one(tx, command, lease)


def _escrow_all(
    tx: Transaction, command: Escrow, xfers: list[str], *, lease: tuple[str, float]
) -> tuple[Transferred, ...] | None:
    """The usual batch, at once; None: something stands out, and nothing was done."""
    moves = command.moves
    if tx.live.budgeted or not all_new(tx, xfers, [move.uid for move in moves]):
        return None
    check_term(tx, command.sender.term)
    offers = all_or_none(tx, lambda: _set_all_aside(tx, command))
    if offers is None:
        return None
    tx.moves(State.READY, State.ESCROW, len(moves))
    begin_all(tx, _ESCROWED, moves, peer=command.to, why=command.why, by=command.sender.by,
              lease=lease)  # fmt: skip
    return tuple(map(offers.__getitem__, xfers))


def _set_all_aside(tx: Transaction, command: Escrow) -> dict[str, Transferred] | None:
    """By transfer what is offered; None: some may not leave, are damaged, or fill the reply."""
    values = {"moves": rows_to_json(command.moves), "even_if_pinned": command.even_if_pinned}
    rows = tx.db.execute(_SET_ALL_ASIDE, values).fetchall()
    if len(rows) < len(command.moves) or any(hash_of(row[-2]) != row[-1] for row in rows):
        return None
    offers = {xfer: _offer(tx, xfer, row, terse=command.terse) for xfer, *row in rows}
    for move, weight in _weighed(tx, command):
        offers[move.xfer] = offers[move.xfer]._replace(weight=weight)
    return offers if sum(map(_size_of, offers.values())) <= _room(command) - ROOM_FOR_ONE else None


def _weighed(tx: Transaction, command: Escrow) -> list[tuple[Move, float]]:
    """The moves of tasks to which a graph gave a weight."""
    if not tx.live.weighed:
        return []
    weights = weights_of(tx, [move.uid for move in command.moves])
    return [(move, weights[move.uid]) for move in command.moves if move.uid in weights]


def _one_by_one(
    tx: Transaction, command: Escrow, lease: tuple[str, float]
) -> tuple[Transferred, ...]:
    room, answers = _room(command), list[Transferred]()
    for move in command.moves:
        answer = _escrow_one(tx, command, move, room=room, lease=lease)
        room -= _size_of(answer)
        answers.append(answer)
    return tuple(answers)


def _room(command: Escrow) -> int:
    """What the reply holds beside a refusal of each."""
    return REPLY_MAX - REFUSAL * len(command.moves)


def _size_of(answer: Transferred) -> int:
    """At least as many bytes as it takes in the reply, beside those that are kept for each."""
    if answer.told is not None:
        return WIRE_FRAME + len(answer.told.encode())
    if answer.because is not None and answer.because.rule != "batch_full":
        return 6 * len(answer.because.text)
    return 0 if answer.task is None else size_on_wire(answer.task)


def size_on_wire(task: Task) -> int:
    """At least as many bytes as the task takes in a reply; exact only where that matters."""
    values = task.__dict__
    loose, body = _loose(values), 6 * len(task.body)
    if body > _SHORT:
        body = len(json.dumps(task.body, ensure_ascii=False).encode())
    size = WIRE_FRAME + body + 6 * sum(map(len, filter(None, _texts(values))))
    size += 6 * TAG_MAX * sum(map(len, _lists(values)))
    return size + (len(json.dumps(loose)) if any(loose) else 0)


def _fits(tx: Transaction, uid: str, room: int) -> bool:
    """Whether the reply has room for this task, measured before it is set aside."""
    task = find_task(tx, uid)
    if task is None:
        return room > WIRE_FRAME
    return size_on_wire(task) <= room


def _escrow_one(
    tx: Transaction, command: Escrow, move: Move, *, room: int, lease: tuple[str, float]
) -> Transferred:
    if room < ROOM_FOR_ONE and not _fits(tx, move.uid, room):
        return refuse(move.xfer, "batch_full", _REPLY_FULL)
    record = find_record(tx, move.xfer)
    if record is not None:
        return _escrowed_before(tx, record, command, move)
    check_term(tx, command.sender.term)
    if forgotten(tx, move.xfer):
        return unknown_outcome(tx, move.xfer)
    values = {"xfer": move.xfer, "uid": move.uid, "epoch": move.epoch,
              "even_if_pinned": command.even_if_pinned}  # fmt: skip
    if tx.live.budgeted:
        because = afford_move(tx, move.uid, epoch=move.epoch, pinned=command.even_if_pinned)
        if because is not None:
            write_record(tx, _record(command, move, "refused", because))
            return Transferred(move.xfer, "refused", because)
    row = tx.db.execute(_SET_ASIDE, values).fetchone()
    if row is None:
        return _escrow_refused(tx, command, move)
    tx.moves(State.READY, State.ESCROW)
    if hash_of(row[-2]) != row[-1]:
        return _park_damaged(tx, command, move)
    if tx.live.budgeted:
        Ask(tx, move.uid, moves=True).reserve(away=move.xfer)
    write_record(tx, _record(command, move, "escrowed"), lease=lease, event=tx.next_event)
    tx.event("task_escrowed", move.uid, n=OF_A_MOVE, was="READY", state="ESCROW",
             by=command.sender.by, because=command.why,
             data=told(move.xfer, "to", command.to))  # fmt: skip
    return _offered(tx, command, move, row)


def _record(command: Escrow, move: Move, outcome: str, because: Because | None = None) -> Record:
    rule, text = (because.rule, because.text) if because else (None, None)
    return Record(move.xfer, move.uid, move.epoch, "giver", command.to, move.peer_incarnation,
                  command.why, outcome, rule, text, None)  # fmt: skip


def _offered(
    tx: Transaction, command: Escrow, move: Move, row: Sequence[JsonValue], *, whole: bool = True
) -> Transferred:
    offer = _offer(tx, move.xfer, row, terse=command.terse and whole)
    weight = weight_of(tx, move.uid)
    return offer._replace(weight=weight) if weight else offer


def _offer(tx: Transaction, xfer: str, row: Sequence[JsonValue], *, terse: bool) -> Transferred:
    *said, sha256 = row
    if terse:
        return Transferred(xfer, "escrowed", None, None, str(sha256), told_aside(tx, said))
    return Transferred(xfer, "escrowed", None, task_aside(tx, said), str(sha256))


def _escrowed_before(tx: Transaction, record: Record, command: Escrow, move: Move) -> Transferred:
    asked = Settle(move.xfer, move.uid, command.to, move.peer_incarnation)
    wrong = mismatch(record, asked, "giver")
    if wrong is not None or record.outcome != "escrowed":
        return wrong or record.answer()
    query = f"SELECT {SET_ASIDE}, sha256 FROM task WHERE uid = ? AND xfer = ?"
    row = tx.db.execute(query, (move.uid, move.xfer)).fetchone()
    # What was damaged since then may be no JSON: it is never put into a line unread.
    whole = hash_of(str(row[-2])) == row[-1]
    return _offered(tx, command, move, row, whole=whole)


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
