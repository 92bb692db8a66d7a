"""Finds READY tasks that may move, and counts the rule that keeps each of the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from ..movability import Shape, domains_of, objection
from ..queries import Candidates, Chosen
from ..task import State, Task
from .buckets import Bucket, least_urgent, most_urgent
from .care import marked_elsewhere
from .live import PageEnd
from .ready import Ready, ready_now
from .rows import WITHOUT_BODY, task_of, with_history
from .transaction import Transaction
from .turns import milliseconds

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
    places = {uid: ready.find(uid) for uid in marked_elsewhere(tx) if uid in ready.places}
    buckets = {uid: ready.buckets[place.number] for uid, place in places.items()}
    said = {uid: objection(bucket.shape, query, ready.domains) for uid, bucket in buckets.items()}
    kept = Counter(rule for rule in said.values() if rule is not None)
    total = tx.count(State.READY)
    kept["failed_by_all_here"] = total - len(places)
    allowed: dict[int, Bucket] = {}
    for uid, rule in said.items():
        if rule is None:
            number, turn, seq = places[uid]
            like = buckets[uid]
            few = allowed.setdefault(number, Bucket(like.shape, like.rank, like.pace))
            few.put(turn, seq)
    tasks, following = _page(tx, query, [*allowed.values()])
    eligible = sum(rule is None for rule in said.values())
    return Chosen(tasks, following, {name: n for name, n in kept.items() if n}, eligible, total)


_URGENCY = 1 << 40
_PAGES_MAX = 256  # whose ends are remembered; who asks for more than these begins anew
_ROWS = f"SELECT {WITHOUT_BODY} FROM task WHERE seq IN (SELECT value FROM json_each(?))"


def _page(
    tx: Transaction, query: Candidates, allowed: Sequence[Bucket]
) -> tuple[tuple[Task, ...], int | None]:
    find = _as_claimed if query.order == "most_urgent" else _least_urgent
    seqs, following = find(tx, query, allowed)
    rows = tx.db.execute(_ROWS, (json.dumps(seqs),)).fetchall()
    tasks = {task.seq: with_history(tx, task) for task in map(task_of, rows)}
    return tuple(tasks[seq] for seq in seqs), following


def _least_urgent(
    tx: Transaction, query: Candidates, allowed: Sequence[Bucket]
) -> tuple[list[int], int | None]:
    after = divmod(query.after, _URGENCY) if query.after else None
    found = least_urgent(allowed, after=after, limit=query.limit + 1)
    rank, seq = found[query.limit - 1] if len(found) > query.limit else (0, None)
    following = None if seq is None else rank * _URGENCY + seq
    return [seq for _, seq in found[: query.limit]], following


def _as_claimed(
    tx: Transaction, query: Candidates, allowed: Sequence[Bucket]
) -> tuple[list[int], int | None]:
    """All pages of one question are of the moment of the first, or some would stand on none."""
    end = tx.live.pages.get(query.after) or PageEnd(milliseconds(tx.now), None)
    found = most_urgent(allowed, now_ms=end.at_ms, after=end.last, limit=query.limit + 1)
    following = None
    if len(found) > query.limit:
        following = _remember(tx, PageEnd(end.at_ms, found[query.limit - 1]))
    return [seq for *_, seq in found[: query.limit]], following


def _remember(tx: Transaction, end: PageEnd) -> int:
    """The number by which the next page is asked for; nothing that was drawn before."""
    pages, number = tx.live.pages, tx.rng.getrandbits(62) + 1
    if len(pages) >= _PAGES_MAX:
        del pages[next(iter(pages))]
    pages[number] = end
    return number
