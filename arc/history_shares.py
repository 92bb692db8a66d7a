"""Adds up how every node's time went by, and how long its queue was, in buckets of equal length."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from operator import add, sub
from typing import cast

from .errors import WrongUse
from .history_file import Reader
from .history_rows import UNTIL, window_of
from .history_seen import Depths, NodeDepths, NodeShares, Shares, Spent
from .journal_samples import LONGEST_S

BUCKETS_MAX = 2000
UNIT = 10**6
SCALE = 10**4  # a share or a mean is told in so many parts; `round` takes twice as long
# Every stretch of a sample, cut to the window: 0, the node runs something or has work waiting; 1,
# it does neither; 2, it would start nothing; 3, it did not answer: who never does is no less there.
_PIECES = f"""
SELECT node, max(at, ?1), min(until, ?2),
       CASE state WHEN 'running' THEN running = 0 AND pending = 0 WHEN 'unknown' THEN 3 ELSE 2 END,
       pending, running, slots
  FROM (SELECT s.node, s.at, {UNTIL} AS until, s.state, s.pending, s.running, s.slots
          FROM sample s WHERE s.at >= ?3 AND s.at < ?2)
 WHERE until > ?1
"""  # noqa: S608
# The longest queue of each node in the window.
_DEEPEST = f"""
SELECT node, max(pending)
  FROM (SELECT s.node, {UNTIL} AS until, s.pending
          FROM sample s WHERE s.at >= ?3 AND s.at < ?2 AND s.state <> 'unknown')
 WHERE until > ?1 GROUP BY node ORDER BY 2 DESC, node
"""  # noqa: S608
_STRANDED = """
SELECT node, max(since, ?1), min(until, ?2) FROM stranded_stretch WHERE until > ?1 AND since < ?2
"""
_COSTS = """
SELECT node, ended_at, cost FROM stint WHERE ended_at >= ?1 AND ended_at < ?2 AND cost > 0
"""

Piece = tuple[str, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Grid:
    """A window in buckets; times in milliseconds."""

    since: int
    until: int
    buckets: int

    @property
    def step(self) -> float:
        return (self.until - self.since) / self.buckets

    def place(self, at: int) -> int:
        """In which bucket a moment inside the window lies."""
        return min(int((at - self.since) / self.step), self.buckets - 1)

    def zeros(self) -> list[float]:
        return [0.0] * self.buckets


class _Sums:
    """One node's: milliseconds by kind, and of what waits and runs weighed with them."""

    __slots__ = ("kinds", "most", "running", "slots", "waiting")

    def __init__(self, grid: _Grid) -> None:
        self.kinds = (grid.zeros(), grid.zeros(), grid.zeros(), grid.zeros())
        self.waiting, self.running = grid.zeros(), grid.zeros()
        self.most, self.slots = [0] * grid.buckets, [0] * grid.buckets

    def known(self) -> list[float]:
        """How much of each bucket is known."""
        return list(map(add, map(add, self.kinds[0], self.kinds[1]), self.kinds[2]))


def grid_of(since: datetime, until: datetime, buckets: int) -> _Grid:
    """`WrongUse` where that is no window, or too many buckets."""
    first, last = window_of(since, until)
    if not 1 <= buckets <= BUCKETS_MAX:
        raise WrongUse(f"{buckets} buckets; 1 to {BUCKETS_MAX} are possible")
    if last <= first:
        raise WrongUse(f"a window from {since} to {until} has no length")
    return _Grid(first, last, buckets)


def read_shares(reader: Reader, since: datetime, until: datetime, buckets: int) -> Shares:
    """By name."""
    grid = grid_of(since, until, buckets)
    sums, stranded, costs = _add_up(reader, grid), _stranded(reader, grid), _costs(reader, grid)
    nodes = tuple(
        _shares_of(name, sums.get(name) or _Sums(grid), grid, stranded=stranded.get(name),
                   costs=costs.get(name))
        for name in sorted({*sums, *stranded, *costs})
    )  # fmt: skip
    return Shares(since, grid.step / 1000, nodes)


def read_depths(
    reader: Reader, since: datetime, until: datetime, buckets: int, *,
    nodes: Collection[str] | None = None, deepest: int | None = None,
) -> Depths:  # fmt: skip
    """By name. Which are the deepest is asked first: of the others nothing has to be added up."""
    grid, more = grid_of(since, until, buckets), 0
    if deepest is not None:
        every = [str(name) for name, _ in reader.rows(_DEEPEST, _asked(grid))
                 if nodes is None or name in nodes]  # fmt: skip
        nodes, more = every[:deepest], max(len(every) - deepest, 0)
    found = tuple(_depths_of(name, sums)
                  for name, sums in sorted(_add_up(reader, grid, nodes).items()))  # fmt: skip
    return Depths(since, grid.step / 1000, found, more)


