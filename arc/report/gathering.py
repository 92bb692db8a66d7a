"""Gathers what a report tells: the fleet's history, and how it is now, if anybody can say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject

if TYPE_CHECKING:
    from arc.history import Feed, History, RunSeen, Shares, Stint, StrandedStretch
    from arc.history_seen import NodeShares

BUCKETS = 96
BADLY = frozenset({"failed", "interrupted", "parked", "unknown"})
BAD_MAX = 100
STRETCHES_MAX = 50
ROWS_MAX = 200_000  # of attempts, and of runs


@dataclass(frozen=True, kw_only=True)
class Reported:
    """Everything that a report tells, read at one moment."""

    fleet: str
    since: datetime
    until: datetime
    status: JsonObject | None  # None: nobody could say how the fleet is now
    trouble: str  # why not; "": somebody could
    shares: Shares
    stretches: tuple[StrandedStretch, ...]  # the longest
    stranded_s: dict[str, float]  # by node
    by_rule: dict[str, float]  # stranded seconds
    feeds: tuple[Feed, ...]
    kept: dict[str, int]  # tasks that stayed, by rule
    runs: tuple[RunSeen, ...]
    ended: dict[str, Counter[str]]  # by node: how attempts ended
    bad: tuple[Stint, ...]  # the newest that ended badly
    cut: tuple[str, ...]  # what of it is missing, in sentences

    @property
    def nodes(self) -> tuple[NodeShares, ...]:
        """Those that were stranded the longest first."""
        return tuple(sorted(self.shares.nodes,
                            key=lambda one: (-self.stranded_s.get(one.node, 0.0), one.node)))


def gathered(
    history: History, fleet: str, since: datetime, until: datetime, *,
    status: JsonObject | None, trouble: str,
) -> Reported:  # fmt: skip
    """What the history of this time holds; `NoHistory` where there is none."""
    stranded = history.stranded(since, until)
    by_node: Counter[str] = Counter()
    by_rule: Counter[str] = Counter()
    for one in stranded:
        seconds = one.seconds_in(since, until)
        by_node[one.node] += seconds  # type: ignore[assignment]
        by_rule[one.rule or one.cause] += seconds  # type: ignore[assignment]
    runs = history.runs(since, until, limit=ROWS_MAX)
    stints = history.stints(since, until, limit=ROWS_MAX)
    kept: Counter[str] = Counter()
    for run in runs:
        kept.update(run.kept)
    ended: dict[str, Counter[str]] = {}
    bad: list[Stint] = []
    for stint in stints:
        if stint.ended_at is not None:
            ended.setdefault(stint.node, Counter())[stint.outcome] += 1
            if stint.outcome in BADLY:
                bad.append(stint)
    return Reported(
        fleet=fleet, since=since, until=until, status=status, trouble=trouble,
        shares=history.shares(since, until, BUCKETS),
        stretches=tuple(sorted(stranded, key=lambda one: -one.seconds)[:STRETCHES_MAX]),
        stranded_s=dict(by_node), by_rule=dict(by_rule), feeds=history.feeds(since, until),
        kept=dict(kept), runs=runs, ended=ended, bad=tuple(bad[-BAD_MAX:]),
        cut=tuple(f"only the newest {ROWS_MAX:,} {name} are counted"
                  for name, rows in (("attempts", stints), ("runs", runs))
                  if len(rows) >= ROWS_MAX),
    )  # fmt: skip
