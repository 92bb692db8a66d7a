"""Measures how soon the operator's commands have answered, with a hub running."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from statistics import median

from .hub_fleet import five_nodes, hub_process, local_entries, write_fleet
from .machine import load
from .measuring import Place, Row, in_turns, milliseconds, ratio
from .starting import run_once

AGAINST = "python -c 'import typer', the same interpreter"


def demo_rows(place: Place) -> Iterator[Row]:
    """From the start of `arc demo` to its first line of a stolen task, over real SSH."""
    took = [_first_move_s() for _ in range(place.rounds(3))]
    yield Row("demo-first-move", "arc demo, from its start to the first task that moved",
              median(took), None, "s", median(took), 5.0, load=load(),
              more={"slowest, s": max(took)})  # fmt: skip


def _first_move_s() -> float:
    began = time.monotonic()
    demo = subprocess.Popen([sys.executable, "-u", "-m", "arc", "demo"], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)  # fmt: skip
    assert demo.stdout is not None
    try:
        if not any("  stolen  " in line for line in demo.stdout):
            raise ChildProcessError("the demo ended before anything moved")
        return time.monotonic() - began
    finally:
        demo.terminate()
        demo.communicate(timeout=60)


def cli_rows(place: Place) -> Iterator[Row]:
    """From the start of the process to its end, page cache warm; five real nodes behind the hub."""
    with five_nodes(place, {"": ["/bin/true"]}, slots=1) as nodes:
        fleet = write_fleet(place.folder / "hub", local_entries(nodes))
        with hub_process(fleet):
            floor = [sys.executable, "-c", "import typer"]
            arc = [sys.executable, "-m", "arc", "--fleet", str(fleet)]
            commands = (floor, [*arc, "--help"], [*arc, "status", "--json"], [*arc, "status"])
            for argv in commands * 3:
                run_once([*argv])
            bare, helped, status, text = in_turns(
                place.rounds(41), *[milliseconds(partial(run_once, [*argv])) for argv in commands]
            )
    for name, words, took in (("arc-help", "arc --help", helped),
                              ("arc-status", "arc status --json, five nodes", status)):  # fmt: skip
        middle, spread = ratio(took, bare)
        more: dict[str, float | str] = {"as text, ms": median(text)} if took is status else {}
        yield Row(name, f"{words}, from start to end of the process", median(took), median(bare),
                  "ms", middle, 2.0, against=AGAINST, spread=spread, load=load(),
                  more=more)  # fmt: skip
