"""Measures how soon the operator's commands have answered, with a hub running."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from statistics import median

from .hub_fleet import five_nodes, hub_process, local_entries, write_fleet
from .machine import load
from .measuring import Place, Row, in_turns, milliseconds, ratio
from .starting import run_once

AGAINST = "python -c 'import typer', the same interpreter"


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
