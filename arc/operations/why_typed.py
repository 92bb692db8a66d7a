"""Says what to type for other limits: the section of fleet.yaml in one line, as it has to stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from arc.config import mark, read_text
from arc.decisions.answers import Way
from arc.decisions.changes import Change
from arc.errors import ArcError

SECTION = "rebalance"
INSTEAD = f"  # in place of the {SECTION}: that is there"


def typed_in_one_line(ways: Sequence[Way], file: Path) -> tuple[Way, ...]:
    """The same ways; of the limits in each the first has the whole line to type, the others none.

    A section stands in fleet.yaml once, so its line has all that it says there already.
    """
    said = _said_in(file) if any(_limits(way) for way in ways) else None
    return tuple(_in_one_line(way, said) for way in ways)


def _in_one_line(way: Way, said: Mapping[str, str] | None) -> Way:
    limits = _limits(way)
    if not limits:
        return way
    whole = {**(said or {}), **dict(one.setting for one in limits)}
    line = ", ".join(f"{key}: {value}" for key, value in whole.items())
    command = f"fleet.yaml: {SECTION}: {{{line}}}" + (INSTEAD if said is not None else "")
    typed = {id(one): command if one is limits[0] else "" for one in limits}
    return replace(way, changes=tuple(
        replace(one, command=typed.get(id(one), one.command)) for one in way.changes
    ))  # fmt: skip


def _limits(way: Way) -> list[Change]:
    return [one for one in way.changes if one.kind == "limit"]


def _said_in(file: Path) -> dict[str, str] | None:
    """The section's keys with their values as they are written; None: there is no such section."""
    try:
        marked = mark(read_text(file), file)
    except ArcError:  # whoever may not read it is told of what changes alone
        return None
    if (SECTION,) not in marked.keys:
        return None
    keys = [loc for loc in marked.keys if loc[:-1] == (SECTION,)]
    spans = {str(loc[-1]): marked.values[loc] for loc in keys}
    return {key: " ".join(marked.text[at.start : at.end].split()) for key, at in spans.items()}
