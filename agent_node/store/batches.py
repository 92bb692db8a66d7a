"""Moves the usual batch at once, a statement for each table; whatever is unusual goes one by one.

Each command of a move has two ways. A batch in which nothing stands out goes at once: all of it is
done, or none of it, and then it goes one by one, as every other batch does from the beginning. So
only one by one is anything refused, repeated or parked; what goes at once answers and writes the
very same as one by one would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from ..moves import Fenced, Move, Settle
from .hearsay import hear_of
from .move_tables import OF_A_MOVE
from .transaction import Transaction, rows_to_json, to_json
from .transfers import Record, Side, Way, mismatch, told

AT_ONCE_FROM = 2  # moves; one alone gains nothing
_WRITE_ALL = """
INSERT INTO transfer (xfer, uid, epoch, side, peer, peer_incarnation, why, outcome,
                      lease_boot, lease_until, at, begun_event)
SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, ?, ?, j.value ->> 3, ?, ?, ?, ?, ?, ? + j.key
  FROM json_each(?) j
"""
_SET_ALL = """
UPDATE transfer SET outcome = ?, at = ?, ended_event = ? + j.key
  FROM json_each(?) j WHERE xfer = j.value
"""
_Done = TypeVar("_Done")


class Step(NamedTuple):
    """What a command does to each task of its batch, in the words of its event and its record."""

    side: Side
    outcome: str
    event: str
    was: str | None
    state: str

    @property
    def way(self) -> Way:
        """Where its peer is, seen from here."""
        return "to" if self.side == "giver" else "from"


def all_new(tx: Transaction, xfers: Sequence[str], uids: Iterable[str]) -> bool:
    """Whether these transfers, just looked up, are several, none of which was ever heard of here,
    and each of them is about another task.
    """
    return (
        len(xfers) >= AT_ONCE_FROM
        and not any(map(tx.records.get, xfers))
        and min(xfers) > tx.node.xfer_floor
        and len(xfers) == len(set(xfers)) == len(set(uids))
    )


def all_known(
    tx: Transaction, moves: Sequence[Settle], *, side: Side, outcome: str
) -> list[Record] | None:
    """The records of these transfers, just looked up; None: there is one alone, or some of them are
    not at this outcome, or not what the move says. Who names one twice is answered twice.
    """
    if len(moves) < AT_ONCE_FROM:
        return None
    known = dict[str, Record]()
    for move in moves:
        record = tx.records[move.xfer]
        if record is None or record.outcome != outcome or mismatch(record, move, side):
            return None
        known[move.xfer] = record
    return [*known.values()]


def all_or_none(tx: Transaction, do: Callable[[], _Done]) -> _Done:
    """What it comes to. Where that is false or nothing, it could not do all, and none is done."""
    tx.db.execute("SAVEPOINT batch")
    done = do()
    if not done:
        tx.db.execute("ROLLBACK TO batch")
    tx.db.execute("RELEASE batch")
    return done


def begin_all(
    tx: Transaction,
    step: Step,
    moves: Sequence[Move],
    *,
    peer: str,
    why: str,
    by: str,
    lease: tuple[str, float] | None = None,
) -> None:
    """The events and the records of transfers that begin here; `epoch` is the one of the record."""
    for incarnation in {move.peer_incarnation for move in moves} - {None}:
        hear_of(tx, (Fenced(peer, str(incarnation)),))
    way = step.way
    first = tx.events(
        step.event, [(uid, why, told(xfer, way, peer)) for xfer, uid, _, _ in moves],
        n=OF_A_MOVE, was=step.was, state=step.state, by=by,
    )  # fmt: skip
    boot, until = lease or (None, None)
    values = (step.side, peer, why, step.outcome, boot, until, tx.stamp, first)
    tx.write_later(_WRITE_ALL, (*values, rows_to_json(moves)))
    tx.records.clear()  # what was looked up is so no longer


def end_all(tx: Transaction, step: Step, records: Sequence[Record], *, by: str) -> None:
    """The events of transfers that end here, and the next outcome of their records."""
    way = step.way
    first = tx.events(
        step.event,
        [(one.uid, one.why, told(one.xfer, way, one.peer)) for one in records],
        n=OF_A_MOVE, was=step.was, state=step.state, by=by,
    )  # fmt: skip
    xfers = to_json([record.xfer for record in records])
    tx.write_later(_SET_ALL, (step.outcome, tx.stamp, first, xfers))
    tx.records.clear()
