"""Keeps in memory what waits here, by what the rules of a move look at, and in which order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..guessing import Ears, ears_for, parse_domains
from ..movability import Shape
from ..strict import JsonObject
from ..task import State
from .buckets import Bucket
from .transaction import Transaction

# A question about 100,000 waiting tasks is answered in the time it takes for 1,000, and a claim
# pays nothing for it: the store is the one writer, so what was read once only has to be brought
# up to date, and every change of a task has written an event that says which task it was.
REREAD_FROM = 20_000  # changed tasks; so many are read anew, all of them, more cheaply
EMPTY_MAX = 1000  # shapes without a task; tasks may all be different, and memory is not for them
SEQ_BITS, TURN_BITS = 53, 56
TURN_ZERO = 1 << (TURN_BITS - 1)  # turns may be below 0
_COLUMNS = """
SELECT t.uid, t.seq, t.turn, CASE WHEN t.skills = '[]' AND t.domain IS NULL THEN t.subject END,
       t.pace, t.rank, t.pinned, t.priority, t.domain, t.skills, t.needs, t.hops,
       t.stolen_from IS NOT NULL
"""
_ALL = f"{_COLUMNS} FROM task t WHERE t.state = 'READY'"
# CROSS JOIN tells the planner to go from the few that changed to their rows.
_THESE = f"""
{_COLUMNS} FROM json_each(?) j CROSS JOIN task t ON t.uid = j.value AND t.state = 'READY'
"""
_CHANGED = "SELECT DISTINCT uid FROM event WHERE seq > ? AND uid IS NOT NULL LIMIT ?"


class Place(NamedTuple):
    """Where a task is found: its bucket, and where it stands there."""

    number: int
    turn: int
    seq: int


@dataclass
class Ready:
    """All READY tasks as they stood at event `seen`, for the domains of `table`."""

    table: str
    seen: int = 0
    buckets: list[Bucket] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)  # by uid, the `Place` as one number
    turned: set[str] = field(default_factory=set)  # uids whose turn changed without an event
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    domains: JsonObject = field(default_factory=dict)
    ears: Ears = field(default_factory=Ears)

    def find(self, uid: str) -> Place:
        """Where this task is found; one that waits here."""
        return _unpacked(self.places[uid])


def ready_now(tx: Transaction) -> Ready:
    """What is READY at this moment; only for a transaction that has changed nothing itself."""
    known = tx.live.ready
    if known is None or known.table != tx.node.domains or not _brought_up_to_date(tx, known):
        known = tx.live.ready = _read_all(tx)
    return known


def _read_all(tx: Transaction) -> Ready:
    domains = parse_domains(tx.node.domains)
    ready = Ready(tx.node.domains, tx.newest_event, domains=domains, ears=ears_for(domains))
    found: list[list[tuple[int, int]]] = []
    for uid, seq, turn, subject, *key in tx.db.execute(_ALL):
        number = _number(ready, subject, key)
        if number == len(found):
            found.append([])
        found[number].append((turn, seq))
        ready.places[uid] = _packed(number, turn, seq)
    for bucket, waiting in zip(ready.buckets, found, strict=True):
        bucket.fill(waiting)
    return ready


def _packed(number: int, turn: int, seq: int) -> int:
    """One number takes a third of the memory that three of them do."""
    return (number << TURN_BITS | turn + TURN_ZERO) << SEQ_BITS | seq


def _unpacked(place: int) -> Place:
    above, seq = divmod(place, 1 << SEQ_BITS)
    number, turn = divmod(above, 1 << TURN_BITS)
    return Place(number, turn - TURN_ZERO, seq)


def _brought_up_to_date(tx: Transaction, ready: Ready) -> bool:
    """Whether reading what changed was enough; if not, `ready` is worth nothing any more."""
    newest = tx.newest_event
    if newest != ready.seen or ready.turned:
        changed = tx.db.execute(_CHANGED, (ready.seen, REREAD_FROM + 1))
        uids = [*ready.turned.union(uid for (uid,) in changed)]
        if len(uids) > REREAD_FROM:
            return False
        _take_out(ready, uids)
        for uid, seq, turn, subject, *key in tx.db.execute(_THESE, (json.dumps(uids),)):
            number = _number(ready, subject, key)
            ready.buckets[number].put(turn, seq)
            ready.places[uid] = _packed(number, turn, seq)
        ready.seen, ready.turned = newest, set()
    # The store counts states by itself: two counts that differ are a mistake, and never an answer.
    agree = len(ready.places) == tx.count(State.READY)
    return agree and len(ready.buckets) <= len(ready.places) + EMPTY_MAX


def _number(ready: Ready, subject: str | None, key: list[object]) -> int:
    """Which bucket such a task belongs in; a new one where there is none."""
    guess = ready.ears.guess(subject) if subject is not None else None
    whole = (*key, guess)
    number = ready.numbers.get(whole)
    if number is None:
        number = ready.numbers[whole] = len(ready.buckets)
        ready.buckets.append(_bucket(key, guess))
    return number


def _bucket(key: list[object], guess: str | None) -> Bucket:
    pace, rank, pinned, priority, domain, skills, needs, hops, stolen = key
    shape = Shape(
        bool(pinned), int(str(priority)), None if domain is None else str(domain),
        tuple(json.loads(str(skills))), tuple(json.loads(str(needs))), int(str(hops)),
        bool(stolen), guess,
    )  # fmt: skip
    return Bucket(shape, int(str(rank)), int(str(pace)))


def _take_out(ready: Ready, uids: Iterable[str]) -> None:
    for uid in uids:
        packed = ready.places.pop(uid, None)
        if packed is not None:
            place = _unpacked(packed)
            ready.buckets[place.number].take(place.turn, place.seq)
