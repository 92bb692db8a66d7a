"""Remembers the outcome of every transfer, and answers with it before anything else is asked."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..commands import Because
from ..moves import Fenced, Settle, Transferred
from ..task import State
from .by_state import by_state
from .hearsay import hear_of
from .transaction import Transaction, to_json

Side = Literal["giver", "taker"]
Way = Literal["to", "from"]


class Record(NamedTuple):
    """What this node knows of one transfer."""

    xfer: str
    uid: str
    epoch: int
    side: Side
    peer: str
    peer_incarnation: str | None
    why: str
    outcome: str
    rule: str | None
    because: str | None
    settled_at: str | None

    def become(self, outcome: str, rule: str | None, because: str | None) -> Record:
        """The same record with its next outcome."""
        return Record(*self[:7], outcome, rule, because, self.settled_at)

    def answer(self) -> Transferred:
        """The recorded outcome, as it is told to whoever asks (again)."""
        said = Because(self.rule, self.because or "") if self.rule else None
        return Transferred(self.xfer, self.outcome, said)


_COLUMNS = ", ".join(Record._fields)
_FIND = f"SELECT {_COLUMNS} FROM transfer WHERE xfer = ?"
_WRITE = """
INSERT INTO transfer (xfer, uid, epoch, side, peer, peer_incarnation, why, outcome, rule, because,
                      lease_boot, lease_until, at, begun_event)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


# What is set aside, or held, is found by the state of its task: an index less for each of them.
IN_ESCROW = f"""task t CROSS JOIN transfer x ON x.xfer = t.xfer
 WHERE {by_state(State.ESCROW, of='t')} AND x.outcome = 'escrowed'"""
HELD_HERE = f"""task t CROSS JOIN transfer x ON x.xfer = t.xfer
 WHERE {by_state(State.HELD, of='t')} AND x.outcome = 'held'"""
_FIND_ALL = f"SELECT {_COLUMNS} FROM json_each(?) w JOIN transfer ON xfer = w.value"
_SET = (
    "UPDATE transfer SET outcome = ?, rule = ?, because = ?, at = ?, ended_event = ? WHERE xfer = ?"
)


def look_up(tx: Transaction, xfers: list[str]) -> list[str]:
    """Read the records of a whole batch at once; `find_record` then knows them. The same ids."""
    tx.records.update(dict.fromkeys(xfers))
    alone = len(xfers) == 1  # then a table made of JSON costs more than the look itself
    found = tx.db.execute(_FIND, xfers) if alone else tx.db.execute(_FIND_ALL, (to_json(xfers),))
    for record in map(Record._make, found):
        tx.records[record.xfer] = record
    return xfers


def find_record(tx: Transaction, xfer: str) -> Record | None:
    """The record of a transfer; None when this node has none (it may have been forgotten)."""
    if xfer not in tx.records:
        row = tx.db.execute(_FIND, (xfer,)).fetchone()
        tx.records[xfer] = None if row is None else Record(*row)
    return tx.records[xfer]


def write_record(
    tx: Transaction,
    record: Record,
    *,
    lease: tuple[str, float] | None = None,
    event: int | None = None,
) -> None:
    """Write down a transfer that was not known here; `event` is the number of its own."""
    if record.peer_incarnation is not None:
        hear_of(tx, (Fenced(record.peer, record.peer_incarnation),))
    boot, until = lease or (None, None)
    values = (
        record.xfer, record.uid, record.epoch, record.side, record.peer,
        record.peer_incarnation, record.why, record.outcome, record.rule, record.because,
        boot, until, tx.stamp, event,
    )  # fmt: skip
    tx.write_later(_WRITE, values)
    tx.records[record.xfer] = record
    tx.changed = True


def set_outcome(tx: Transaction, xfer: str, outcome: str, because: Because | None = None) -> None:
    """The record's next and recorded outcome; the event noted next is the one that tells of it."""
    rule, text = (because.rule, because.text) if because else (None, None)
    record = find_record(tx, xfer)
    if record is not None:
        tx.records[xfer] = record.become(outcome, rule, text)
    tx.write_before(_WRITE)  # of records made in this very command, too, the outcome comes second
    tx.write_later(_SET, (outcome, rule, text, tx.stamp, tx.next_event, xfer))
    tx.changed = True


def told(xfer: str, way: Way, peer: str) -> str:
    """What the event of a move says besides, as JSON: ids and names hold nothing to be escaped."""
    return f'{{"{way}":"{peer}","xfer":"{xfer}"}}'


def forgotten(tx: Transaction, xfer: str) -> bool:
    """Whether a transfer unknown here is so old that its record may have been let go."""
    return xfer <= tx.node.xfer_floor


def unknown_outcome(tx: Transaction, xfer: str) -> Transferred:
    """The answer for a transfer without a record, where none is made: nothing changed."""
    if forgotten(tx, xfer):
        text = f"transfers up to {tx.node.xfer_floor} may have been forgotten here"
        return Transferred(xfer, "too_old", Because("too_old", text))
    return Transferred(xfer, "unknown", Because("unknown", "no such transfer here"))


def mismatch(record: Record, move: Settle, side: Side) -> Transferred | None:
    """A transfer is bound to its task, side and peer: another binding changes nothing."""
    if record.side != side:
        text = f"{record.xfer} has this node as its {record.side}"
    elif record.uid != move.uid:
        text = f"{record.xfer} is about {record.uid or 'what could not be read'}"
    elif record.peer != move.peer:
        text = f"{record.xfer} is with {record.peer}"
    elif (
        record.peer_incarnation is not None
        and move.peer_incarnation is not None
        and record.peer_incarnation != move.peer_incarnation
    ):
        text = f"{record.xfer} is with {record.peer} as it was under {record.peer_incarnation}"
        return Transferred(record.xfer, "refused", Because("other_incarnation", text))
    else:
        return None
    return Transferred(record.xfer, "refused", Because("other_transfer", text))


def refuse(move: str, rule: str, text: str) -> Transferred:
    """No, and why."""
    return Transferred(move, "refused", Because(rule, text))
