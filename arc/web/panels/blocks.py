"""Lays attempts into rows of a lane, and joins those that would be narrower than a pixel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject, JsonValue
from arc.history_seen import Stint

from .asked import Window

if TYPE_CHECKING:
    from arc.history import History

STINTS_MAX = 60_000
BLOCKS_MAX = 1500  # of all lanes together
ROWS_MAX = 4  # drawn above one another; further ones share the last row
SEVERAL = -2
MIXED, HIDING = 4, 64  # so many times wider than a pixel: kinds, and then ends, are joined too
BAD = frozenset({"failed", "interrupted", "parked", "unknown"})


@dataclass(slots=True)
class Block:
    """One or several attempts that are drawn as one; of one that failed and others it is that."""

    start: float
    end: float
    row: int
    stint: Stint
    kind: str | None  # None: of several
    count: int = 1
    cost: Decimal | None = None

    def as_json(self, kinds: Mapping[str, int]) -> list[JsonValue]:
        """`[start, end, row, kind, uid, outcome, attempts, cost, priority, error]`; of the kind its
        number, -1 for none, -2 for several.
        """
        one = self.stint
        return [self.start, self.end, self.row,
                SEVERAL if self.kind is None else kinds.get(self.kind, -1), one.uid,
                one.outcome, self.count, None if self.cost is None else float(self.cost),
                one.priority, one.error_kind]  # fmt: skip


def kinds_of(history: History, window: Window, stints: Sequence[Stint]) -> dict[str, str]:
    """By uid what colour its blocks have: its domain, else its first skill; "": it has neither."""
    kinds = {one.uid: one.domain or "" for one in stints}
    if all(kinds.values()):
        return kinds
    before = timedelta(seconds=window.seconds)
    for one in history.arrivals(window.since - before, window.until, limit=STINTS_MAX):
        if kinds.get(one.uid) == "" and one.skills:
            kinds[one.uid] = one.skills[0]
    return kinds


def blocks_of(
    ran: Mapping[str, Sequence[Stint]], window: Window, *, width: int, domains: Sequence[str],
    kinds: Mapping[str, str],
) -> dict[str, JsonObject]:  # fmt: skip
    """`rows` and `blocks` of each node; the narrower the picture, the more is joined."""
    places = {name: place for place, name in enumerate(domains)}
    wider = 1
    while True:
        pixel = window.seconds / width * wider
        lanes = {node: Lane(window, kinds, pixel, wider) for node in ran}
        found = {node: lanes[node].blocks(stints) for node, stints in ran.items()}
        if sum(map(len, found.values())) <= BLOCKS_MAX or pixel >= window.seconds:
            break
        wider *= 2
    return {
        node: {"rows": 1 + max((block.row for block in blocks), default=0),
               "ran": len(ran[node]),
               "blocks": [block.as_json(places) for block in blocks]}
        for node, blocks in found.items()
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lane:
    """How one lane is laid out."""

    window: Window
    kinds: Mapping[str, str]
    pixel: float
    wider: int  # than it is drawn

    def blocks(self, stints: Sequence[Stint]) -> list[Block]:
        """Each attempt in the first row that is free then, beside what it may be joined with."""
        rows: list[Block] = []  # the last block of each row
        done: list[Block] = []
        for one in stints:
            start = self.window.after(max(one.started_at or one.claimed_at, self.window.since))
            end = self.window.after(min(one.ended_at or self.window.until, self.window.until))
            place = next((n for n, last in enumerate(rows) if last.end <= start), len(rows))
            row = min(place, ROWS_MAX - 1)
            block = Block(start, max(end, start), row, one, self.kinds[one.uid], cost=one.cost_usd)
            if row < len(rows) and self._joins(rows[row], block):
                _join(rows[row], block)
                continue
            done.append(block)
            rows[row : row + 1] = [block]
        return done

    def _joins(self, last: Block, one: Block) -> bool:
        """Whether both are too narrow to be told apart. What went wrong is not joined with what
        went well until there is no other way, and then the whole block is shown as bad.
        """
        if one.start - last.end > self.pixel:
            return False
        if last.kind != one.kind and self.wider < MIXED:
            return False
        if (last.stint.outcome in BAD) != (one.stint.outcome in BAD) and self.wider < HIDING:
            return False
        return min(one.end - one.start, last.end - last.start) < 1.5 * self.pixel


def _join(last: Block, one: Block) -> None:
    last.end, last.count = max(last.end, one.end), last.count + 1
    if last.kind != one.kind:
        last.kind = None
    if one.stint.outcome in BAD and last.stint.outcome not in BAD:
        last.stint = one.stint
    if one.cost is not None:
        last.cost = (last.cost or Decimal(0)) + one.cost
