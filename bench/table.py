"""Prints a run as a table, ratios first, and writes it as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .machine import Told
from .measuring import Row

SCHEMA = "arc.bench/1"


def render(rows: Sequence[Row]) -> str:
    """Count first, then a line a row: the ratio and its goal, then what was measured."""
    missed = [row for row in rows if not row.met]
    lines = [f"bench: {len(rows)} rows, {len(missed)} missed"]
    return "\n".join([*lines, *map(line_of, rows)])


def line_of(row: Row) -> str:
    """One row on one line, and what was measured beside it on lines of its own."""
    verdict = "ok    " if row.met else "MISSED"
    if row.goal is None:
        verdict = "      "
    goal = "" if row.goal is None else f"{'>=' if row.at_least else '<='} {row.goal:g}"
    floor = "" if row.floor is None else f" : {figure(row.floor)}"
    spread = "" if row.spread is None else f" [{row.spread[0]:.2f}, {row.spread[1]:.2f}]"
    head = f"  {verdict} {row.ratio:8.2f}  {goal:8}  {row.row:17} {figure(row.ours)}{floor}"
    more = [f"{' ' * 28}{name}: {figure(value)}" for name, value in row.more.items()]
    return "\n".join([f"{head} {row.unit}{spread}  {row.what}", *more])


def row_from(document: dict[str, Any]) -> Row:
    """The row again that another process of this bench wrote."""
    spread = document["spread"]
    return Row(**{name: value for name, value in document.items() if name != "met"}
               | {"spread": None if spread is None else (spread[0], spread[1])})  # fmt: skip


def figure(value: float | str) -> str:
    """A number as a person reads it: three digits that mean something."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def render_machine(told: Told) -> str:
    """The conditions, a line."""
    return "  " + ", ".join(f"{name} {value}" for name, value in told.items())


def write_json(path: Path, rows: Sequence[Row], told: Told) -> None:
    """The same facts for programs."""
    document = {
        "schema": SCHEMA,
        "machine": told,
        "missed": [row.row for row in rows if not row.met],
        "rows": [{**asdict(row), "met": row.met} for row in rows],
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
