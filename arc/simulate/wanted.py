"""Holds what a simulation was asked for, checked word by word, and makes its scenes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.text import safe_text
from arc.errors import WrongUse

from .drawing import Backlog, Streams, alike, domains_of, draw_backlog, draw_streams
from .lengths import parse_lengths
from .scene import Scene

if TYPE_CHECKING:
    from arc.settings import FleetSettings

NODES_MAX, SLOTS_MAX, SEEDS_MAX, DAYS_MAX = 1000, 64, 1000, 366.0
TASKS_MAX = 2_000_000  # of one scene
DRAWN = "seeds seed"  # what says something to whatever is drawn


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The words of the command as they were typed; empty and None: not said."""

    nodes: int | None = None
    slots: int | None = None
    load: str = ""
    portable: str = ""
    durations: str = ""
    days: str = ""
    at_hub: str = ""
    backlog: int | None = None
    share: str = ""
    told: bool = False
    describe: str = ""
    trace: str = ""
    from_history: str = ""
    until: str = ""
    seeds: int | None = None
    seed: int = 1


@dataclass(frozen=True)
class Source:
    """Where the scenes come from: in a sentence, as facts, and one scene for each seed."""

    sentence: str
    facts: JsonObject
    scene: Callable[[int], Scene]
    seeds: int
    warnings: tuple[str, ...] = ()
    fleet: FleetSettings | None = None  # whose limits are meant where a policy names none


def source_of(wanted: Wanted, fleet: FleetSettings | None) -> Source:
    """The one source that the words name; without any the fleet of fleet.yaml, where there is one.

    `WrongUse`: words that make no sense, or that go to another source than the one that is named.
    """
    named = [name for name in ("describe", "trace", "from_history") if getattr(wanted, name)]
    backlog = wanted.backlog is not None
    if len(named) > 1 or (named and backlog):
        raise WrongUse("simulate: one source at a time: --describe, --trace, --from-history or "
                       "--backlog")  # fmt: skip
    if backlog:
        return _backlog(wanted)
    if wanted.describe:
        from .describing import described

        return described(wanted)
    if wanted.trace:
        from .traces import traced

        return traced(wanted, fleet)
    if wanted.from_history:
        from .history_source import remembered

        return remembered(wanted, fleet)
    if wanted.nodes is None and fleet is not None and fleet.nodes:
        from .describing import drawn_for

        return drawn_for(wanted, fleet)
    return _stream(wanted)


def _stream(wanted: Wanted) -> Source:
    only(wanted, "a drawn stream", "nodes slots load portable durations days at_hub told "
         + DRAWN)
    nodes, slots = nodes_of(wanted), slots_of(wanted)
    load = share(wanted.load or ".65", "--load", most=2.0)
    portable = share(wanted.portable or ".6", "--portable")
    lengths = parse_lengths(wanted.durations or "agents")
    each = alike(nodes, slots, load=load, portable=portable, lengths=lengths)
    streams = Streams(each, domains_of(tuple(one.place for one in each)), days(wanted.days or "1"),
                      share(wanted.at_hub or "0", "--at-hub"), wanted.told)  # fmt: skip
    bounded(streams.tasks)
    facts: JsonObject = {
        "kind": "stream", "nodes": nodes, "slots": slots, "load": load, "portable": portable,
        "durations": lengths.word, "days": streams.days, "at_hub": streams.at_hub,
    }  # fmt: skip
    said = (f"{nodes} nodes of {slots} slot{'s' * (slots != 1)}, load {load:g}, {portable:.0%} "
            f"portable, durations {lengths.word}, "
            f"{streams.days:g} day{'s' * (streams.days != 1)}")  # fmt: skip
    return Source(said, facts, lambda seed: draw_streams(streams, seed), seeds_of(wanted))


