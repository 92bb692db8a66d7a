"""Says which node may do which task, for routing and stealing alike; pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Domain:
    """One domain of fleet.yaml: by which skills, beginnings and words a task belongs to it."""

    name: str
    skills: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Role:
    """Whose work a node does: its own, what it may take when idle, and what it never touches."""

    owns: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
