"""Gathers the copies that one request brings, and knows what was here of each before."""

from __future__ import annotations

from ..errors import BrokenRule
from ..moves import Hold, Offer
from ..task import State, with_fields
from .rows import INSERT_OFFERED, INSERT_SILENT, Life, silent_row, travelled_row
from .transaction import Transaction, to_json
from .weights import weights_of

Here = tuple[str | None, int, int | None]  # of the row state and epoch, of the tombstone epoch
NOT_HERE: Here = (None, 0, None)
_KNOWN_HERE = """
SELECT j.value, t.state, coalesce(t.epoch, 0), x.epoch FROM {many} j
  LEFT JOIN task t ON t.uid = j.value LEFT JOIN tombstone x ON x.uid = j.value
"""
_ALL_KNOWN, _ONE_KNOWN = (_KNOWN_HERE.format(many=many)
                          for many in ("json_each(?)", "(SELECT ? AS value)"))  # fmt: skip


class Copies:
    """The copies that one request brings, written together; and what was known here of each."""

    def __init__(self, tx: Transaction, command: Hold) -> None:
        self._tx, self._how, self._rows = tx, "", list[tuple[object, ...]]()
        uids = [offer.task.uid for offer in command.offers]
        alone = len(uids) == 1  # then a table made of JSON costs more than the look itself
        rows = (tx.db.execute(_ONE_KNOWN, uids) if alone
                else tx.db.execute(_ALL_KNOWN, (to_json(uids),)))  # fmt: skip
        self._here: dict[str, Here] = {
            uid: (state, epoch, gone_at) for uid, state, epoch, gone_at in rows
        }
        self._weights = weights_of(tx, uids)

    def here(self, uid: str) -> Here:
        """State and epoch of the row, epoch of the tombstone."""
        return self._here[uid]

    def all_new(self) -> bool:
        """Whether nothing is or was here of any of them."""
        return all(known == NOT_HERE for known in self._here.values())

    def add(self, offer: Offer, life: Life, spec: str) -> None:
        """This one is HELD from here on, under the epoch and with the source that it has here."""
        task, tx, how = offer.task, self._tx, INSERT_SILENT
        # Whoever brings it may have it from a node that is too old to tell of weights.
        weight = offer.weight or self._weights.get(task.uid, 0.0)
        row = None if weight else silent_row(
            tx, task, spec, life, xfer=offer.xfer, sha256=offer.sha256
        )
        if row is None:
            how, task = INSERT_OFFERED, with_fields(task, life._asdict())
            row = travelled_row(tx, task, spec, state=State.HELD, xfer=offer.xfer, weight=weight,
                                sha256=offer.sha256)  # fmt: skip
        if how != self._how:
            self.write()  # they are numbered in the order in which they come
        self._how = how
        self._rows.append(row)
        self._here[task.uid] = (State.HELD, life.epoch, self._here[task.uid][2])

    def write(self) -> None:
        """Before anybody looks for them in the table. The node must be active in this statement."""
        if self._rows:
            done = self._tx.db.executemany(self._how, self._rows).rowcount
            if done != len(self._rows):
                node = self._tx.node
                raise BrokenRule(f"{node.name} is {node.state} and would have held a task")
            self._rows = []
