"""Lays the tasks of a graph out in levels: each below all that it waits for; pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Placed:
    """A task and its level, from 1; what waits for nothing inside the graph is on the first."""

    uid: str
    level: int


def levels_of(needs: Mapping[str, Sequence[str]]) -> tuple[Placed, ...]:
    """Each task one level below the lowest of those that it needs; what lies outside does not
    count. Tasks of a cycle, which no graph has, come last, on one level.
    """
    inside = {uid: [one for one in dict.fromkeys(some) if one in needs]
              for uid, some in needs.items()}  # fmt: skip
    below: dict[str, list[str]] = defaultdict(list)
    left = {uid: len(some) for uid, some in inside.items()}
    for uid, some in inside.items():
        for one in some:
            below[one].append(uid)
    level = {uid: 1 for uid, count in left.items() if count == 0}
    todo = deque(level)
    while todo:
        uid = todo.popleft()
        for one in below[uid]:
            left[one] -= 1
            if left[one] == 0:
                level[one] = 1 + max(level[need] for need in inside[one])
                todo.append(one)
    last = max(level.values(), default=0) + 1
    return tuple(Placed(uid, level.get(uid, last)) for uid in needs)
