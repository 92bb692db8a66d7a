"""Draws the demo: in place where a terminal looks on, as plain lines everywhere else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TextIO

from agent_node.text import safe_text

from .sight import UNDERWAY, Sight

COLOURS = {"READY": 36, "CLAIMED": 33, "RUNNING": 33, "RETRYING": 35, "COMPLETED": 32,
           "DEAD_LETTERED": 31, "CANCELLED": 90}
STATES = ("READY", "RUNNING", "RETRYING", "COMPLETED", "DEAD_LETTERED", "CANCELLED")
EVENTS_SHOWN = 8
BAR_MAX = 30


class Picture:
    """Where the demo shows itself; a terminal sees it change in place, all else gets lines."""

    def __init__(self, out: TextIO, environ: Mapping[str, str]) -> None:
        self._out = out
        self.in_place = out.isatty() and environ.get("TERM", "") not in ("", "dumb")
        self.colours = self.in_place and not environ.get("NO_COLOR")
        self._drawn = 0
        self._happened: list[str] = []

    def happened(self, seconds: float, text: str) -> None:
        """Something happened: a line of its own, or one of the picture's last lines."""
        line = f"{seconds:5.1f} s  {safe_text(text)}"
        self._happened.append(line)
        if not self.in_place:
            self._write(line + "\n")

    def draw(self, sight: Sight, seconds: float) -> None:
        """What is seen over what was seen before; nothing where lines are told one by one."""
        if not self.in_place:
            return
        size = shutil.get_terminal_size()
        lines = render(sight, seconds, self._happened, colours=self.colours)[: size.lines - 1]
        up = f"\x1b[{self._drawn}A\r" if self._drawn else ""
        body = "".join(f"{cut(line, size.columns - 1)}\x1b[K\n" for line in lines)
        self._write(f"{up}{body}\x1b[J")
        self._drawn = len(lines)

    def tell(self, text: str) -> None:
        """Below the picture, or the next line."""
        self._drawn = 0
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:
            # Nobody looks any more: the pipe is closed, or the terminal. The demo ends in order.
            self._out = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - till the end


def render(sight: Sight, seconds: float, happened: list[str], *, colours: bool) -> list[str]:
    """The picture as lines: states, agents with what they run, and what happened last."""
    lines = [f"Arc: node iris, {sight.daemon:<34} {seconds:5.1f} s", ""]
    for state in STATES:
        number = sight.under_way if state in UNDERWAY else sight.count(state)
        bar = paint("#" * min(number, BAR_MAX), state, colours=colours)
        lines.append(f"  {state.lower().replace('_', ' '):<14}{number:>3}  {bar}")
    for name, running, slots in sight.agents:
        mine = [f"      {safe_text(text)}" for text in sight.running_lines(name)]
        lines += ["", f"  {name}: {running} of {slots} slots", *(mine + [""] * slots)[:slots]]
    lines += ["", *(f"  {text}" for text in happened[-EVENTS_SHOWN:])]
    return lines


def paint(text: str, state: str, *, colours: bool) -> str:
    """The text in its state's colour."""
    return f"\x1b[{COLOURS[state]}m{text}\x1b[0m" if colours and text else text


def cut(line: str, width: int) -> str:
    """No line wraps, else the next picture starts too low; colours take no room."""
    shown, inside = 0, False
    for place, char in enumerate(line):
        inside = char == "\x1b" or (inside and not line[place - 1].isalpha())
        shown += not inside
        if shown > width:
            return line[:place] + ("\x1b[0m" if "\x1b" in line else "")
    return line
