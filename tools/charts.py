"""Draws bars, lines and steps as plain SVG text: the same numbers, the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, LEFT, TOP = 860, 360, 46
ROOMY = 100  # below this a value has a digit behind its point
ROW = 15  # between two names beside each other
FONT = 'font-family="sans-serif" font-size="12" fill="#404040"'
# Okabe and Ito's colours, which people of every kind of sight can tell apart.
COLOURS = ("#555555", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00")


class Bar(NamedTuple):
    """One bar: what it says, how long it is, and from where to where the truth may lie."""

    name: str
    value: float
    low: float
    high: float
    colour: int = 0


class Point(NamedTuple):
    """One point of a line, with its interval."""

    x: float
    y: float
    low: float
    high: float


class Line(NamedTuple):
    """Points of one name, from left to right."""

    name: str
    points: tuple[Point, ...]
    colour: int = 0


def bars(title: str, unit: str, some: Sequence[Bar]) -> str:
    """Bars from the left, each with its value and a whisker over its interval."""
    most = _round_up(max(max(one.high, one.value) for one in some))
    height = TOP + 26 * len(some) + 40
    span = WIDTH - LEFT - 110
    parts = _grid_down(most, unit, span, height)
    for row, one in enumerate(some):
        y = TOP + 26 * row
        colour = COLOURS[one.colour]
        x, low, high = (LEFT + span * value / most for value in (one.value, one.low, one.high))
        parts += [
            _text(LEFT - 8, y + 14, one.name, "end"),
            f'<rect x="{LEFT}" y="{y + 2}" width="{x - LEFT:.1f}" height="17" fill="{colour}"/>',
            _rule(low, y + 10.5, high, y + 10.5, "#000000"), _rule(low, y + 7, low, y + 14),
            _rule(high, y + 7, high, y + 14),
            _text(max(x, high) + 6, y + 14, _said(one.value, unit), "start", colour),
        ]  # fmt: skip
    return _svg(title, height, parts)


def lines(
    title: str, across: str, up: str, some: Sequence[Line], *, logarithmic: bool = False
) -> str:
    """Lines with their intervals; `logarithmic`: upwards each step is ten times the one before."""
    every = [point for line in some for point in line.points]
    plane = _Plane(every, logarithmic=logarithmic)
    parts = plane.grid(across, up)
    names = _apart([plane.y(line.points[-1].y) + 4 for line in some])
    for line, name_y in zip(some, names, strict=True):
        colour = COLOURS[line.colour]
        path = " ".join(f"{plane.x(one.x):.1f},{plane.y(one.y):.1f}" for one in line.points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for one in line.points:
            x = plane.x(one.x)
            parts += [_rule(x, plane.y(one.low), x, plane.y(one.high), colour),
                      f'<circle cx="{x:.1f}" cy="{plane.y(one.y):.1f}" r="3" fill="{colour}"/>']
        last = line.points[-1]
        parts.append(_text(plane.x(last.x) + 8, name_y, line.name, "start", colour))
    return _svg(title, TOP + TALL + 46, parts)


def steps(title: str, across: str, some: Sequence[tuple[str, int, Sequence[float]]]) -> str:
    """How large a share of the values lies below each value: a name, a colour, and the values."""
    most = _round_up(max(max(values) for _, _, values in some))
    plane = _Plane([Point(most * part / 6, part / 6, 0, 1) for part in range(7)], logarithmic=False)
    parts = plane.grid(across, "share of cases")
    for row, (name, colour, values) in enumerate(some):
        ordered = sorted(values)
        path = [f"{plane.x(0):.1f},{plane.y(0):.1f}"]
        for rank, value in enumerate(ordered):
            x = plane.x(value)
            path += [f"{x:.1f},{plane.y(rank / len(ordered)):.1f}",
                     f"{x:.1f},{plane.y((rank + 1) / len(ordered)):.1f}"]  # fmt: skip
        parts.append(f'<polyline points="{" ".join(path)}" fill="none" '
                     f'stroke="{COLOURS[colour]}" stroke-width="2"/>')  # fmt: skip
        parts.append(_text(plane.x(most) + 8, plane.y(1) + 14 + 18 * row, name, "start",
                           COLOURS[colour]))  # fmt: skip
    return _svg(title, TOP + TALL + 46, parts)


TALL, RIGHT = 300, 130
LEFT_OF_PLANE = 70
DECADES = tuple(part * 10.0**size for size in range(6) for part in (1, 2, 5))


def _apart(places: Sequence[float]) -> list[float]:
    """The same places, moved down where one would be written over another."""
    found = [0.0] * len(places)
    last = 0.0
    for number in sorted(range(len(places)), key=lambda one: places[one]):
        found[number] = last = max(places[number], last + ROW)
    return found


class _Plane:
    """Where a pair of values lies on the picture."""

    def __init__(self, every: Sequence[Point], *, logarithmic: bool) -> None:
        self.logarithmic = logarithmic
        self.left, self.right = min(one.x for one in every), max(one.x for one in every)
        xs = sorted({one.x for one in every})
        near = (self.right - self.left) / 20  # marks that stand closer are written over each other
        self.marks = [x for at, x in enumerate(xs) if not at or x - xs[at - 1] > near]
        high = max(max(one.high, one.y) for one in every)
        if logarithmic:
            self.most = next(one for one in DECADES if one >= high)
            low = max(min(min(one.low, one.y) for one in every), 1.0)
            self.least = max(one for one in DECADES if one <= low)
        else:
            self.most, self.least = _round_up(high), 0.0

    def x(self, value: float) -> float:
        wide = WIDTH - LEFT_OF_PLANE - RIGHT
        return LEFT_OF_PLANE + wide * (value - self.left) / (self.right - self.left)

    def y(self, value: float) -> float:
        if self.logarithmic:
            value = max(value, self.least)
            share = log10(value / self.least) / log10(self.most / self.least)
        else:
            share = value / self.most
        return TOP + TALL * (1 - share)

    def grid(self, across: str, up: str) -> list[str]:
        marks = [self.most * part / 5 for part in range(6)]
        if self.logarithmic:
            marks = [one for one in DECADES if self.least <= one <= self.most]
        parts = [_text(LEFT_OF_PLANE, TOP - 10, up, "start")]
        for mark in marks:
            y = self.y(mark)
            parts += [_rule(LEFT_OF_PLANE, y, WIDTH - RIGHT, y, "#e0e0e0"),
                      _text(LEFT_OF_PLANE - 8, y + 4, f"{mark:g}", "end")]
        for value in self.marks:
            parts.append(_text(self.x(value), TOP + TALL + 18, f"{value:g}", "middle"))
        parts.append(_text((LEFT_OF_PLANE + WIDTH - RIGHT) / 2, TOP + TALL + 38, across, "middle"))
        return parts


def _grid_down(most: float, unit: str, span: float, height: float) -> list[str]:
    parts = []
    for part in range(6):
        x = LEFT + span * part / 5
        parts += [_rule(x, TOP, x, height - 36, "#e0e0e0"),
                  _text(x, height - 18, _said(most * part / 5, unit), "middle")]  # fmt: skip
    return parts


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" {FONT}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="12" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _said(value: float, unit: str) -> str:
    digits = 2 if 0 < value < 1 else 1 if value < ROOMY and value % 1 else 0
    return f"{value:.{digits}f} {unit}".strip()


def _round_up(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 4, 5, 6, 8 and ten times those, and so on."""
    size = 1e-6
    while True:
        for part in (1, 1.5, 2, 3, 4, 5, 6, 8):
            if part * size >= value:
                return part * size
        size *= 10


def _rule(x1: float, y1: float, x2: float, y2: float, colour: str = "#000000") -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
    )


def _text(x: float, y: float, said: str, anchor: str, colour: str = "#404040") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}">{escape(said)}</text>'
