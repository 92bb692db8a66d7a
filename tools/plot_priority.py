"""Draws how tasks grow urgent with time, from the very functions that order them, as plain SVG."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from agent_node.priority import (
    POINT,
    TIERS,
    USUAL_PACE,
    Turn,
    effective,
    standing,
    turn_of,
    urgency_of,
)

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "priority.svg"
HOUR_MS = 3_600_000
HOURS, LOW, HIGH = 24, -60, 100
LEFT, TOP, WIDTH, HEIGHT = 60, 20, 620, 400
STEP_MS = 5 * 60_000
FONT = 'font-family="sans-serif" font-size="12" fill="#404040"'


class Line(NamedTuple):
    """One task: what it is called, where it starts, how fast it ages, and when it is due."""

    name: str
    base: int
    pace: int
    colour: str
    due_h: float | None = None


LINES = (
    Line("P1", 5, USUAL_PACE, "#b03030"),
    Line("P5", 45, USUAL_PACE, "#305fb0"),
    Line("P10", 95, USUAL_PACE, "#606060"),
    Line("P10, boost 0.01", 95, 1, "#a0a0a0"),
    Line("P5, due after 20 h", 45, USUAL_PACE, "#2a8a4a", 20.0),
)


def main() -> int:
    """Write the picture; 0."""
    PAGE.write_text(picture(), encoding="utf-8")
    return 0


def picture() -> str:
    """The whole SVG: the scale with its tiers, and a line for each task."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 470" {FONT}>',
        "<title>Effective priority over a day of waiting</title>",
        '<rect width="860" height="470" fill="#ffffff"/>',
        *_scale(), *_tiers(), *(part for line in LINES for part in _line(line)), "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _x(hours: float) -> float:
    return LEFT + WIDTH * hours / HOURS


def _y(points: float) -> float:
    return TOP + HEIGHT * (HIGH - points) / (HIGH - LOW)


def _scale() -> list[str]:
    said = [_text(LEFT + WIDTH / 2, TOP + HEIGHT + 40, "hours since it came", "middle")]
    said += [_text(_x(hours), TOP + HEIGHT + 20, str(hours), "middle")
             for hours in range(0, HOURS + 1, 4)]  # fmt: skip
    for points in range(LOW, HIGH + 1, 20):
        said.append(_rule(_y(points), "#e0e0e0"))
        said.append(_text(LEFT - 8, _y(points) + 4, str(points), "end"))
    return said


def _tiers() -> list[str]:
    edges = [LOW, *(below for below, _ in TIERS), HIGH]
    names = [*(name for _, name in TIERS), "Background"]
    said = [_rule(_y(below), "#c08000", dashed=True) for below, _ in TIERS]
    for name, low, high in zip(names, edges[:-1], edges[1:], strict=True):
        said.append(_text(LEFT + 6, _y((low + high) / 2) + 4, name, "start", "#c08000"))
    return said


def _line(line: Line) -> list[str]:
    points = []
    last = 0.0
    for now in range(0, HOURS * HOUR_MS + 1, STEP_MS):
        urgency = 0
        if line.due_h is not None:
            urgency, _ = urgency_of(round(line.due_h * HOUR_MS), now)
        turn = turn_of(standing(line.base, urgency=urgency), line.pace, 0)
        last = max(effective(Turn(line.pace, turn), now) / POINT, LOW)
        points.append(f"{_x(now / HOUR_MS):.1f},{_y(last):.1f}")
    path = " ".join(points)
    return [
        f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"/>',
        _text(_x(HOURS) + 6, _y(last) + (0 if line.due_h is None else -6), line.name, "start",
              line.colour),
    ]  # fmt: skip


def _rule(y: float, colour: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="4 4"' if dashed else ""
    return (
        f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"{dash}/>'
    )


def _text(x: float, y: float, said: str, anchor: str, colour: str = "#404040") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{said}</text>'


if __name__ == "__main__":
    sys.exit(main())
