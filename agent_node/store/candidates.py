"""Finds READY tasks that may move, and counts the rule that keeps each of the others."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Sequence

from ..movability import Shape, domains_of, objection
from ..queries import Candidates, Chosen
from ..task import State, Task
from .care import marked_elsewhere
from .ready import SEQ, SEQ_BITS, Bucket, Ready, first_of, ready_now
from .rows import WITHOUT_BODY, task_of, with_history
from .transaction import Transaction

__all__ = ["Shape", "candidates", "domains_of", "objection"]


def candidates(tx: Transaction, query: Candidates) -> Chosen:
    """Filtered before the limit; `kept` and `eligible` add up to every READY task."""
    ready = ready_now(tx)
    if query.why == "retried":
        return _retried(tx, query, ready)
    kept: Counter[str] = Counter()
    allowed: list[Bucket] = []
    eligible = 0
    said: dict[Shape, str | None] = {}
    for bucket in ready.buckets:
        number = len(bucket.seqs)
        if not number:
            continue
        if bucket.shape not in said:
            said[bucket.shape] = objection(bucket.shape, query, ready.domains)
        rule = said[bucket.shape]
        if rule is not None:
            kept[rule] += number
            continue
        eligible += number
        allowed.append(bucket)
    tasks, following = _page(tx, query, allowed)
    return Chosen(tasks, following, dict(kept), eligible, tx.count(State.READY))


def _retried(tx: Transaction, query: Candidates, ready: Ready) -> Chosen:
    """The few that everybody here who can run them has failed; all others stay for that reason."""
    places = {uid: ready.places[uid] for uid in marked_elsewhere(tx) if uid in ready.places}
    buckets = {uid: ready.buckets[place >> SEQ_BITS] for uid, place in places.items()}
    said = {uid: objection(bucket.shape, query, ready.domains) for uid, bucket in buckets.items()}
    kept = Counter(rule for rule in said.values() if rule is not None)
    total = tx.count(State.READY)
    kept["failed_by_all_here"] = total - len(places)
    allowed: dict[tuple[Shape, int], Bucket] = {}
    for uid, rule in said.items():
        if rule is None:
            key = (buckets[uid].shape, buckets[uid].rank)
            allowed.setdefault(key, Bucket(*key)).seqs.append(places[uid] & SEQ)
    for bucket in allowed.values():
        bucket.seqs = array("q", sorted(bucket.seqs))
    tasks, following = _page(tx, query, [*allowed.values()])
    eligible = sum(rule is None for rule in said.values())
    return Chosen(tasks, following, {name: n for name, n in kept.items() if n}, eligible, total)


_URGENCY = 1 << 40
_ROWS = f"SELECT {WITHOUT_BODY} FROM task WHERE seq IN (SELECT value FROM json_each(?))"


def _page(
    tx: Transaction, query: Candidates, allowed: Sequence[Bucket]
) -> tuple[tuple[Task, ...], int | None]:
    after = divmod(query.after, _URGENCY) if query.after else None
    ascending = query.order == "most_urgent"
    found = first_of(allowed, ascending=ascending, after=after, limit=query.limit + 1)
    seqs = [seq for _, seq in found[: query.limit]]
    rows = tx.db.execute(_ROWS, (json.dumps(seqs),)).fetchall()
    tasks = {task.seq: with_history(tx, task) for task in map(task_of, rows)}
    rank, seq = found[query.limit - 1] if len(found) > query.limit else (0, None)
    following = None if seq is None else rank * _URGENCY + seq
    return tuple(tasks[seq] for seq in seqs), following
