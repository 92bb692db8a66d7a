"""One transaction as the commands see it: the connection, the moment, and what they count."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache, lru_cache
from random import Random
from typing import TYPE_CHECKING, NamedTuple, cast

from ..clock import Clock, iso
from ..compact import writer
from ..errors import BrokenRule
from ..strict import JsonObject, JsonValue
from ..task import CHANGES, State
from .live import Live

if TYPE_CHECKING:
    from .transfers import Record

_compact = writer(sorted_keys=True)
NEED_SETS_KEPT = 256  # of those in memory; a node knows a few


def to_json(value: JsonValue | list[str]) -> str:
    """Compact text for a column; the usual empty list costs nothing."""
    return "[]" if value == [] else _compact(value)


def rows_to_json(rows: Sequence[tuple[str | int | None, ...]]) -> str:
    """A list of lists for `json_each`, so that one statement has the values of many rows."""
    return _compact(cast("JsonValue", rows))


def words_to_json(words: list[str]) -> str:
    """The same for a list of words: most tasks carry one of a few such lists."""
    return _words_to_json(tuple(words)) if words else "[]"


@lru_cache(maxsize=256)
def _words_to_json(words: tuple[str, ...]) -> str:
    return _compact(list(words))


class NodeRow(NamedTuple):
    """The node's own row."""

    name: str
    incarnation: str
    generation: int
    machine: str
    state: str
    reason: str
    term: int
    hub: str | None
    fleet: str | None
    hello_boot: str | None
    domains: str
    xfer_floor: str
    drain_until: str | None
    drain_then: str | None
    hub_instance: str | None = None
    counted_event: int = 0  # events up to this one are in `generation`; each later one counts once


_NODE_COLUMNS = ", ".join(NodeRow._fields)


