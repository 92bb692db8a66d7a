"""Measures what a node costs while it has nothing to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from agent_node.zygote import SPARES

from .machine import load
from .measuring import Place, Row
from .nodes import Node, report_of

MINUTE_S = 60.0
SETTLE_S = 3.0
WHOLE_S = 20.0


def tree_of(root: int) -> list[int]:
    """This process and all its descendants: the daemon, its zygotes, their spare shims."""
    return [pid for generation in generations_of(root) for pid in generation]


def generations_of(root: int) -> list[list[int]]:
    """The same by how far they descend from it: itself, its children, theirs, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            children.setdefault(parent_of(int(entry.name)), []).append(int(entry.name))
    found = [[root]]
    while below := [pid for parent in found[-1] for pid in children.get(parent, [])]:
        found.append(below)
    return found


def whole_tree(daemon: int) -> list[int]:
    """The same once the zygote has its spares, forked after the node says idle, and they rest.

    A spare that rehearses has a child for a moment, which counted is no spare.
    """
    give_up = time.monotonic() + WHOLE_S
    while list(map(len, found := generations_of(daemon))) != [1, 1, SPARES]:
        if time.monotonic() > give_up:
            sizes = ", ".join(str(len(one)) for one in found)
            raise RuntimeError(f"processes by descent {sizes} instead of 1, 1, {SPARES} "
                               f"after {WHOLE_S} s")  # fmt: skip
        time.sleep(0.05)
    return [pid for generation in found for pid in generation]


def parent_of(pid: int) -> int:
    """0 for a process that is gone by now."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def pss_kb(pid: int) -> int:
    """Its memory, each shared page divided among those who share it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise LookupError(f"{pid}: no Pss")


def cpu_s(pid: int) -> float:
    """Seconds on a core so far, user and system, in nanoseconds and not in ticks."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((one / "schedstat").read_text().split()[0]) for one in threads) / 1e9


def idle_rows(place: Place) -> Iterator[Row]:
    """Memory and CPU of one idle node, a minute long; half of it when it has to be quick."""
    window_s = place.size(30 if place.quick else 60, 1)
    node = Node(place, "iris", ["/bin/true"], slots=2)
    with node.running() as daemon:
        while not report_of(node.home).get("idle"):
            time.sleep(0.1)
        tree = whole_tree(daemon)
        time.sleep(0.0 if place.tiny else SETTLE_S)
        before, began = {pid: cpu_s(pid) for pid in tree}, time.monotonic()
        time.sleep(window_s)
        took = time.monotonic() - began
        if sorted(whole_tree(daemon)) != sorted(tree):
            raise RuntimeError("the processes of an idle node changed while it was measured")
        spent_ms = {pid: 1000 * (cpu_s(pid) - before[pid]) * MINUTE_S / took for pid in tree}
        memory = {pid: pss_kb(pid) / 1024 for pid in tree}
    total_ms, total_mb = sum(spent_ms.values()), sum(memory.values())
    rest = len(tree) - 2
    yield Row(
        "idle-cpu", f"CPU of an idle daemon, its zygote and {rest} spare shims, a minute",
        total_ms, None, "ms/min", total_ms, 50.0, load=load(),
        more={"window, s": took, "daemon, ms/min": spent_ms[daemon]},
    )  # fmt: skip
    yield Row(
        "idle-memory", "sum of Pss of the same processes",
        total_mb, None, "MB", total_mb, 40.0, load=load(),
        more={"daemon, MB": memory[daemon], "processes": float(len(tree))},
    )  # fmt: skip