def _backlog(wanted: Wanted) -> Source:
    only(wanted, "--backlog", "nodes slots portable durations backlog share " + DRAWN)
    backlog = Backlog(
        nodes_of(wanted), slots_of(wanted),
        counted(wanted.backlog or 0, "--backlog", TASKS_MAX),
        share(wanted.share or ".6", "--share"),
        share(wanted.portable or "1", "--portable"), parse_lengths(wanted.durations or "agents"),
    )  # fmt: skip
    facts: JsonObject = {
        "kind": "backlog", "nodes": backlog.nodes, "slots": backlog.slots, "tasks": backlog.tasks,
        "share": backlog.share, "portable": backlog.portable, "durations": backlog.lengths.word,
    }  # fmt: skip
    said = (f"{backlog.tasks} tasks that wait, {backlog.share:.0%} of them on one of "
            f"{backlog.nodes} nodes, {backlog.portable:.0%} portable, durations "
            f"{backlog.lengths.word}")  # fmt: skip
    return Source(said, facts, lambda seed: draw_backlog(backlog, seed), seeds_of(wanted))


# --- Words ----------------------------------------------------------------------------------------


def only(wanted: Wanted, source: str, names: str) -> None:
    """`WrongUse` where an option was typed that says nothing to this source."""
    usual = Wanted()
    odd = [name for name in Wanted.__dataclass_fields__
           if name not in names.split()
           and getattr(wanted, name) != getattr(usual, name)]  # fmt: skip
    if odd:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in odd)
        raise WrongUse(f"simulate: {flags} says nothing to {source}; leave it out")


def seeds_of(wanted: Wanted) -> int:
    """How many scenes are drawn; twelve unless said."""
    return counted(12 if wanted.seeds is None else wanted.seeds, "--seeds", SEEDS_MAX)


def nodes_of(wanted: Wanted) -> int:
    """How many nodes alike; five unless said."""
    return counted(5 if wanted.nodes is None else wanted.nodes, "--nodes", NODES_MAX)


def slots_of(wanted: Wanted) -> int:
    """What each runs at once; one unless said."""
    return counted(1 if wanted.slots is None else wanted.slots, "--slots", SLOTS_MAX)


def counted(value: int, name: str, most: int) -> int:
    """A whole number from 1 on."""
    if 1 <= value <= most:
        return value
    raise WrongUse(f"{name}: should lie between 1 and {most}, not {value}")


def share(text: str, name: str, *, most: float = 1.0) -> float:
    """A part of one, from `.65` or `65%`."""
    value = _number(text.removesuffix("%"), name, text)
    value = value / 100 if text.endswith("%") else value
    if 0 <= value <= most:
        return value
    raise WrongUse(f"{name}: should lie between 0 and {most:g}, as .65 or 65%, not "
                   f"{safe_text(text, 40)}")  # fmt: skip


def days(text: str) -> float:
    """So many days, from `1`, `.5` or `7`."""
    value = _number(text, "--days", text)
    if 0 < value <= DAYS_MAX:
        return value
    raise WrongUse(f"--days: should lie above 0 and within {DAYS_MAX:g}, not {safe_text(text, 40)}")


def _number(text: str, name: str, typed: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return value
    raise WrongUse(f"{name}: {safe_text(typed, 40)!r} is no number")


def bounded(tasks: float) -> None:
    """`WrongUse` where it would be more tasks than can be simulated."""
    if tasks > TASKS_MAX:
        raise WrongUse(f"simulate: that is about {tasks:,.0f} tasks; up to {TASKS_MAX:,} can be "
                       "simulated: fewer --nodes or --days")  # fmt: skip


def file_of(name: str, option: str, most: int) -> tuple[Path, bytes]:
    """A file that was named, whole; `WrongUse` where it cannot be read or is too long."""
    path = Path(name)
    try:
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        raise WrongUse(f"{option}: {safe_text(name, 200)}: {error.strerror}") from error
    if len(raw) > most:
        raise WrongUse(f"{option}: {safe_text(name, 200)}: longer than {most:,} bytes")
    return path, raw


def all_scenes(source: Source, first: int) -> Sequence[Scene]:
    """The scenes of the seeds from `first` on."""
    return [source.scene(first + number) for number in range(source.seeds)]
