"""Measures what a hub costs while a hundred nodes have nothing to tell it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from .hub_far import FIXED
from .hub_fleet import Far, far_side, hub_process, names, write_fleet
from .machine import load
from .measuring import Place, Row
from .resting import cpu_s, tree_of

SETTLE_S = 10.0
# Each sensor once in the minute that is measured: health and rebalance five times as often as they
# would by themselves.
EVERY = {"every": "60s"}


def rest_rows(place: Place) -> Iterator[Row]:
    """CPU and resident memory of `arc up`, under `swift`: every link open, and heard."""
    window_s = place.size(60, 3)  # it looks around every two seconds
    count = place.size(100, 3)
    bare = [place.python, "-I", "-S", "-c", "pass"]
    state = place.folder / "hub" / ".arc"
    with far_side(state, bare, named=names(count)) as far:
        fleet = write_fleet(place.folder / "hub", _entries(far), policy="swift",
                            health=EVERY, rebalance=EVERY, router=EVERY)  # fmt: skip
        with hub_process(fleet) as pid:
            time.sleep(0.0 if place.tiny else SETTLE_S)
            before, began = cpu_s(pid), time.monotonic()
            time.sleep(window_s)
            took = time.monotonic() - began
            share = 100 * (cpu_s(pid) - before) / took
            if tree_of(pid) != [pid]:
                raise RuntimeError("a hub at rest has children, which were not counted")
            memory = resident_mb(pid)
    yield Row(
        "rest-cpu", f"hub at rest with {count} warm nodes, each sensor once in {window_s} s",
        share, None, "% of a core", share, 1.0, load=load(), more={"window, s": took},
    )  # fmt: skip
    yield Row("rest-memory", "resident memory of the same process", memory, None, "MB", memory,
              150.0, load=load())  # fmt: skip


def _entries(far: Far) -> list[dict[str, object]]:
    return [
        {"name": name, "host": "127.0.0.1", "port": port, "user": f"{FIXED}-{name}"}
        for name, port in far.ports.items()
    ]


def resident_mb(pid: int) -> float:
    """Everything it has in memory, also what it shares with others."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"{pid}: no VmRSS")
