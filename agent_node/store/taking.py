"""The taker's side of a move: hold, activate, drop. Nothing here ends by a clock."""

from __future__ import annotations

from ..commands import Because
from ..moves import Activate, Drop, Hold, Move, Offer, Settle, Transferred, Unread
from ..spec import hash_of, spec_of
from ..task import State, Task
from .batches import Step, all_known, all_new, all_or_none, begin_all, end_all
from .comings import arrived, forget_inputs
from .copies import NOT_HERE, Copies, Here
from .edges import tie_inputs
from .move_tables import OF_A_MOVE
from .past_attempts import drop_attempts, keep_attempts
from .rows import Life
from .senders import check_not_quarantined, check_sender, check_term
from .spending import settle_at_home
from .transaction import Transaction, may_change, to_json
from .transfers import (
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

_HELD = Step("taker", "held", "task_held", None, "HELD")
_ARRIVED = Step("taker", "activated", "task_arrived", "HELD", "READY")


def hold(tx: Transaction, command: Hold) -> tuple[Transferred, ...]:
    """Keep copies that do not run yet; refusals are recorded, so that a repeat hears the same."""
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    tx.generation_due = True
    xfers = look_up(tx, [offer.xfer for offer in command.offers])
    copies = Copies(tx, command)
    answers = _hold_all(tx, command, copies, xfers) or tuple(
        _hold_one(tx, command, offer, copies) for offer in command.offers
    )
    copies.write()
    return (*answers, *(_refuse_unread(tx, command, one) for one in command.unread))


def _hold_all(
    tx: Transaction, command: Hold, copies: Copies, xfers: list[str]
) -> tuple[Transferred, ...] | None:
    """The usual batch, at once; None: something stands out, and nothing was done."""
    offers = command.offers
    if not all_new(tx, xfers, [offer.task.uid for offer in offers]):
        return None
    check_term(tx, command.sender.term)
    if _node_objects(tx, command, coming=len(offers)) or not copies.all_new():
        return None
    specs = [spec_of(offer.task) for offer in offers]
    for offer, spec in zip(offers, specs, strict=True):
        if offer.task.key is not None or hash_of(spec) != offer.sha256:
            return None
    for offer, spec in zip(offers, specs, strict=True):
        copies.add(offer, _life_here(tx, command, offer.task), spec)
        keep_attempts(tx, offer.task, epoch=offer.task.epoch + 1)
        tie_inputs(tx, offer.task)
    tx.moves(None, State.HELD, len(offers))
    begun = [Move(xfer, task.uid, task.epoch + 1, incarnation)
             for xfer, task, _, incarnation, _ in offers]  # fmt: skip
    begin_all(tx, _HELD, begun, peer=command.giver, why=command.why, by=command.sender.by)
    return tuple(Transferred(xfer, "held") for xfer in xfers)


def _hold_one(tx: Transaction, command: Hold, offer: Offer, copies: Copies) -> Transferred:
    record = find_record(tx, offer.xfer)
    if record is not None:
        asked = Settle(offer.xfer, offer.task.uid, command.giver, offer.peer_incarnation)
        return mismatch(record, asked, "taker") or record.answer()
    check_term(tx, command.sender.term)
    if forgotten(tx, offer.xfer):
        return unknown_outcome(tx, offer.xfer)
    spec, here = spec_of(offer.task), copies.here(offer.task.uid)
    if offer.task.key is not None or here != NOT_HERE:
        copies.write()
    because = _node_objects(tx, command) or _task_objects(tx, offer, spec, here)
    if because is not None:
        if because.rule != "quarantined":
            write_record(tx, _record(command, offer, "refused", because))
        return Transferred(offer.xfer, "refused", because)
    if here != NOT_HERE:
        _replace_older_copy(tx, offer)
    task = offer.task
    copies.add(offer, _life_here(tx, command, task), spec)
    keep_attempts(tx, task, epoch=task.epoch + 1)
    tie_inputs(tx, task)
    tx.moves(None, State.HELD)
    write_record(tx, _record(command, offer, "held"), event=tx.next_event)
    tx.event("task_held", task.uid, n=OF_A_MOVE, state="HELD", by=command.sender.by,
             because=command.why, data=told(offer.xfer, "from", command.giver))  # fmt: skip
    return Transferred(offer.xfer, "held")


def _refuse_unread(tx: Transaction, command: Hold, one: Unread) -> Transferred:
    """What cannot be read is no task, but it names a transfer, of which this is the outcome."""
    record = find_record(tx, one.xfer)
    if record is not None:
        asked = Settle(one.xfer, one.uid or record.uid, command.giver, one.peer_incarnation)
        return mismatch(record, asked, "taker") or record.answer()
    check_term(tx, command.sender.term)
    if forgotten(tx, one.xfer):
        return unknown_outcome(tx, one.xfer)
    refused = Record(one.xfer, one.uid, 0, "taker", command.giver, one.peer_incarnation,
                     command.why, "refused", one.because.rule, one.because.text, None)  # fmt: skip
    if tx.node.state != "quarantined":
        write_record(tx, refused)
    return refused.answer()


def _record(command: Hold, offer: Offer, outcome: str, because: Because | None = None) -> Record:
    rule, text = (because.rule, because.text) if because else (None, None)
    return Record(offer.xfer, offer.task.uid, offer.task.epoch + 1, "taker", command.giver,
                  offer.peer_incarnation, command.why, outcome, rule, text, None)  # fmt: skip


def _life_here(tx: Transaction, command: Hold, task: Task) -> Life:
    """As it will live here: one epoch on, and who sent it; only being stolen is a hop."""
    source, stolen_from, hops = task.source, task.stolen_from, task.hops
    if command.why == "stolen":
        source, stolen_from = f"fleet:{command.giver}:stolen", command.giver
        hops += 1
    elif command.why == "routed":
        source = f"fleet:{tx.node.hub or command.giver}:router"
    return Life(task.epoch + 1, hops, source, stolen_from)


def _node_objects(tx: Transaction, command: Hold, *, coming: int = 1) -> Because | None:
    node, live = tx.node, tx.live
    if node.state != "active":
        return Because(node.state, f"{node.name} is {node.state} {node.reason}".strip())
    if not live.dispatching and not command.even_if_stopped:
        return Because("dispatcher_stopped", f"no dispatcher runs on {node.name}")
    if live.disk_low:
        return Because("disk_floor", f"{node.name} has too little free disk (disk_floor)")
    if tx.count(State.READY) + tx.count(State.HELD) + coming > live.queue_max:
        return Because("no_room", f"{live.queue_max} tasks wait here; queue_max allows no more")
    return None


def _task_objects(tx: Transaction, offer: Offer, spec: str, here: Here) -> Because | None:
    task = offer.task
    if hash_of(spec) != offer.sha256:
        return Because("hash_mismatch", f"{task.uid} does not have the hash that came with it")
    state, epoch, gone_at = here
    if state is not None and (state != State.HELD or epoch >= task.epoch + 1):
        return Because("already_here", f"{task.uid} is {state} here at epoch {epoch}")
    if gone_at is not None and gone_at >= task.epoch + 1:
        return Because("newer_known", f"{task.uid} was here at epoch {gone_at} already")
    return _key_taken(tx, task)


def _key_taken(tx: Transaction, task: Task) -> Because | None:
    if task.key is None:
        return None
    row = tx.db.execute(
        "SELECT uid FROM task WHERE key = :key AND uid <> :uid UNION ALL"
        " SELECT uid FROM tombstone WHERE key = :key AND uid <> :uid",
        {"key": task.key, "uid": task.uid},
    ).fetchone()
    return Because("key_taken", f"its key belongs to {row[0]} here") if row else None


def _replace_older_copy(tx: Transaction, offer: Offer) -> None:
    row = tx.db.execute(
        "DELETE FROM task WHERE uid = ? AND state = 'HELD' AND epoch < ? RETURNING xfer, epoch",
        (offer.task.uid, offer.task.epoch + 1),
    ).fetchone()
    if row is not None:
        because = Because("replaced", f"a later transfer, {offer.xfer}, brought a newer copy")
        drop_attempts(tx, offer.task.uid, epoch=row[1])
        tx.moves(State.HELD, None)
        set_outcome(tx, row[0], "dropped", because)
        tx.event("task_dropped", offer.task.uid, n=OF_A_MOVE, was="HELD", because=because.text,
                 data={"xfer": row[0]})  # fmt: skip


_ACTIVATE = f"""
UPDATE task SET state = 'READY', xfer = NULL, ready_at = :now
 WHERE uid = :uid AND xfer = :xfer AND {may_change(State.READY, State.HELD)}
"""
_ACTIVATE_ALL = f"""
UPDATE task SET state = 'READY', xfer = NULL, ready_at = :now FROM json_each(:rows) j
 WHERE uid = j.key AND xfer = j.value AND {may_change(State.READY, State.HELD)}
"""


def activate(tx: Transaction, command: Activate) -> tuple[Transferred, ...]:
    """HELD(x) becomes READY. Never refused for a pause, a drain or a full disk."""
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    tx.generation_due = True
    xfers = look_up(tx, [move.xfer for move in command.moves])
    return _activate_all(tx, command, xfers) or tuple(
        _activate_one(tx, command, move) for move in command.moves
    )


def _activate_all(
    tx: Transaction, command: Activate, xfers: list[str]
) -> tuple[Transferred, ...] | None:
    """The usual batch, at once; None: something stands out, and nothing was done."""
    records = all_known(tx, command.moves, side="taker", outcome="held")
    if records is None or tx.live.budgeted or tx.live.graphs:
        return None
    check_term(tx, command.sender.term)
    if not all_or_none(tx, lambda: _wake_all(tx, records)):
        return None
    tx.moves(State.HELD, State.READY, len(records))
    end_all(tx, _ARRIVED, records, by=command.sender.by)
    return tuple(Transferred(xfer, "activated") for xfer in xfers)


def _wake_all(tx: Transaction, records: list[Record]) -> bool:
    """Whether each of them was held for its transfer; all that were are READY now."""
    rows = to_json({record.uid: record.xfer for record in records})
    done = tx.db.execute(_ACTIVATE_ALL, {"rows": rows, "now": tx.stamp})
    return done.rowcount == len(records)


def _activate_one(tx: Transaction, command: Activate, move: Settle) -> Transferred:
    record = find_record(tx, move.xfer)
    if record is None:
        return unknown_outcome(tx, move.xfer)
    wrong = mismatch(record, move, "taker")
    if wrong is not None or record.outcome != "held":
        return wrong or record.answer()
    check_term(tx, command.sender.term)
    values = {"uid": record.uid, "xfer": record.xfer, "now": tx.stamp}
    if not tx.db.execute(_ACTIVATE, values).rowcount:
        return refuse(move.xfer, "not_held", f"{record.uid} is not held for {move.xfer}")
    tx.moves(State.HELD, State.READY)
    settle_at_home(tx, record.uid, epoch=record.epoch)
    set_outcome(tx, record.xfer, "activated")
    tx.event("task_arrived", record.uid, n=OF_A_MOVE, was="HELD", state="READY",
             by=command.sender.by, because=record.why,
             data=told(record.xfer, "from", record.peer))  # fmt: skip
    arrived(tx, record.uid)
    return Transferred(record.xfer, "activated")


def drop(tx: Transaction, command: Drop) -> tuple[Transferred, ...]:
    """The copy goes, and a tombstone that was here before is all that is left of the task."""
    check_sender(tx, incarnation=command.sender.incarnation, term=None)
    tx.generation_due = True
    return tuple(_drop_one(tx, command, move) for move in command.moves)


def _drop_one(tx: Transaction, command: Drop, move: Settle) -> Transferred:
    record = find_record(tx, move.xfer)
    if record is None:
        if forgotten(tx, move.xfer):
            return unknown_outcome(tx, move.xfer)
        check_term(tx, command.sender.term)
        check_not_quarantined(tx)
        because = Because("dropped_first", "the drop came before the hold")
        write_record(
            tx,
            Record(move.xfer, move.uid, 0, "taker", move.peer, move.peer_incarnation, "moved",
                   "dropped", because.rule, because.text, None),
        )  # fmt: skip
        return Transferred(move.xfer, "dropped", because)
    wrong = mismatch(record, move, "taker")
    if wrong is not None or record.outcome != "held":
        return wrong or record.answer()
    check_term(tx, command.sender.term)
    because = Because("dropped", "the giver called it off")
    if not let_go(tx, record, because, by=command.sender.by):
        return refuse(move.xfer, "not_held", f"{record.uid} is not held for {move.xfer}")
    drop_attempts(tx, record.uid, epoch=record.epoch)
    return Transferred(record.xfer, "dropped", because)


def let_go(tx: Transaction, record: Record, because: Because, *, by: str) -> bool:
    """HELD(x) is gone and x is recorded as dropped; False: it was not held, nothing changed."""
    done = tx.db.execute(
        "DELETE FROM task WHERE uid = ? AND xfer = ? AND state = 'HELD'", (record.uid, record.xfer)
    )
    if not done.rowcount:
        return False
    forget_inputs(tx, record.uid)
    tx.moves(State.HELD, None)
    set_outcome(tx, record.xfer, "dropped", because)
    tx.event("task_dropped", record.uid, n=OF_A_MOVE, was="HELD", by=by, because=because.text,
             data=told(record.xfer, "from", record.peer))  # fmt: skip
    return True
