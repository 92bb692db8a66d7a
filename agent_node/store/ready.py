"""Keeps in memory what waits here, by what the rules of a move look at, and in which order."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..guessing import Ears, ears_for, parse_domains
from ..movability import Shape
from ..strict import JsonObject
from ..task import State
from .transaction import Transaction

# A question about 100,000 waiting tasks is answered in the time it takes for 1,000, and a claim
# pays nothing for it: the store is the one writer, so what was read once only has to be brought
# up to date, and every change of a task has written an event that says which task it was.
REREAD_FROM = 20_000  # changed tasks; so many are read anew, all of them, more cheaply
EMPTY_MAX = 1000  # shapes without a task; tasks may all be different, and memory is not for them
SEQ_BITS = 53
SEQ = 2**SEQ_BITS - 1
_COLUMNS = """
SELECT t.uid, t.seq, CASE WHEN t.skills = '[]' AND t.domain IS NULL THEN t.subject END,
       t.rank, t.pinned, t.priority, t.domain, t.skills, t.needs, t.hops,
       t.stolen_from IS NOT NULL
"""
_ALL = f"{_COLUMNS} FROM task t WHERE t.state = 'READY'"
# CROSS JOIN tells the planner to go from the few that changed to their rows.
_THESE = f"""
{_COLUMNS} FROM json_each(?) j CROSS JOIN task t ON t.uid = j.value AND t.state = 'READY'
"""
_CHANGED = "SELECT DISTINCT uid FROM event WHERE seq > ? AND uid IS NOT NULL LIMIT ?"


@dataclass
class Bucket:
    """The tasks of one shape and one rank, in the order in which they came."""

    shape: Shape
    rank: int
    seqs: array[int] = field(default_factory=lambda: array("q"))


@dataclass
class Ready:
    """All READY tasks as they stood at event `seen`, for the domains of `table`."""

    table: str
    seen: int = 0
    buckets: list[Bucket] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)  # by uid: which bucket, and its seq
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    domains: JsonObject = field(default_factory=dict)
    ears: Ears = field(default_factory=Ears)


def ready_now(tx: Transaction) -> Ready:
    """What is READY at this moment; only for a transaction that has changed nothing itself."""
    known = tx.live.ready
    if known is None or known.table != tx.node.domains or not _brought_up_to_date(tx, known):
        known = tx.live.ready = _read_all(tx)
    return known


def _read_all(tx: Transaction) -> Ready:
    domains = parse_domains(tx.node.domains)
    ready = Ready(tx.node.domains, tx.newest_event, domains=domains, ears=ears_for(domains))
    found: list[list[int]] = []
    for uid, seq, subject, *key in tx.db.execute(_ALL):
        number = _number(ready, subject, key)
        if number == len(found):
            found.append([])
        found[number].append(seq)
        ready.places[uid] = number << SEQ_BITS | seq
    for bucket, seqs in zip(ready.buckets, found, strict=True):
        bucket.seqs = array("q", sorted(seqs))
    return ready


def _brought_up_to_date(tx: Transaction, ready: Ready) -> bool:
    """Whether reading what changed was enough; if not, `ready` is worth nothing any more."""
    newest = tx.newest_event
    if newest != ready.seen:
        uids = [uid for (uid,) in tx.db.execute(_CHANGED, (ready.seen, REREAD_FROM + 1))]
        if len(uids) > REREAD_FROM:
            return False
        _take_out(ready, uids)
        for uid, seq, subject, *key in tx.db.execute(_THESE, (json.dumps(uids),)):
            number = _number(ready, subject, key)
            _put_in(ready.buckets[number].seqs, seq)
            ready.places[uid] = number << SEQ_BITS | seq
        ready.seen = newest
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
    rank, pinned, priority, domain, skills, needs, hops, stolen = key
    shape = Shape(
        bool(pinned), int(str(priority)), None if domain is None else str(domain),
        tuple(json.loads(str(skills))), tuple(json.loads(str(needs))), int(str(hops)),
        bool(stolen), guess,
    )  # fmt: skip
    return Bucket(shape, int(str(rank)))


def _take_out(ready: Ready, uids: Iterable[str]) -> None:
    for uid in uids:
        place = ready.places.pop(uid, None)
        if place is not None:
            seqs = ready.buckets[place >> SEQ_BITS].seqs
            del seqs[bisect_left(seqs, place & SEQ)]


def _put_in(seqs: array[int], seq: int) -> None:
    if seqs and seqs[-1] > seq:
        seqs.insert(bisect_left(seqs, seq), seq)
    else:
        seqs.append(seq)


def first_of(
    buckets: Iterable[Bucket], *, ascending: bool, after: tuple[int, int] | None, limit: int
) -> list[tuple[int, int]]:
    """The first (rank, seq) of these buckets in this order, beyond `after`; None: from the start.

    Reads no more than `limit` of each bucket.
    """
    by_rank: dict[int, list[array[int]]] = {}
    for bucket in buckets:
        by_rank.setdefault(bucket.rank, []).append(bucket.seqs)
    found: list[tuple[int, int]] = []
    for rank in sorted(by_rank, reverse=not ascending):
        beyond = after[1] if after is not None and after[0] == rank else None
        if after is not None and beyond is None and (rank > after[0]) != ascending:
            continue
        some = [
            seq for seqs in by_rank[rank]
            for seq in _slice(seqs, beyond, limit, ascending=ascending)
        ]  # fmt: skip
        found += [(rank, seq) for seq in sorted(some, reverse=not ascending)]
        if len(found) >= limit:
            break
    return found[:limit]


def _slice(
    seqs: array[int], beyond: int | None, limit: int, *, ascending: bool
) -> array[int]:
    if ascending:
        start = 0 if beyond is None else bisect_right(seqs, beyond)
        return seqs[start : start + limit]
    end = len(seqs) if beyond is None else bisect_left(seqs, beyond)
    return seqs[max(0, end - limit) : end]