def read_spent(reader: Reader, since: datetime, until: datetime, buckets: int) -> Spent:
    """By name."""
    grid = grid_of(since, until, buckets)
    costs = _costs(reader, grid)
    return Spent(since, grid.step / 1000, {
        name: tuple(round(cost, 6) for cost in costs[name]) for name in sorted(costs)})  # fmt: skip


def _asked(grid: _Grid) -> list[int]:
    return [grid.since, grid.until, grid.since - int(1000 * LONGEST_S)]


def _add_up(
    reader: Reader, grid: _Grid, nodes: Collection[str] | None = None
) -> dict[str, _Sums]:
    """The loop that a day of five hundred nodes goes through 150,000 times: no call in it."""
    found: dict[str, _Sums] = {}
    step, origin, last = grid.step, grid.since, grid.buckets - 1
    among = "" if nodes is None else f" AND node IN ({','.join('?' * len(nodes))})"
    for name, at, until, kind, pending, running, slots in cast(
        "list[Piece]", reader.each(_PIECES + among, [*_asked(grid), *(nodes or ())])
    ):
        sums = found.get(name)
        if sums is None:
            sums = found[name] = _Sums(grid)
        time, bucket = sums.kinds[kind], int((at - origin) / step)
        edge: float = origin + (bucket + 1) * step
        begun: float = at
        while True:
            part = (until if until < edge or bucket == last else edge) - begun
            time[bucket] += part
            sums.waiting[bucket] += part * pending
            sums.running[bucket] += part * running
            if pending > sums.most[bucket]:  # noqa: PLR1730 - a call to max takes longer
                sums.most[bucket] = pending
            if slots > sums.slots[bucket]:  # noqa: PLR1730
                sums.slots[bucket] = slots
            if until <= edge or bucket == last:
                break
            begun, bucket = edge, bucket + 1
            edge += step
    return found


def _stranded(reader: Reader, grid: _Grid) -> defaultdict[str, list[float]]:
    """Milliseconds by node and bucket."""
    found: defaultdict[str, list[float]] = defaultdict(grid.zeros)
    for node, since, until in reader.rows(_STRANDED, [grid.since, grid.until]):
        begun, end = float(cast("int", since)), cast("int", until)
        for bucket in range(grid.place(int(begun)), grid.place(end) + 1):
            edge = min(grid.since + (bucket + 1) * grid.step, end)
            found[str(node)][bucket] += max(edge - begun, 0.0)
            begun = max(begun, edge)
    return found


def _costs(reader: Reader, grid: _Grid) -> defaultdict[str, list[float]]:
    """Dollars by node and bucket, of attempts that ended in it."""
    found: defaultdict[str, list[float]] = defaultdict(grid.zeros)
    for node, at, cost in reader.rows(_COSTS, [grid.since, grid.until]):
        found[str(node)][grid.place(cast("int", at))] += cast("int", cost) / UNIT
    return found


def _shares_of(
    name: str, sums: _Sums, grid: _Grid, *, stranded: list[float] | None,
    costs: list[float] | None,
) -> NodeShares:  # fmt: skip
    """A stranded stretch takes its time from what the samples call idle, then from busy."""
    step = grid.step
    busy, idle, paused, _ = sums.kinds
    known = sums.known()
    apart = grid.zeros()
    if stranded is not None:
        from_idle = list(map(min, stranded, idle))
        from_busy = list(map(min, map(sub, stranded, from_idle), busy))
        busy, idle = list(map(sub, busy, from_busy)), list(map(sub, idle, from_idle))
        apart = list(map(add, from_idle, from_busy))
    return NodeShares(
        name, busy=_of(step, busy), idle=_of(step, idle), stranded=_of(step, apart),
        paused=_of(step, paused), unknown=_of(step, [step - time for time in known]),
        depth=_mean(sums.waiting, known), running=_mean(sums.running, known),
        cost_usd=tuple(round(cost, 6) for cost in costs) if costs else tuple(grid.zeros()),
    )  # fmt: skip


def _depths_of(name: str, sums: _Sums) -> NodeDepths:
    known = sums.known()
    return NodeDepths(
        name, mean=_mean(sums.waiting, known), running=_mean(sums.running, known),
        most=tuple(most if time else None for most, time in zip(sums.most, known, strict=True)),
        slots=tuple(slots if time else None for slots, time in zip(sums.slots, known, strict=True)),
    )  # fmt: skip


def _of(step: float, times: list[float]) -> tuple[float, ...]:
    """Shares of a bucket. A clock that was set back makes two samples of one time."""
    most, least = max(times), min(times)
    if not most and not least:
        return (0.0,) * len(times)
    if most > step or least < 0:
        times = [min(max(time, 0.0), step) for time in times]
    scale = SCALE / step
    return tuple([int(time * scale + 0.5) / SCALE for time in times])


def _mean(sums: list[float], known: list[float]) -> tuple[float | None, ...]:
    return tuple([int(total / time * SCALE + 0.5) / SCALE if time else None
                  for total, time in zip(sums, known, strict=True)])  # fmt: skip
