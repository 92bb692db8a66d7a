"""Reads a fleet's history out of the hub's journal, beside the hub and without disturbing it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from .errors import NoHistory
from .history_file import opened
from .history_rows import (
    read_arrivals,
    read_decisions,
    read_feeds,
    read_life,
    read_moves,
    read_nodes,
    read_runs,
    read_samples,
    read_span,
    read_standing,
    read_stints,
    read_stranded,
    window_of,
)
from .history_seen import (
    Arrival,
    Depths,
    Feed,
    KeptSeen,
    MoveSeen,
    NodeKnown,
    RunSeen,
    Sample,
    Shares,
    Span,
    Spent,
    Standing,
    Stint,
    StrandedStretch,
)
from .history_shares import read_depths, read_shares, read_spent
from .history_slots import read_slots

__all__ = [
    "Arrival", "Depths", "Feed", "History", "KeptSeen", "MoveSeen", "NodeKnown", "RunSeen",
    "Sample", "Shares", "Span", "Spent", "Standing", "Stint", "StrandedStretch",
]  # fmt: skip

ROWS_MAX = 1_000_000  # of one answer


class History:
    """The history in one state folder (`FleetSettings.state`).

    It opens the journal for each question, read-only, and lets go of it again: so it may be used
    from any thread, holds nothing open, and finds a journal that was replaced. It never writes and
    never makes the hub wait; the hub need not run. Every question raises `NoHistory` where there is
    no journal or one that never kept any, and `StateBroken` where it cannot be read.

    All windows are [since, until) by the hub's clock and take zoned datetimes. Answers stand in
    the order of time; where there are more rows than `limit`, the newest are given.
    """

    def __init__(self, state: Path) -> None:
        self.path = state / "journal.db"

    def span(self) -> Span:
        """From the first to the last moment that anything is known of."""
        with opened(self.path) as reader:
            found = read_span(reader)
        if found is None:
            raise NoHistory(f"{self.path}: nothing has been written down yet",
                            where=str(self.path))  # fmt: skip
        return found

    def nodes(self) -> tuple[NodeKnown, ...]:
        """Every node that was ever looked at and is still remembered, by name, `inbox` too."""
        with opened(self.path) as reader:
            return read_nodes(reader)

    def slots(self) -> dict[str, int]:
        """How many slots each node said that it has, when it was heard last."""
        with opened(self.path) as reader:
            return read_slots(reader)

    def arrivals(
        self, since: datetime, until: datetime, *, limit: int = ROWS_MAX
    ) -> tuple[Arrival, ...]:
        """Tasks that came to the fleet, each once, however often it was moved since."""
        with opened(self.path) as reader:
            return read_arrivals(reader, window_of(since, until), limit)

    def standing(self, at: datetime, *, limit: int = ROWS_MAX) -> tuple[Standing, ...]:
        """Tasks that had come before this moment and were not over then: they waited, ran, or were
        held back.
        """
        with opened(self.path) as reader:
            return read_standing(reader, at, limit)

    def stints(
        self, since: datetime, until: datetime, *, nodes: Collection[str] | None = None,
        limit: int = ROWS_MAX,
    ) -> tuple[Stint, ...]:  # fmt: skip
        """Attempts of which any part lies in the window, in the order of their claims.

        `nodes`: of these alone; None: of all.
        """
        with opened(self.path) as reader:
            return read_stints(reader, window_of(since, until), nodes, limit)

    def life_of(self, uid: str) -> tuple[Arrival | None, tuple[Stint, ...], tuple[MoveSeen, ...]]:
        """How one task came (None: not remembered), its attempts and its moves."""
        with opened(self.path) as reader:
            return read_life(reader, uid)

    def samples(
        self, since: datetime, until: datetime, *, nodes: Collection[str] | None = None,
        limit: int = ROWS_MAX,
    ) -> tuple[Sample, ...]:  # fmt: skip
        """How nodes were: samples of which any part lies in the window, by `at`, not cut to it."""
        with opened(self.path) as reader:
            return read_samples(reader, window_of(since, until), nodes, limit)

    def stranded(
        self, since: datetime, until: datetime, *, limit: int = ROWS_MAX
    ) -> tuple[StrandedStretch, ...]:
        """Stranded stretches of which any part lies in the window, not cut to it."""
        with opened(self.path) as reader:
            return read_stranded(reader, window_of(since, until), limit)

    def moves(
        self, since: datetime, until: datetime, *, limit: int = ROWS_MAX
    ) -> tuple[MoveSeen, ...]:
        """Moves that were begun, those that were refused or are in doubt included."""
        with opened(self.path) as reader:
            return read_moves(reader, since, until, limit)

    def feeds(self, since: datetime, until: datetime) -> tuple[Feed, ...]:
        """Who fed whom: moves carried out, by both ends and kind, the most first."""
        with opened(self.path) as reader:
            return read_feeds(reader, since, until)

    def runs(
        self, since: datetime, until: datetime, *, sensor: str = "", limit: int = 10_000
    ) -> tuple[RunSeen, ...]:
        """Runs that began in the window, of one sensor or of all (""), with what they kept.

        Runs that news started and that found nothing to do are not written down.
        """
        with opened(self.path) as reader:
            return read_runs(reader, since, until, sensor=sensor, limit=limit)

    def decisions(self, run: int, *, limit: int = 2000) -> tuple[KeptSeen, ...]:
        """What this run said of the tasks that stay, as the sensor listed it."""
        with opened(self.path) as reader:
            return read_decisions(reader, run, limit)

    def depths(
        self, since: datetime, until: datetime, buckets: int, *,
        nodes: Collection[str] | None = None, deepest: int | None = None,
    ) -> Depths:  # fmt: skip
        """The queue of every node, in so many buckets of the same length (2000 at most).

        `nodes`: of these alone; `deepest`: of so many, those with the longest queues.
        """
        with opened(self.path) as reader:
            return read_depths(reader, since, until, buckets, nodes=nodes, deepest=deepest)

    def spent(self, since: datetime, until: datetime, buckets: int = 1) -> Spent:
        """What every node's attempts cost, by when they ended, in buckets of the same length."""
        with opened(self.path) as reader:
            return read_spent(reader, since, until, buckets)

    def shares(self, since: datetime, until: datetime, buckets: int) -> Shares:
        """How every node's time went by, in so many buckets of the same length (2000 at most)."""
        with opened(self.path) as reader:
            return read_shares(reader, since, until, buckets)
