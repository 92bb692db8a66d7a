"""Since when the oldest task waits, against the plain question that reads every row."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import graph_words as g
from agent_node import moves as m
from agent_node import queries as q
from agent_node.clock import iso
from agent_node.store.sqlite import SqliteStore, open_store
from tests.builders import Ending, FakeClock, a_task, an_agent, uid, xfer
from tests.node.store.contract_graphs import a_graph

ENDINGS: tuple[Ending, ...] = ("completed", "failed", "interrupted", "requeued")
PLAIN = "SELECT min(ready_at) FROM task WHERE state = 'READY'"


class Told:
    """A store, and a seeded hand that does to it whatever changes what is READY."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home, self.clock, self.chance = home, FakeClock(), random.Random(seed)
        self.tasks = self.moves = self.graphs = 0
        self.claimed: list[c.Claimed] = []
        self.store = self.open()
        self.store.apply(c.SetAgents((an_agent(slots=5),)))

    def open(self) -> SqliteStore:
        return open_store(self.home, name="iris", clock=self.clock, machine="here")

    def add(self) -> None:
        self.tasks += 1
        later = iso(self.clock.now())[:17] + "59.000Z" if self.chance.random() < 0.2 else None
        level = self.chance.randint(1, 10)
        self.store.apply(c.Add((a_task(self.tasks, priority=level, not_before=later),)))

    def claim(self) -> None:
        got = self.store.apply(c.Claim("iris"))
        if isinstance(got, c.Claimed):
            self.claimed.append(got)

    def finish(self) -> None:
        if self.claimed:
            got = self.claimed.pop(self.chance.randrange(len(self.claimed)))
            result = c.Result(self.chance.choice(ENDINGS))
            self.store.apply(c.Finish(got.task.uid, got.n, result))

    def graph(self) -> None:
        """One task that waits for another; it is let go when that one ends."""
        self.graphs += 1
        self.store.apply(g.Submit(a_graph(self.graphs, a=[], b=["a"])))

    def wake(self) -> None:
        self.store.apply(c.Wake())

    def set(self) -> None:
        for fields in ({"priority": 3}, {"not_before": None}):
            task = uid(self.chance.randint(1, max(1, self.tasks)))
            self.store.apply(c.SetFields(task, dict(fields)))

    def move(self) -> None:
        """Away for ever, or only asked for."""
        for task in self.store.read(q.ListTasks(states=("READY",))).tasks[-1:]:
            self.moves += 1
            x = xfer(self.moves)
            self.store.apply(m.Escrow("loom", "stolen", 60.0, (m.Move(x, task.uid, task.epoch),)))
            ending = self.chance.choice((m.Commit, m.Abort))
            self.store.apply(ending((m.Settle(x, task.uid, "loom"),)))

    def reopen(self) -> None:
        self.store.close()
        self.store = self.open()

    def oldest(self) -> tuple[str | None, str | None]:
        with closing(sqlite3.connect(self.home / "queue.db")) as db:
            (plain,) = db.execute(PLAIN).fetchone()
        return self.store.read(q.Facts()).oldest_ready_at, plain


@pytest.mark.parametrize("seed", range(8))
def test_the_oldest_is_the_one_that_every_row_says(tmp_path: Path, seed: int) -> None:
    """Fails when a task that came back READY counts as one that never left."""
    told = Told(tmp_path, seed)
    steps = (told.add,) * 4 + (told.claim,) * 3 + (told.finish, told.finish, told.wake, told.set,
             told.move, told.move, told.graph)  # fmt: skip
    for turn in range(300):
        told.chance.choice(steps)()
        told.clock.advance(told.chance.choice((0.0, 0.5, 7.0)))
        if turn % 60 == 59:
            told.reopen()
        if told.chance.random() < 0.7:
            assert len(set(told.oldest())) == 1, turn
    told.store.close()


def test_what_a_graph_lets_go_waits_as_everybody_does(tmp_path: Path) -> None:
    """Seen to fail: nobody was told that it waits, for its row came before others that had gone."""
    told = Told(tmp_path, 0)
    told.graph()
    told.claim()
    assert told.oldest() == (None, None)
    (got,) = told.claimed
    told.store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
    released = iso(told.clock.now())
    told.clock.advance(7200.0)
    assert told.oldest() == (released, released)
    told.store.close()


def test_what_came_by_a_clock_that_was_ahead_waits_from_when_it_was_put_back(
    tmp_path: Path,
) -> None:
    """Seen to fail: for as long as the clock had been ahead, nobody seemed to wait."""
    told = Told(tmp_path, 0)
    right = iso(told.clock.now())
    told.clock.set_wall("2037-02-20T03:45:00.000Z")
    told.store.apply(c.Add((a_task(1),)))
    told.clock.set_wall(right)
    told.store.apply(c.Add((a_task(2),)))
    told.clock.advance(7200.0)
    assert told.oldest() == (right, right)
    told.store.close()


def test_a_task_that_takes_the_place_of_one_that_left_is_seen(tmp_path: Path) -> None:
    """Fails when a row that goes does not make the store look anew: SQLite gives the last number
    of a table to the next row.
    """
    told = Told(tmp_path, 0)
    for number in (1, 2):
        told.store.apply(c.Add((a_task(number),)))
    for number in (1, 2):  # both leave, and in between nobody waits
        move = m.Move(xfer(number), uid(number), 1)
        told.store.apply(m.Escrow("loom", "stolen", 60.0, (move,)))
    assert told.oldest() == (None, None)
    for number in (1, 2):
        told.store.apply(m.Commit((m.Settle(xfer(number), uid(number), "loom"),)))
    told.clock.advance(1.0)
    told.store.apply(c.Add((a_task(3),)))
    assert told.oldest() == (iso(told.clock.now()), iso(told.clock.now()))
    told.store.close()
