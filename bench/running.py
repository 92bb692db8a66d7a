"""Measures a daemon that works through a queue of tiny programs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from random import Random
from statistics import median

from agent_node.clock import SystemClock
from agent_node.commands import Add
from agent_node.queries import Facts
from agent_node.store.sqlite import open_store
from agent_node.task import task_from
from agent_node.ulid import new_ulid

from .floor_queue import FloorQueue
from .machine import load
from .measuring import Place, Row, in_turns, timed
from .nodes import Node
from .work import claimable

_chance = Random(30)


def fill(node: Node, tasks: int) -> None:
    """Put work into the home while no daemon runs."""
    store = open_store(node.home.root, name=node.name, clock=SystemClock())
    made = (task_from({"uid": new_ulid(1_773_114_300_000 + place, _chance.randbytes(10)),
                       "subject": f"task {place}"}) for place in range(tasks))  # fmt: skip
    store.apply(Add(tuple(made)))
    store.close()


def check_done(node: Node, tasks: int) -> None:
    """Every one of them completed, or the figure means nothing."""
    store = open_store(node.home.root, name=node.name, clock=SystemClock())
    counts = dict(store.read(Facts()).counts)
    store.close()
    if counts != {"COMPLETED": tasks}:
        raise RuntimeError(f"{node.name}: {counts}\n{node.log()}")


def run_until_idle(node: Node) -> float:
    """Seconds from the start of the daemon's process to its end."""
    began = time.perf_counter()
    code = node.daemon("--until-idle").wait()
    took = time.perf_counter() - began
    if code:
        raise RuntimeError(f"{node.name}: ended with {code}\n{node.log()}")
    return took


def bare_loop(argv: list[str], tasks: int, slots: int) -> None:
    """The same programs, so many at a time, with nothing kept of them."""
    left, running = tasks, 0
    while left or running:
        while left and running < slots:
            os.posix_spawn(argv[0], argv, os.environ)
            left, running = left - 1, running + 1
        os.wait()
        running -= 1


def durable_loop(queue: FloorQueue, argv: list[str], tasks: int, slots: int) -> None:
    """The same with two durable commits a task, in the floor's own queue."""
    left, running = tasks, 0
    while left or running:
        while left and running < slots:
            os.posix_spawn(argv[0], argv, os.environ)
            left, running = left - 1, running + 1
        os.wait()
        running -= 1
        queue.claim_and_complete(1)


def true_rows(place: Place) -> Iterator[Row]:
    """2,000 x /bin/true on 2 slots, the daemon's own start and end counted in."""
    tasks, numbers = place.size(2000, 10), iter(range(100))

    def ours() -> float:
        node = Node(place, f"true-{next(numbers)}", ["/bin/true"], slots=2)
        fill(node, tasks)
        took = run_until_idle(node)
        check_done(node, tasks)
        return 1000 * took / tasks

    def floor() -> float:
        queue = FloorQueue(place.fresh(f"floor-{next(numbers)}") / "floor.db")
        queue.add(claimable(tasks, 1))
        took = timed(lambda: durable_loop(queue, ["/bin/true"], tasks, 2))
        queue.close()
        return 1000 * took / tasks

    mine, theirs = in_turns(place.rounds(5), ours, floor)
    yield Row(
        "true-2000", f"{tasks:,} x /bin/true on 2 slots, run --until-idle, durable, a task",
        median(mine), None, "ms/task", median(mine), 2.5, load=load(),
        more={"posix_spawn + two durable commits, ms/task": median(theirs),
              "best round, ms/task": min(mine)},
    )  # fmt: skip


def sleep_rows(place: Place) -> Iterator[Row]:
    """200 x 0.1 s over 5 slots of a running daemon, from the request to the news `idle`."""
    tasks, slots, argv = place.size(200, 5), 5, ["/bin/sleep", "0.1"]
    ideal = 0.1 * tasks / slots
    node = Node(place, "iris", argv, slots=slots)
    with node.running(), node.owner() as pipe:
        pipe.ask("subscribe", events=["idle"])

        def ours() -> float:
            began = time.perf_counter()
            pipe.ask("add", tasks=[{"subject": f"task {place}"} for place in range(tasks)])
            pipe.wait_for("idle")
            return time.perf_counter() - began

        mine, bare = in_turns(
            place.rounds(3), ours, lambda: timed(lambda: bare_loop(argv, tasks, slots))
        )
        counts = pipe.ask("status")["counts"]
    if counts != {"COMPLETED": tasks * len(mine)}:
        raise RuntimeError(f"{counts}\n{node.log()}")
    yield Row(
        "sleep-200", f"{tasks} tasks of 0.1 s over {slots} slots, makespan : ideal",
        median(mine), ideal, "s", median(mine) / ideal, 1.10, load=load(),
        against="the ideal: 0.1 s x tasks / slots",
        more={"bare posix_spawn loop, makespan : ideal": median(bare) / ideal},
    )  # fmt: skip
