"""Measures the hub's cycle with three pages open and with none, and a long list of tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from statistics import median

from .hub_cycle import BUSY, MOVES, ROOM, fill
from .hub_fleet import (
    FIVE,
    ask_hub,
    far_side,
    five_nodes,
    hub_process,
    local_entries,
    names,
    write_fleet,
)
from .machine import load
from .measuring import Place, Row, percentile, quartiles
from .nodes import Pipe
from .page import entries
from .page_open import TASKS, Served, open_pages, page_process

GOAL = 1.05
SENSOR = "fleet-rebalance"
LINGER_S = 4.5  # the page asks the hub on for 3 s after the last page was closed
OPENED_S = 2.0
QUIET_S, LOOK_S, PATIENCE_S = 0.3, 0.02, 60.0
NO_PAGE = "the same hub in turns: its page's process is there, and no page open"
SELDOM = {"every": "1h"}  # what is measured is asked for; nothing comes in between by itself
Cycle = Callable[[], float]


def beside_rows(place: Place) -> Iterator[Row]:
    """A hundred nodes that have nothing to do, and nothing to move."""
    bare = [place.python, "-I", "-S", "-c", "pass"]
    count, folder = place.size(100, 3), place.folder / "far"
    with far_side(folder / ".arc", bare, named=names(count)) as far:
        fleet = write_fleet(folder, entries(far), health=SELDOM, rebalance=SELDOM)
        with hub_process(fleet), page_process(fleet) as page:
            with_pages, alone = _in_turns(place, page, lambda: _cycle_ms(fleet, moves=0), 40)
    yield _row("cycle-page-100", f"a cycle over {count} nodes with nothing to move, 3 pages open",
               with_pages, alone)  # fmt: skip


def tasks_rows(place: Place) -> Iterator[Row]:
    """Five real nodes, one of which has all the work: its list, and cycles of ten moves."""
    tasks = place.size(100_000, 1000)
    with ExitStack() as stack:
        nodes = stack.enter_context(five_nodes(place, {"": ["/bin/true"]}, slots=2, toml=ROOM))
        pipes = {name: stack.enter_context(nodes[name].owner()) for name in FIVE}
        pipes[BUSY].ask("pause", agent=BUSY, reason="it is measured", by="human:bench")
        fill(nodes[BUSY], tasks)
        fleet = write_fleet(place.folder / "hub", local_entries(nodes), router=SELDOM,
                            rebalance={**SELDOM, "idle_min": "0s"},
                            health={**SELDOM, "disk_over": "99%"})  # fmt: skip
        stack.enter_context(hub_process(fleet))
        page = stack.enter_context(page_process(fleet))
        listed = [_list_ms(page) for _ in range(place.rounds(31))]
        size = len(page.get(TASKS)) / 1000

        def cycle() -> float:
            _quiet(pipes)
            return _cycle_ms(fleet, moves=MOVES)

        with_pages, alone = _in_turns(place, page, cycle, 9)
    yield Row(
        "tasks-page-100k", f"the first page of {tasks:,} tasks on 5 real nodes, over HTTP",
        median(listed), None, "ms", median(listed), 1000.0, load=load(),
        more={"99 of 100, ms": percentile(listed, 99), "kB": size},
    )  # fmt: skip
    yield _row("cycle-page-moves", f"a cycle of {MOVES} moves, {tasks:,} READY on one of 5 real"
               " nodes, 3 pages open", with_pages, alone)  # fmt: skip


def _row(name: str, what: str, with_pages: Sequence[list[float]],
         alone: Sequence[list[float]]) -> Row:  # fmt: skip
    ratios = [median(mine) / median(other)
              for mine, other in zip(with_pages, alone, strict=True)]  # fmt: skip
    ours, floor = ([*chain(*side)] for side in (with_pages, alone))
    return Row(
        name, what, median(ours), median(floor), "ms", median(ours) / median(floor), GOAL,
        against=NO_PAGE, spread=quartiles(ratios), load=load(),
        more={"90 of 100 with pages, ms": percentile(ours, 90),
              "90 of 100 without, ms": percentile(floor, 90)},
    )  # fmt: skip


def _in_turns(
    place: Place, page: Served, cycle: Cycle, each: int
) -> tuple[list[list[float]], list[list[float]]]:
    """So many cycles with pages and as many without, again and again."""
    found: tuple[list[list[float]], list[list[float]]] = ([], [])
    for _ in range(3):
        cycle()
    for turn in range(place.rounds(6)):
        for is_open in (True, False) if turn % 2 else (False, True):
            with ExitStack() as stack:
                if is_open:
                    stack.enter_context(open_pages(page))
                time.sleep(OPENED_S if is_open else LINGER_S)
                found[not is_open].append([cycle() for _ in range(each)])
    return found


def _cycle_ms(fleet: Path, *, moves: int) -> float:
    """One whole cycle, asked for through the hub's socket."""
    began = time.perf_counter()
    found = ask_hub(fleet, "sensors.run", {"sensor": SENSOR}).data
    took = 1000 * (time.perf_counter() - began)
    if found["acted"] != moves:
        raise RuntimeError(f"{found['acted']} moved: {found['summary']}")
    return took


def _list_ms(page: Served) -> float:
    began = time.perf_counter()
    page.get(TASKS)
    return 1000 * (time.perf_counter() - began)


def _quiet(pipes: Mapping[str, Pipe]) -> None:
    """Until all but the busy one have run what they were given, and a moment longer."""
    give_up = time.monotonic() + PATIENCE_S
    while not all(pipe.ask("status")["idle"] is True
                  for name, pipe in pipes.items() if name != BUSY):  # fmt: skip
        if time.monotonic() > give_up:
            raise RuntimeError(f"no rest within {PATIENCE_S:.0f} s")
        time.sleep(LOOK_S)
    time.sleep(QUIET_S)
