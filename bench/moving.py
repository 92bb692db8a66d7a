"""Measures ten tasks moving between two running nodes, the whole protocol, durable at both ends."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

from agent_node.task import Task, to_wire_tersely
from agent_node.ulid import new_ulid

from .floor_queue import Plain
from .machine import load
from .measuring import Place, Row, in_turns, milliseconds, ratio
from .nodes import Node, Pipe, Talk, end
from .work import as_task, claimable

BATCH = 10
# Where the memory of a process comes to lie is its luck for as long as it lives, on either side:
# the ratio of one pair of daemons is 1.87 or 2.03, and every round of it says the same.
SITTINGS = 4
FOUR = (
    "two child processes over the same kind of pipes, each request json.loads, one durable"
    " transaction of 10 rows, json.dumps: escrow, hold, commit, activate"
)
_chance = random.Random(40)


def a_ulid() -> str:
    """An id of a transfer that begins now."""
    return new_ulid(time.time_ns() // 1_000_000, _chance.randbytes(10))


class Pair:
    """A giver and a taker, as the hub has them: two open pipes."""

    def __init__(
        self, giver: Pipe, taker: Pipe, tasks: Sequence[Task], *, batch: int = BATCH
    ) -> None:
        self.giver, self.taker, self.batch = giver, taker, batch
        self._left = list(tasks)
        self.moves: list[Talk] = []

    def move(self) -> None:
        """The whole protocol for the next tasks, ten unless told otherwise."""
        self.half()
        settled = [{"xfer": move["xfer"], "uid": move["uid"]} for move in self.moves]
        committed = [{**move, "peer": "loom"} for move in settled]
        self._check(self.giver.ask("commit", moves=committed), "committed")
        arrived = [{**move, "peer": "iris"} for move in settled]
        self._check(self.taker.ask("activate", moves=arrived), "activated")

    def half(self) -> None:
        """Escrow and hold: two transactions, nothing moved yet."""
        batch, self._left = self._left[: self.batch], self._left[self.batch :]
        self.moves = [{"xfer": a_ulid(), "uid": task.uid, "epoch": 1} for task in batch]
        taken = self.giver.ask("escrow", to="loom", why="stolen", lease_s=60, terse=True,
                               moves=self.moves)
        offers = [{name: entry[name] for name in ("xfer", "task", "sha256")}
                  for entry in self._check(taken, "escrowed")]  # fmt: skip
        held = self.taker.ask("hold", **{"from": "iris"}, why="stolen", moves=offers)
        self._check(held, "held")

    def _check(self, answer: Talk, outcome: str) -> list[Talk]:
        """Every one of the batch, or the figure means nothing."""
        results: list[Talk] = answer["results"]
        if len(results) != self.batch or any(one["outcome"] != outcome for one in results):
            raise RuntimeError(f"not {outcome}: {results[:2]}")
        return results


def plain_tasks(rounds: int) -> list[Plain]:
    """Nobody here can run them, so that they lie still while they are moved."""
    made = claimable((rounds + 1) * BATCH, _chance.getrandbits(32))
    return [plain._replace(need="elsewhere") for plain in made]


@contextmanager
def our_pair(place: Place, tasks: Sequence[Task]) -> Iterator[Pair]:
    """Two daemons, and `serve --stdio` in front of each."""
    with ExitStack() as stack:
        pipes: list[Pipe] = []
        for name in ("iris", "loom"):
            node = Node(place, name, ["/bin/true"], slots=2)
            stack.enter_context(node.running())
            pipes.append(stack.enter_context(child(node.serve())))
            pipes[-1].hear()
            pipes[-1].ask("hello", fleet="bench", hub="arc", term=1, wire=[1, 1])
        unborn = [{"uid": t.uid, "subject": t.subject, "body": t.body, "needs": t.needs}
                  for t in tasks]  # fmt: skip
        pipes[0].ask("add", tasks=unborn)
        yield Pair(pipes[0], pipes[1], tasks)


@contextmanager
def floor_pair(
    place: Place, name: str, tasks: Sequence[Task], *, batch: int = BATCH
) -> Iterator[Pair]:
    """Two children of the floor's making."""
    with ExitStack() as stack:
        folder = place.fresh(name)
        start = [sys.executable, "-m", "bench.floor_node"]
        giver, taker = (
            stack.enter_context(
                child(
                    subprocess.Popen(
                        [*start, str(folder / f"{side}.db")], cwd=Path(__file__).parent.parent,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    )
                )
            )
            for side in ("giver", "taker")
        )  # fmt: skip
        giver.ask("add", tasks=[to_wire_tersely(task) for task in tasks])  # no longer than ours
        yield Pair(giver, taker, tasks, batch=batch)


@contextmanager
def child(process: subprocess.Popen[bytes]) -> Iterator[Pipe]:
    """Its pipes; it ends when they close."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a child without pipes")
    try:
        yield Pipe(process.stdin, process.stdout)
    finally:
        with suppress(BrokenPipeError):  # it ended first, and did not hear the last line
            process.stdin.close()
        end(process, 30.0)
        process.stdout.close()


def _sit(place: Place, rounds: int) -> list[list[float]]:
    """What each side took in processes of its own, which nobody used before."""
    tasks = [as_task(plain) for plain in plain_tasks(rounds)]
    with (our_pair(place, tasks) as ours, floor_pair(place, "four", tasks) as four,
          floor_pair(place, "two", tasks) as two):  # fmt: skip
        sides = (ours.move, four.move, two.half)
        for side in sides:
            side()
        return in_turns(rounds, *map(milliseconds, sides))


def move_rows(place: Place) -> Iterator[Row]:
    """Against four transactions and against two, all three in the same turns."""
    mine, whole, half = list[float](), list[float](), list[float]()
    for sitting in range(place.size(SITTINGS, 1)):
        there = replace(place, folder=place.fresh(f"sitting-{sitting}"))
        for side, taken in zip((mine, whole, half), _sit(there, place.rounds(61)), strict=True):
            side.extend(taken)
    what = "10 tasks moved between two daemons over pipes: escrow, hold, commit, activate"
    middle, spread = ratio(mine, whole)
    yield Row("move-10", what, median(mine), median(whole), "ms", middle, 2.0, against=FOUR,
              spread=spread, load=load())  # fmt: skip
    middle, spread = ratio(mine, half)
    yield Row("move-10-vs-two", what, median(mine), median(half), "ms", middle, 4.0,
              against="the same children, two transactions: escrow and hold", spread=spread,
              load=load())  # fmt: skip
