"""Measures how soon after an `add` its program runs, on a node that was idle."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median

from .floor_queue import FloorQueue
from .machine import load
from .measuring import Place, Row, quartiles
from .nodes import Node, Pipe, report_of
from .work import claimable

# The program tells when it ran: its own start is part of both measurements.
PROGRAM = ["/bin/date", "+%s%N"]
AGAINST = "one durable commit, then posix_spawn of the same program, by itself"
LOOK_S = 0.01
QUIET_S = 0.25


def wait_until_quiet(node: Node) -> None:
    """The node says that it is idle, and has been for a while: both sides start from there."""
    while not report_of(node.home).get("idle"):
        time.sleep(LOOK_S)
    time.sleep(QUIET_S)


def ours_ms(node: Node, pipe: Pipe) -> float:
    """From before the request is written to the time that the program printed."""
    wait_until_quiet(node)
    began = time.time_ns()
    (added,) = pipe.ask("add", tasks=[{"subject": "what time is it"}])["results"]
    pipe.wait_for("idle")
    printed = node.home.tasks / added["uid"] / "1" / "stdout.log"
    return (int(printed.read_text()) - began) / 1e6


def floor_ms(node: Node, queue: FloorQueue) -> float:
    """The same by hand: the task is on the disk, then its program is started."""
    wait_until_quiet(node)
    near, far = os.pipe()
    began = time.time_ns()
    queue.add(claimable(1, began))
    pid = os.posix_spawn(
        PROGRAM[0], PROGRAM, os.environ, file_actions=((os.POSIX_SPAWN_DUP2, far, 1),)
    )
    os.close(far)
    os.waitpid(pid, 0)
    with os.fdopen(near, "rb") as output:
        return (int(output.read()) - began) / 1e6


def latency_rows(place: Place) -> Iterator[Row]:
    """Both sides in turns, each time on a machine that was quiet for a moment."""
    node = Node(place, "iris", PROGRAM, slots=2)
    queue = FloorQueue(place.fresh("floor") / "floor.db")
    mine, theirs = [], []
    with node.running(), node.owner() as pipe:
        pipe.ask("subscribe", events=["idle"])
        for number in range(2 if place.tiny else 53):
            took, other = ours_ms(node, pipe), floor_ms(node, queue)
            if number >= 3 or place.tiny:  # the first ones only warm everything
                mine.append(took)
                theirs.append(other)
    queue.close()
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    yield Row(
        "add-to-start", f"add to an idle node until its program runs, {len(mine)} times",
        median(mine), median(theirs), "ms", median(mine) / median(theirs), 2.0, against=AGAINST,
        spread=quartiles(ratios), load=load(),
    )  # fmt: skip