class Transaction:
    """Lives from BEGIN IMMEDIATE to COMMIT; `moved` is added to the store's counts after it."""

    changed = False
    generation_due = False
    limit_looked = False  # the limit that was read has been told to whoever waits for its money
    heard = False  # of a later incarnation of another node
    instance: str | None = None  # of the hub whose command this is; None: it says none
    obeyed: tuple[int, str | None] | None = None  # the term and instance that were found in order
    order_ms: int | None = None  # this moment as turns count it; None: nobody has asked yet
    usual_growth: int | None = None  # what a turn of the usual pace has grown by until then
    _has_left = False  # some row has gone, and what that changes has not been looked at

    def __init__(
        self,
        db: sqlite3.Connection,
        *,
        clock: Clock,
        rng: Random,
        live: Live,
        counts: dict[str, int],
    ) -> None:
        self.db = db
        self.clock = clock
        self.rng = rng
        self.live = live
        self.now: datetime = clock.now()
        self.stamp = iso(self.now)
        self.moved: dict[str, int] = {}
        self.heard_of: set[object] = set()
        self.records: dict[str, Record | None] = {}  # transfers that were looked up, as they are
        self.last_event = live.last_event  # the newest that is written; None: nobody has asked yet
        self.wrote_events = False
        self.known_node = live.node  # the node's own row; None: not read since it was changed
        self.life = live.life  # which one claims are of; None: not known
        self._counts = counts
        self._need_sets: dict[str, int] = {}
        self._events: list[tuple[object, ...]] = []
        self._rows: dict[str, list[tuple[object, ...]]] = {}

    @property
    def node(self) -> NodeRow:
        """The node's row, read once and again after each change."""
        if self.known_node is None:
            row = self.db.execute(f"SELECT {_NODE_COLUMNS} FROM node").fetchone()
            self.known_node = NodeRow(*row)
        return self.known_node

    @property
    def generation(self) -> int:
        """How far this database has come: every event takes it one further, and so does a raise.
        0: it was never raised yet, which only a new one is.
        """
        node = self.node
        return node.generation and node.generation + self.newest_event - node.counted_event

    def raise_generation(self) -> int:
        """Further than before this command: by its events, or without any by the node's row."""
        if not (self.wrote_events and self.node.generation):
            self.db.execute("UPDATE node SET generation = generation + 1")
            self.known_node = None
        return self.generation

    def set_node(self, **values: str | int | None) -> None:
        """Change the node's row."""
        columns = ", ".join(f"{name} = :{name}" for name in values)
        self.db.execute(f"UPDATE node SET {columns}", values)
        self.known_node = self.obeyed = self.life = None
        self.changed = True

    def count(self, state: str) -> int:
        """How many tasks are in a state, this transaction's own changes included."""
        return self._counts.get(state, 0) + self.moved.get(state, 0)

    def moves(self, was: str | None, state: str | None, number: int = 1) -> None:
        """Count a change of state; None stands for a row that comes or goes."""
        if was is not None:
            self.moved[was] = self.moved.get(was, 0) - number
        if state is None:
            self._note_gone()
        else:
            self.moved[state] = self.moved.get(state, 0) + number
        self.changed = True

    def leaves(self, was: str, number: int = 1) -> None:
        """Count a row that goes, in a command that puts no other in its place."""
        self.moved[was] = self.moved.get(was, 0) - number
        self._has_left = self.changed = True

    def _note_gone(self) -> None:
        """A row that went may leave its `seq` to the next one that comes."""
        known = self.live.first_comer
        if known is not None:
            (beyond,) = self.db.execute("SELECT coalesce(max(seq), 0) + 1 FROM task").fetchone()
            self.live.first_comer = min(known, beyond)

    def event(
        self,
        event: str,
        uid: str | None = None,
        *,
        n: int | None = None,
        was: str | None = None,
        state: str | None = None,
        by: str | None = None,
        because: str | None = None,
        data: JsonObject | str | None = None,
    ) -> None:
        """Write down what happens, in the transaction that makes it happen; a text is JSON."""
        self.changed = True
        text = data if data is None or isinstance(data, str) else _compact(data)
        # SQLite is given plain strings: to look for an adapter for each enum costs more than this.
        was, state = was and str(was), state and str(state)
        number = self.next_event
        self._events.append((number, self.stamp, uid, n, event, was, state, by, because, text))

    def events(
        self,
        event: str,
        told: Iterable[tuple[str, str, str]],
        *,
        n: int,
        was: str | None,
        state: str,
        by: str,
    ) -> int:
        """The same of several tasks, each with its own reason and data; the number of the first."""
        self.changed, stamp, first = True, self.stamp, self.next_event
        self._events += [
            (number, stamp, uid, n, event, was, state, by, because, text)
            for number, (uid, because, text) in enumerate(told, first)
        ]
        return first

    @property
    def events_due(self) -> int:
        """How many events this command has still to write, counted from `LAST_EVENT`."""
        return len(self._events)

    @property
    def next_event(self) -> int:
        """The number of the event that is noted next, for whoever names it."""
        last = self.last_event
        return (self.newest_event if last is None else last) + len(self._events) + 1

    @property
    def newest_event(self) -> int:
        """The number of the newest event that is written; those still to be written follow."""
        if self.last_event is None:
            (self.last_event,) = self.db.execute(_NEWEST_EVENT).fetchone()
        return self.last_event

    def write_events(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Events in their order, while none is due; each row is written behind its number."""
        numbered = [(n, *row) for n, row in enumerate(rows, self.next_event)]
        self.db.executemany(statement, numbered)
        self.last_event, self.wrote_events = self.next_event - 1 + len(numbered), True

    def write_later(self, statement: str, values: tuple[object, ...]) -> None:
        """Rows that nothing in this command reads again: a batch of them costs what one does."""
        self._rows.setdefault(statement, []).append(values)

    def write_before(self, statement: str) -> None:
        """What is put off for this statement, now or later, goes ahead of others used from now."""
        self._rows.setdefault(statement, [])

    def flush(self) -> None:
        """Write what was put off, statement by statement in the order they were first used."""
        if self._has_left:
            self._has_left = False
            self._note_gone()
        if self._events:
            self.db.executemany(_EVENT, self._events)
            self.last_event, self.wrote_events = self.next_event - 1, True
            self._events = []
        rows, self._rows = self._rows, {}
        for statement, values in rows.items():
            self.db.executemany(statement, values)

    def need_set(self, needs: list[str]) -> int:
        """The number of this set of needs in the index, linked to every agent that meets it."""
        text = words_to_json(needs) if needs else "[]"
        known = self.live.need_sets.get(text) or self._need_sets.get(text)
        if known is None:
            known = self._need_sets[text] = self._find_need_set(text)
        return known

    def _find_need_set(self, text: str) -> int:
        row = self.db.execute("SELECT id FROM need_set WHERE needs = ?", (text,)).fetchone()
        if row is None:
            row = self.db.execute(
                "INSERT INTO need_set (needs) VALUES (?) RETURNING id", (text,)
            ).fetchone()
            self.db.execute(f"{LINK_AGENTS} AND s.id = ?", row)
        elif len(self.live.need_sets) < NEED_SETS_KEPT:  # it was here before, and stays
            self.live.need_sets[text] = row[0]
        number: int = row[0]
        return number


_EVENT = (
    "INSERT INTO event (seq, at, uid, n, event, was, state, by, because, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_NEWEST_EVENT = "SELECT coalesce(max(seq), 0) FROM event"
# An agent may claim a set of needs when no word of the set is missing from its powers.
LINK_AGENTS = """
INSERT INTO agent_can (agent, need_set)
SELECT a.name, s.id FROM agent a CROSS JOIN need_set s
 WHERE NOT EXISTS (
   SELECT 1 FROM json_each(s.needs) w
    WHERE w.value NOT IN (SELECT p.word FROM agent_power p WHERE p.agent = a.name))
"""


@cache
def may_change(new: State, *only: State) -> str:
    """SQL that lets a row become `new` only from where the table in task.py allows it."""
    allowed = [old for old in CHANGES if new in CHANGES[old] and (not only or old in only)]
    if not allowed or any(old not in allowed for old in only):
        raise BrokenRule(f"the table of states does not lead from {only} to {new}")
    names = ", ".join(f"'{old}'" for old in allowed)
    return f"state IN ({names})"
