"""Draws the life of a task from the table of state changes, as Mermaid and as a list."""

from __future__ import annotations

from collections.abc import Iterable

from agent_node.task import CHANGES, ENDED, State

Change = tuple[State, State]

MOVES = frozenset({State.ESCROW, State.HELD, State.MOVED})
ENDS = frozenset(ENDED)
# Nearly every state leads to these two; drawn as arrows they would hide all the others.
COLLECTORS = (State.CANCELLED, State.PARKED)


def render_states() -> str:
    """Three small drawings and two lists, in which every change of the table stands once."""
    life, moving, decided, collected = sorted_out()
    return "\n\n".join([
        "### By itself\n\n" + mermaid(life),
        "### When it moves to another node\n\n" + mermaid(moving),
        "### When a person decides\n\n" + mermaid(decided),
        "### What may be cancelled, and what may be parked\n\n" + listed(collected),
    ])


def sorted_out() -> tuple[list[Change], list[Change], list[Change], list[Change]]:
    """The table in four parts: by itself, by a move, by a person, and into a collector."""
    parts: tuple[list[Change], list[Change], list[Change], list[Change]] = ([], [], [], [])
    for old, allowed in CHANGES.items():
        for new in sorted(allowed, key=list(State).index):
            parts[part_of(old, new)].append((old, new))
    return parts


def part_of(old: State, new: State) -> int:
    """Where a change is drawn."""
    if old in ENDS and old is not State.FAILED:
        return 2
    if old in (State.PARKED, State.MOVED):
        return 2
    if new in COLLECTORS:
        return 3
    return 1 if MOVES & {old, new} else 0


def mermaid(changes: Iterable[Change]) -> str:
    """One drawing, which GitHub and most editors show as a picture."""
    lines = [f"    {old} --> {new}" for old, new in changes]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def listed(changes: list[Change]) -> str:
    """A line for each collector: from where it can be reached."""
    lines = []
    for collector in COLLECTORS:
        froms = ", ".join(f"`{old}`" for old, new in changes if new is collector)
        lines.append(f"- `{collector}` from {froms}")
    return "\n".join(lines)
