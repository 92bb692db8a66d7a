"""Holds what a run of chaos came to, and tells it to people and to machines."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass
class Report:
    """What a run of chaos came to."""

    seed: str
    nodes: int
    policy: str
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    back: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # additions nobody answered for
    attempts: int = 0
    interrupted: int = 0
    done: int = 0
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # what did not come to its end, and why
    settled_by_hand: Counter[str] = field(default_factory=Counter)
    moved: int = 0
    quiet_s: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.lost or self.duplicated or self.unexpected or self.stuck or self.broken
                    or self.failed)  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        back = {
            name: {"times": len(took), "median_s": round(median(took), 2),
                   "longest_s": round(max(took), 2)}
            for name, took in sorted(self.back.items())
        }  # fmt: skip
        return {**vars(self), "clean": self.clean, "back": back}


def told(report: Report) -> str:
    """The report for people."""
    lines = [
        f"chaos: {report.seconds / 60:.1f} minutes, {report.nodes} nodes, policy {report.policy}",
        f"  seed          {report.seed}",
        f"  faults        {report.faults.total()}: {by_count(report.faults)}",
        f"  acknowledged  {report.acknowledged}",
        f"  done          {report.done}",
        f"  lost          {len(report.lost)}",
        f"  duplicated    {len(report.duplicated)}",
        f"  unexpected    {len(report.unexpected)}",
        f"  stuck         {len(report.stuck)}",
        f"  tracebacks    {len(report.broken)}",
        f"  failed        {len(report.failed)}",
        f"  attempts      {report.attempts}, of them {report.interrupted} cut off",
        f"  moved         {report.moved} times from one queue to another",
        f"  not answered  {by_count(report.refused) or 'none'}",
        f"  by a person   {by_count(report.settled_by_hand) or 'none'}",
        f"  all had ended {report.quiet_s:.1f} s after the last fault",
    ]
    lines += [f"  back after {name:<20} {one['times']} times, median {one['median_s']} s, "
              f"longest {one['longest_s']} s"
              for name, one in report.as_json()["back"].items()]  # fmt: skip
    wrong = [*report.failed, *report.lost, *report.duplicated, *report.unexpected, *report.stuck,
             *report.broken]  # fmt: skip
    return "\n".join([*lines, *(f"  WRONG {one}" for one in wrong[:50])])


def by_count(counts: Counter[str]) -> str:
    """Each with its count, in the order of their names."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
