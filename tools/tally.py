"""Adds up what several runs of pytest found, and says it as one run of pytest says it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

WIDTH = 80
# In pytest's own order; what did not happen is left out, as there.
OUTCOMES = ("failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warnings", "error")
PLURAL = {"error": "errors"}
MINUTE_S = 60


@dataclass
class Tally:
    """What became of the tests of one run, or of several.

    `outcomes` has pytest's words; `ran`, `cannot`, `deselected` and `unlawful` are the lines of
    the table of tiers; `troubles` the lines of what failed; `cpu_s` is used by all its processes.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    ran: dict[str, Counter[str]] = field(default_factory=dict)
    cannot: Counter[str] = field(default_factory=Counter)
    deselected: Counter[str] = field(default_factory=Counter)
    unlawful: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    cpu_s: float = 0.0

    def add(self, other: Tally) -> None:
        """Count the other one in."""
        self.outcomes += other.outcomes
        for tier, count in other.ran.items():
            self.ran[tier] = self.ran.get(tier, Counter()) + count
        self.cannot += other.cannot
        self.deselected += other.deselected
        self.unlawful += other.unlawful
        self.troubles += other.troubles
        self.cpu_s += other.cpu_s

    def lines(self) -> list[str]:
        """Count first, then what could not run and why, then what nobody may skip."""
        ran = [f"ran     {tier:12} {told(count)}" for tier, count in sorted(self.ran.items())]
        cannot = [f"cannot  {reason} (tests: {n})" for reason, n in sorted(self.cannot.items())]
        later = [f"not now {tier:12} {n} deselected by markers; make soak runs the long ones"
                 for tier, n in sorted(self.deselected.items())]  # fmt: skip
        return ran + cannot + later + [f"FAILED  {line}" for line in self.unlawful]


def told(count: Counter[str]) -> str:
    """`12 passed, 1 skipped`, in that order, leaving out what did not happen."""
    return ", ".join(f"{count[word]} {word}" for word in ("passed", "failed", "skipped")
                     if count[word])  # fmt: skip


def write_tally(tally: Tally, file: Path) -> None:
    """As JSON, for whoever adds several up."""
    file.write_text(json.dumps(vars(tally)), encoding="utf-8")


def read_tally(file: Path) -> Tally | None:
    """What a run left behind; None: it left nothing, or nothing whole, so it did not end well."""
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return Tally(
        outcomes=Counter(said["outcomes"]),
        ran={tier: Counter(count) for tier, count in said["ran"].items()},
        cannot=Counter(said["cannot"]), deselected=Counter(said["deselected"]),
        unlawful=said["unlawful"], troubles=said["troubles"], cpu_s=said["cpu_s"],
    )  # fmt: skip


def closing(tally: Tally, took_s: float) -> list[str]:
    """Tiers, then what failed, then the one line at the end that people and tools look for."""
    lines = [ruled("tiers"), *tally.lines()]
    if tally.troubles:
        lines += [ruled("short test summary info"), *tally.troubles]
    counts = _counts(tally.outcomes) or "no tests ran"
    return [*lines, ruled(f"{counts} in {_duration(took_s)}")]


def ruled(text: str) -> str:
    """A line across the page, as pytest draws them."""
    return f" {text} ".center(WIDTH, "=")


def _counts(outcomes: Counter[str]) -> str:
    return ", ".join(_counted(word, outcomes[word]) for word in OUTCOMES if outcomes[word])


def _counted(word: str, number: int) -> str:
    return f"{number} {PLURAL.get(word, word) if number > 1 else word}"


def _duration(took_s: float) -> str:
    """`843.11s (0:14:03)`, the second form from a minute on."""
    minutes, seconds = divmod(int(took_s), MINUTE_S)
    clock = f" ({minutes // MINUTE_S}:{minutes % MINUTE_S:02}:{seconds:02})"
    return f"{took_s:.2f}s{clock if took_s >= MINUTE_S else ''}"


def summed(tallies: Iterable[Tally]) -> Tally:
    """All of them as one."""
    whole = Tally()
    for tally in tallies:
        whole.add(tally)
    return whole
