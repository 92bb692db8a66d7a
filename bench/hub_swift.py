"""Measures `swift` with a hub and nodes that really run: one steal, fifteen, and the inbox."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from agent_node.clock import parse_iso
from agent_node.strict import JsonValue

from .floor_steal import NAME, TIMES, bare_steal
from .hub_fleet import FIVE, ask_hub, five_nodes, hub_process, local_entries, write_fleet
from .machine import load
from .measuring import Place, Row, percentile, timed
from .nodes import Node, Pipe
from .peer_dask import dask
from .running import bare_loop

BUSY, IDLE = "iris", "loom"
LOOK_S, PATIENCE_S = 0.05, 120.0
# It says when it began and when it ended, in microseconds, and costs no process of its own for it.
PROGRAM = """\
#!/bin/bash
echo "$EPOCHREALTIME"
read -r seconds
[ "$seconds" = 0 ] || /bin/sleep "$seconds"
echo "$EPOCHREALTIME"
"""
WORKS_S, LONG_S = "0.15", "3600"


@dataclass
class Live:
    """A hub in a process of its own, five daemons, and a connection to each as its owner."""

    fleet: Path
    nodes: Mapping[str, Node]
    pipes: Mapping[str, Pipe]

    def completed(self) -> int:
        """How many have ended well so far, on all nodes."""
        counts = [pipe.ask("status")["counts"] for pipe in self.pipes.values()]
        return sum(one.get("COMPLETED", 0) for one in counts)

    def makespan_s(self, give: Callable[[], Sequence[str]]) -> float:
        """From before the tasks are given until the last result is recorded, wherever that is."""
        before, began = self.completed(), time.time()
        uids = set(give())
        while self.completed() < before + len(uids):
            if time.time() - began > PATIENCE_S:
                raise RuntimeError(f"not over after {PATIENCE_S} s")
            time.sleep(LOOK_S)
        ended = {
            task["uid"]: parse_iso(task["completed_at"]).timestamp()
            for pipe in self.pipes.values()
            for task in pipe.ask("list", states=["COMPLETED"], limit=1000)["tasks"]
        }
        return max(ended[uid] for uid in uids) - began

    def share(self) -> str:
        """How many each node has done."""
        counts = {name: pipe.ask("status")["counts"] for name, pipe in self.pipes.items()}
        return ", ".join(f"{name} {one.get('COMPLETED', 0)}" for name, one in counts.items())


@contextmanager
def live(place: Place, run: Sequence[str], *, agent: str = "") -> Iterator[Live]:
    """Everything up, met, listening and warm."""
    with ExitStack() as stack:
        nodes = stack.enter_context(five_nodes(place, {"": run}, slots=1, agent=agent))
        fleet = write_fleet(place.folder / "hub", local_entries(nodes), policy="swift",
                            health={"disk_over": "99%"})  # fmt: skip
        stack.enter_context(hub_process(fleet))
        pipes = {name: stack.enter_context(nodes[name].owner()) for name in FIVE}
        time.sleep(0.5 if place.tiny else 3.0)
        yield Live(fleet, nodes, pipes)


# --- The first stolen task ------------------------------------------------------------------------


@dataclass(frozen=True)
class Stolen:
    """One steal: milliseconds until its program ran, from two moments that could be the start."""

    from_idle: float  # the node's own word: the stamp of its news `idle`
    from_end: float  # the end of the program before it, as that program printed it


def steal_rows(place: Place) -> Iterator[Row]:
    """A node ends its task while one waits, alone, behind a long one on another node."""
    program = place.folder / "program"
    program.write_text(PROGRAM)
    program.chmod(0o700)
    count = 3 if place.tiny else 60 if place.quick else 200
    with live(place, [str(program)], agent='stdin = "body"') as fleet:
        for name in {*FIVE} - {BUSY, IDLE}:  # else one of them would take it at once
            fleet.pipes[name].ask("pause", reason="measured", by="human:bench")
        long = _add(fleet.pipes[BUSY], LONG_S, pinned=True)
        try:
            with fleet.nodes[IDLE].owner() as news:
                news.ask("subscribe", events=["idle"])
                stolen, bare = _in_turns(place, fleet, news, str(program), count)
        finally:
            fleet.pipes[BUSY].ask("cancel", uids=[long], reason="measured", by="human:bench")
    idle = [one.from_idle for one in stolen]
    ended = [one.from_end for one in stolen]
    more: dict[str, float | str] = {
        f"{NAME}, p50, ms": median(bare), TIMES: median(idle) / median(bare),
        "from the end of the program before, p50, ms": median(ended),
        "the same, p99, ms": percentile(ended, 99),
        **dask("steal", "from the end of the task before, p50, ms", place.rounds(15),
               workers=len(FIVE), busy_s=0.3 if place.tiny else 2.5),
    }  # fmt: skip
    what = f"idle to the start of a stolen task's program, {count} steals"
    for name, goal, took in (("steal-p50", 10.0, median(idle)),
                             ("steal-p99", 40.0, percentile(idle, 99))):  # fmt: skip
        yield Row(name, f"{what}, {name[-3:]}", took, None, "ms", took, goal, load=load(),
                  more=more)  # fmt: skip
        slow = percentile(bare, 99)
        more = {f"{NAME}, p99, ms": slow, TIMES: percentile(idle, 99) / slow}


def _in_turns(
    place: Place, fleet: Live, news: Pipe, program: str, count: int
) -> tuple[list[Stolen], list[float]]:
    """So many steals, and after each one what it would have taken by hand."""
    stolen, bare = list[Stolen](), list[float]()
    with bare_steal(place, program, count) as by_hand:
        for _ in range(count):
            stolen.append(_steal(fleet, news))
            bare.append(by_hand())
    return stolen, bare


def _steal(fleet: Live, news: Pipe) -> Stolen:
    busy, idle = fleet.pipes[BUSY], fleet.pipes[IDLE]
    began = time.time()
    first = _add(idle, WORKS_S, pinned=True)
    while idle.ask("status")["running_count"] == 0:
        time.sleep(0.002)
    waiting = _add(busy, "0")
    since = _idle_after(news, began + float(WORKS_S))
    _idle_after(news, since)  # and again, once it has run what was stolen
    _, end = _printed(fleet.nodes[IDLE], first)
    start, _ = _printed(fleet.nodes[IDLE], waiting)
    return Stolen(1000 * (start - since), 1000 * (start - end))


def _add(pipe: Pipe, seconds: str, *, pinned: bool = False) -> str:
    task = {"subject": "measured", "body": seconds, "priority": 9, "pinned": pinned}
    (added,) = pipe.ask("add", tasks=[task])["results"]
    uid: str = added["uid"]
    return uid


def _idle_after(news: Pipe, moment: float) -> float:
    """When the node was idle next, by its own stamp; what it said of an earlier time is old."""
    while True:
        heard = news.hear()
        at = parse_iso(heard["at"]).timestamp() if heard.get("event") == "idle" else 0.0
        if at > moment:
            return at


def _printed(node: Node, uid: str) -> tuple[float, float]:
    """When the program began and ended, by its own word."""
    start, end = (node.home.tasks / uid / "1" / "stdout.log").read_text().split()
    return float(start), float(end)


# --- Many tasks -----------------------------------------------------------------------------------


def spread_rows(place: Place) -> Iterator[Row]:
    """All of it lands on one node, and the others are idle."""
    tasks, seconds = place.size(15, 5), 1
    with live(place, ["/bin/sleep", str(seconds)]) as fleet:

        def give() -> list[str]:
            said = fleet.pipes[BUSY].ask("add", tasks=_tasks(tasks))
            return [one["uid"] for one in said["results"]]

        took = [fleet.makespan_s(give) for _ in range(place.rounds(5))]
        share = fleet.share()
    ideal = seconds * tasks / len(FIVE)
    yield Row(
        "spread-15", f"{tasks} tasks of 1 s on one of five idle nodes, makespan : ideal",
        median(took), ideal, "s", median(took) / ideal, 1.05, load=load(),
        against="the ideal: an equal share on each, and nothing but the tasks' own time",
        more={"worst round, makespan : ideal": max(took) / ideal, "done by": share,
              **dask("spread", "s", place.rounds(5), workers=len(FIVE), tasks=tasks,
                     seconds=seconds)},
    )  # fmt: skip


def inbox_rows(place: Place) -> Iterator[Row]:
    """All of it is given to the hub."""
    tasks, argv = place.size(200, 10), ["/bin/sleep", "0.1"]
    ideal = 0.1 * tasks / len(FIVE)
    with live(place, argv) as fleet:

        def give() -> list[str]:
            told = ask_hub(fleet.fleet, "tasks.add", {"tasks": list[JsonValue](_tasks(tasks))})
            results = told.data["results"]
            assert isinstance(results, list)
            return [str(one["uid"]) for one in results if isinstance(one, dict)]

        took = [fleet.makespan_s(give) for _ in range(place.rounds(5))]
        share = fleet.share()
    bare = [timed(lambda: bare_loop(argv, tasks, len(FIVE))) for _ in range(place.rounds(3))]
    yield Row(
        "inbox-200", f"{tasks} tasks of 0.1 s from the hub's queue over 5 nodes x 1 slot",
        median(took), ideal, "s", median(took) / ideal, 1.15, load=load(),
        against="the ideal: 0.1 s x tasks / 5",
        more={"bare posix_spawn loop, makespan : ideal": median(bare) / ideal,
              "worst round, makespan : ideal": max(took) / ideal, "done by": share},
    )  # fmt: skip


def _tasks(count: int) -> list[dict[str, JsonValue]]:
    return [{"subject": f"task {number}", "priority": 9} for number in range(count)]
