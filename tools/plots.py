"""Measures what each rule of moving work costs and buys, and draws it for docs/policy.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median
from typing import cast

from arc.decisions.domains import Domain, Role
from arc.simulate.comparing import Compared, Figure, compare
from arc.simulate.engine import Run, jobs_in_order
from arc.simulate.policies import parse_policy
from arc.simulate.scene import INBOX, MS, Job, Kind, Place, Scene
from arc.simulate.wanted import Wanted, all_scenes, source_of
from tools.charts import Bar, Line, Point, bars, lines, steps

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "policy.json"
PAGE = ROOT / "docs" / "policy.md"
IMAGES = ROOT / "docs" / "img"
BEGIN, END = "<!-- figures: {} -->", "<!-- end of figures -->"
SEEDS, FEW, MANY = 12, 6, 40
MOVERS = ("swift", "central")
FOUR = ("none", "arc0", "swift", "central")
COLOUR = {"none": 0, "arc0": 1, "swift": 2, "central": 3}
RULES = (
    "arc0", "arc0:steal_from=P1", "arc0:idle_min=0s", "arc0:busy_over=0", "arc0:per_node=10",
    "arc0:per_cycle=30", "arc0:anyone_from=P5", "arc0:every=1m", "arc0:on_idle=true",
    "arc0:on_idle=true,idle_min=0s",
    "arc0:every=1m,busy_over=0", "arc0:every=1m,busy_over=0,steal_from=P1,idle_min=0s",
    "swift:hops=1", "swift:gain_min=2m", "swift:gain_min=0s", "swift", "central",
)  # fmt: skip
LOADS, SHARES, MOVES_S = (0.3, 0.5, 0.65, 0.8, 0.9), (0.1, 0.3, 0.6, 0.8, 1.0), (0.2, 1, 5, 20, 60)
HEADLINE_CASES = 300
FIFTY = 50

Told = dict[str, dict[str, float | None]]  # a figure's mean, low and high, by its name
Figures = dict[str, dict[str, Told] | dict[str, list[float]]]


def main() -> int:
    """Measure everything, write the figures, the pictures and the tables of the page; 0."""
    figures: Figures = {
        "four": told(compared(Wanted(seeds=SEEDS), FOUR)),
        "rules": told(compared(Wanted(seeds=SEEDS), RULES)),
        "backlog": told(compared(Wanted(seeds=MANY, backlog=120), FOUR)),
        **{f"load {load:g}": told(compared(Wanted(seeds=FEW, load=str(load), days=".5"), FOUR))
           for load in LOADS},
        **{f"portable {part:g}": told(compared(Wanted(seeds=FEW, portable=str(part), days=".5"),
                                               FOUR)) for part in SHARES},
        **{f"move {move:g}": told(compared(Wanted(seeds=FEW, days=".5"), MOVERS, move))
           for move in MOVES_S},
        "fifty": told(compared(Wanted(seeds=SEEDS, nodes=FIFTY), FOUR)),
        "headline": headline(),
    }  # fmt: skip
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    write(figures)
    return 0


def compared(wanted: Wanted, words: Sequence[str], move_s: float = 5.0) -> tuple[Compared, ...]:
    """These policies on this work, as `arc simulate` compares them."""
    policies = [replace(parse_policy(word), transfer_s=move_s) for word in words]
    return compare(policies, all_scenes(source_of(wanted, None), 1))


def told(some: Sequence[Compared]) -> dict[str, Told]:
    """What is drawn and written of each policy."""
    return {one.policy.name: {
        "wait_s": _told(one.wait_s["all"]), "p95_s": _told(one.wait_p95_s["all"]),
        "urgent_s": _told(one.wait_s["P1-P3"]), "to_central": _told(one.wait_to_bound),
        "idle": _told(one.idle_beside_work), "thefts": _told(one.thefts_per_task),
        "stranded_min": _told(one.stranded_min["all"]),
        "regret": _told(one.regret), "makespan": _told(one.makespan),
    } for one in some}  # fmt: skip


def _told(one: Figure | None) -> dict[str, float | None]:
    if one is None:
        return {"mean": None, "low": None, "high": None}
    return {"mean": round(one.mean, 4), "low": round(one.low, 4), "high": round(one.high, 4)}


def headline(cases: int = HEADLINE_CASES) -> dict[str, list[float]]:
    """How many minutes a node stands idle that ran dry at some moment between two routings.

    A neighbour has sixty tasks that it might do as well; the hub has more of its own work for it.
    """
    return {word: [round(_dry_minutes(seed, word), 3) for seed in range(cases)]
            for word in ("none", "arc0", "swift")}  # fmt: skip


def _dry_minutes(seed: int, word: str) -> float:
    dry_s = Random(f"headline {seed}").uniform(5.0, 1795.0)
    own, shared = Kind(domain="infrastructure"), Kind(domain="shared")
    jobs = [Job(number, 0, "iris", 900 * MS, shared, 8) for number in range(1, 61)]
    jobs.append(Job(61, 0, "forge", round(dry_s * MS), own, 5))
    if word != "swift":  # which would have had it at once
        jobs.append(Job(62, 1 * MS, INBOX, 900 * MS, own, 5))
    places = (Place("forge", 1, Role(("infrastructure",), ("shared",))),
              Place("iris", 1, Role(("research",), ("shared",))))  # fmt: skip
    domains = (Domain("infrastructure"), Domain("research"), Domain("shared"))
    ended = Run(Scene(places, jobs_in_order(jobs), domains), parse_policy(word)).to_the_end()
    starts = [ms / MS for node, ms in ended.starts.values() if node == "forge" and ms / MS >= dry_s]
    return (min(starts) - dry_s) / 60


# --- What is made of the figures ------------------------------------------------------------------


def write(figures: Figures) -> None:
    """The pictures, and the tables between the marks of the page."""
    IMAGES.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(figures), encoding="utf-8")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")


def with_tables(page: str, figures: Figures) -> str:
    """The page with its tables as these figures have them."""
    for name, render in TABLES.items():
        before, begin, rest = page.partition(BEGIN.format(name))
        _, end, after = rest.partition(END)
        if not end:
            raise ValueError(f"{PAGE}: there is no place for {name}")
        page = f"{before}{begin}\n{render(figures)}\n{END}{after}"
    return page


def of(figures: Figures, name: str) -> dict[str, Told]:
    """The figures of one comparison."""
    return cast("dict[str, Told]", figures[name])


def cell(found: Mapping[str, float | None], shown: Callable[[float], str]) -> str:
    """A figure with its interval, as the page has it."""
    mean, high = found["mean"], found["high"]
    if mean is None:
        return "-"
    return shown(mean) if high is None else f"{shown(mean)} ± {shown(high - mean)}"


def seconds(value: float) -> str:
    """Whole seconds."""
    return f"{value:.0f} s"


def percent(value: float) -> str:
    """Of one, in percents."""
    return f"{100 * value:.1f} %"


def minutes(value: float) -> str:
    """Whole node-minutes."""
    return f"{value:,.0f} min"


def ratio(value: float) -> str:
    """Two digits behind the point."""
    return f"{value:.2f}"


def table(figures: Figures, name: str, columns: Sequence[tuple[str, str, Callable[[float], str]]],
          ) -> str:  # fmt: skip
    """A line a policy, a column a figure."""
    head = ["| policy | " + " | ".join(title for title, _, _ in columns) + " |",
            "|---" * (len(columns) + 1) + "|"]  # fmt: skip
    return "\n".join(head + [
        f"| `{policy}` | " + " | ".join(cell(found[key], shown) for _, key, shown in columns) + " |"
        for policy, found in of(figures, name).items()
    ])  # fmt: skip


def headline_table(figures: Figures) -> str:
    """The minutes that a node stands dry, by policy."""
    found = cast("dict[str, list[float]]", figures["headline"])
    rows = [f"| `{word}` | {min(some):.1f} min | {median(some):.1f} min | {max(some):.1f} min |"
            for word, some in found.items()]  # fmt: skip
    return "\n".join(["| policy | least | median | most |", "|---|---|---|---|", *rows])


WAITS = (("mean wait", "wait_s", seconds), ("over central", "to_central", ratio),
         ("p95", "p95_s", seconds), ("P1 to P3", "urgent_s", seconds),
         ("idle beside work", "idle", percent), ("thefts a task", "thefts", ratio),
         ("in vain", "regret", percent))  # fmt: skip
LARGE = (*WAITS[:3], ("idle beside work", "idle", percent), ("stranded", "stranded_min", minutes),
         ("thefts a task", "thefts", ratio))  # fmt: skip
SPANS = (("makespan ÷ bound", "makespan", ratio), ("mean wait", "wait_s", seconds),
         ("idle beside work", "idle", percent), ("thefts a task", "thefts", ratio))  # fmt: skip
TABLES: dict[str, Callable[[Figures], str]] = {
    "four": lambda figures: table(figures, "four", WAITS),
    "rules": lambda figures: table(figures, "rules", WAITS),
    "backlog": lambda figures: table(figures, "backlog", SPANS),
    "fifty": lambda figures: table(figures, "fifty", LARGE),
    "headline": headline_table,
}


def _bars(figures: Figures, name: str, key: str, factor: float = 1.0) -> list[Bar]:
    found = []
    for policy, told_of in of(figures, name).items():
        mean, low, high = (factor * (told_of[key][part] or 0.0) for part in ("mean", "low", "high"))
        found.append(Bar(policy, mean, max(low, 0.0), high, COLOUR[policy.partition(":")[0]]))
    return found


def _lines(figures: Figures, what: str, xs: Sequence[float], words: Sequence[str], key: str,
           ) -> list[Line]:  # fmt: skip
    found = []
    for word in words:
        points = []
        for x in xs:
            one = of(figures, f"{what} {x:g}")[word][key]
            points.append(Point(x, one["mean"] or 0.0, one["low"] or 0.0, one["high"] or 0.0))
        found.append(Line(word, tuple(points), COLOUR[word]))
    return found


def _headline(figures: Figures) -> str:
    found = cast("dict[str, list[float]]", figures["headline"])
    said = {"none": "routing alone", "arc0": "arc0", "swift": "swift"}
    return steps("How long a node stands idle beside work that it could do", "minutes",
                 [(said[word], COLOUR[word], some) for word, some in found.items()])  # fmt: skip


PICTURES: dict[str, Callable[[Figures], str]] = {
    "policy-headline.svg": _headline,
    "policy-rules.svg": lambda figures: bars(
        "Mean wait with one rule changed at a time", "s", _bars(figures, "rules", "wait_s")),
    "policy-idle.svg": lambda figures: bars(
        "Time of all nodes spent idle beside work that they might run", "%",
        _bars(figures, "rules", "idle", 100.0)),
    "policy-load.svg": lambda figures: lines(
        "Mean wait by load", "work that comes, of what all nodes can do", "seconds",
        _lines(figures, "load", LOADS, FOUR, "wait_s"), logarithmic=True),
    "policy-portable.svg": lambda figures: lines(
        "Mean wait by how much of the work is portable", "share of the work that any node may do",
        "seconds", _lines(figures, "portable", SHARES, FOUR, "wait_s")),
    "policy-move.svg": lambda figures: lines(
        "Mean wait by how long a move takes", "seconds that a move takes", "seconds",
        _lines(figures, "move", MOVES_S, MOVERS, "wait_s")),
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
