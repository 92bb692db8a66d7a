"""Gives a new queue its node, and holds every later one to that node's name."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random

from ..clock import Clock, iso
from ..errors import BadSettings
from ..ulid import new_ulid
from .database import translated


def write_first_row(
    db: sqlite3.Connection, path: Path, *, name: str, clock: Clock, rng: Random, machine: str
) -> None:
    """The node's own row, under a first incarnation; one that is there stays as it is."""
    now = clock.now()
    incarnation = new_ulid(int(now.timestamp() * 1000), rng.randbytes(10))
    with translated(path):
        db.execute(
            "INSERT OR IGNORE INTO node (id, name, incarnation, generation, machine, state,"
            " created_at) VALUES (1, ?, ?, 0, ?, 'active', ?)",
            (name, incarnation, machine, iso(now)),
        )


def check_name(db: sqlite3.Connection, name: str | None) -> None:
    """A node keeps its name: tasks, transfers and the hub know it by that."""
    (known,) = db.execute("SELECT name FROM node").fetchone() or (None,)
    if known is None or known != (name or known):
        raise BadSettings(
            f"node.toml names this node {name}, its queue belongs to {known}; put the name back,"
            " or make a new home for a new node"
        )
