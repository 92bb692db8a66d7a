"""Keeps waiting tasks that are alike, in the order they came and in the order of their turns."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace

from ..movability import Shape
from ..priority import Turn, key

Key = tuple[int, int, int, int]  # as `priority.key` gives it; the last of it is the `seq`


def _numbers() -> array[int]:
    return array("q")


@dataclass
class Bucket:
    """The tasks of one shape, one rank and one pace. Of one pace the order of the turns is the
    order in which they would be claimed, at every moment.
    """

    shape: Shape
    rank: int
    pace: int
    seqs: array[int] = field(default_factory=_numbers)  # as they came
    turns: array[int] = field(default_factory=_numbers)  # as they would be claimed,
    claims: array[int] = field(default_factory=_numbers)  # and the `seq` of each

    def fill(self, waiting: list[tuple[int, int]]) -> None:
        """All that it holds from now on, each its turn and its `seq`."""
        waiting.sort()
        self.turns = array("q", [turn for turn, _ in waiting])
        self.claims = array("q", [seq for _, seq in waiting])
        self.seqs = array("q", sorted(self.claims))

    def put(self, turn: int, seq: int) -> None:
        """One more, most often the last in both orders."""
        self.seqs.insert(bisect_left(self.seqs, seq), seq)
        place = self._place(turn, seq)
        self.turns.insert(place, turn)
        self.claims.insert(place, seq)

    def take(self, turn: int, seq: int) -> None:
        """This one is not here any more."""
        del self.seqs[bisect_left(self.seqs, seq)]
        place = self._place(turn, seq)
        del self.turns[place], self.claims[place]

    def _place(self, turn: int, seq: int) -> int:
        first = bisect_left(self.turns, turn)
        if first == len(self.turns) or self.turns[first] != turn:
            return first
        return bisect_left(self.claims, seq, first, bisect_right(self.turns, turn, first))

    def key_at(self, place: int, now_ms: int) -> Key:
        """What it sorts by that stands there, at this moment."""
        return key(Turn(self.pace, self.turns[place]), self.claims[place], now_ms)

    def beyond(self, after: Key | None, now_ms: int) -> int:
        """Where those begin that go behind `after` at this moment; None: from the start."""
        if after is None:
            return 0
        places = range(len(self.turns))
        return bisect_right(places, after, key=lambda place: self.key_at(place, now_ms))


def most_urgent(
    buckets: Sequence[Bucket], *, now_ms: int, after: Key | None, limit: int
) -> list[Key]:
    """The first of these tasks in the order in which they would be claimed at this moment.

    Looks at the first of each bucket, and then at no more than it gives.
    """
    ahead = [
        (bucket.key_at(place, now_ms), number, place)
        for number, bucket in enumerate(buckets)
        if (place := bucket.beyond(after, now_ms)) < len(bucket.turns)
    ]
    heapify(ahead)
    found: list[Key] = []
    while ahead and len(found) < limit:
        first, number, place = ahead[0]
        found.append(first)
        bucket, place = buckets[number], place + 1
        if place < len(bucket.turns):
            heapreplace(ahead, (bucket.key_at(place, now_ms), number, place))
        else:
            heappop(ahead)
    return found


def least_urgent(
    buckets: Iterable[Bucket], *, after: tuple[int, int] | None, limit: int
) -> list[tuple[int, int]]:
    """The last (rank, seq) of these, the last one first, beyond `after`; None: from the end.

    By what their P says alone, as stealing goes. Reads no more than `limit` of each bucket.
    """
    by_rank: dict[int, list[array[int]]] = {}
    for bucket in buckets:
        by_rank.setdefault(bucket.rank, []).append(bucket.seqs)
    found: list[tuple[int, int]] = []
    for rank in sorted(by_rank, reverse=True):
        if after is not None and rank > after[0]:
            continue
        beyond = after[1] if after is not None and after[0] == rank else None
        some = [seq for seqs in by_rank[rank] for seq in _slice(seqs, beyond, limit)]
        found += [(rank, seq) for seq in sorted(some, reverse=True)]
        if len(found) >= limit:
            break
    return found[:limit]


def _slice(seqs: array[int], beyond: int | None, limit: int) -> array[int]:
    end = len(seqs) if beyond is None else bisect_left(seqs, beyond)
    return seqs[max(0, end - limit) : end]
