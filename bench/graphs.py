"""Measures graphs: taking one in whole, and ending a task that a thousand others wait for."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from statistics import median

from agent_node.clock import SystemClock
from agent_node.commands import AgentRow, Claim, Claimed, Finish, Result, SetAgents
from agent_node.config import NodeSettings
from agent_node.desk import NoDaemon, Session
from agent_node.graph_document import minted
from agent_node.home import Home
from agent_node.replies import Answers
from agent_node.store.sqlite import SqliteStore, open_store
from agent_node.strict import JsonObject, JsonValue
from agent_node.ulid import fresh_ulid

from .machine import load
from .measuring import Place, Row, timed

TASKS, EDGES, DEPENDENTS = 10_000, 20_000, 1_000
SUBMIT_GOAL_S, FAN_OUT_GOAL_MS = 2.0, 50.0


class Queue:
    """A node's store with its wire, and nobody else at it."""

    def __init__(self, place: Place, name: str) -> None:
        home = Home(place.fresh(name))
        clock = SystemClock()
        self.store: SqliteStore = open_store(
            home.root, name="iris", clock=clock, queue_max=10_000_000
        )
        self.store.apply(SetAgents((AgentRow("iris", 1, ()),)))
        self._answers = Answers(
            self.store, home=home, settings=NodeSettings(name="iris", queue_max=10_000_000),
            clock=clock, host=NoDaemon(home),
        )  # fmt: skip

    def submit(self, line: bytes) -> None:
        """From the bytes of the request to the bytes of the answer, durable."""
        reply = json.loads(self._answers.answer(Session("owner"), line))
        if not reply["ok"] or reply["result"]["outcome"] != "added":
            raise RuntimeError(f"not taken in: {str(reply)[:200]}")

    def end_one(self) -> float:
        """The seconds that it takes to end the most urgent task, all that follows from it too."""
        got = self.store.apply(Claim("iris"))
        if not isinstance(got, Claimed):
            raise LookupError(f"the bench ran out of work: {got}")
        end = Finish(got.task.uid, got.n, Result("completed", exit_code=0, duration_s=0.1))
        return timed(lambda: self.store.apply(end))


def line_of(graph: JsonObject) -> bytes:
    """The request that submits it, with every id in it."""
    request = {"id": 1, "do": "submit", "graph": minted(graph, fresh_ulid)}
    return json.dumps(request, separators=(",", ":")).encode()


def woven(tasks: int, edges: int, seed: int = 5) -> JsonObject:
    """A graph in which each task waits for some that stand before it."""
    chance = random.Random(seed)
    names = [f"t{number}" for number in range(tasks)]
    after: list[list[JsonValue]] = [[] for _ in names]
    while edges:
        later = chance.randrange(1, tasks)
        earlier = names[chance.randrange(later)]
        if earlier not in after[later]:
            after[later].append(earlier)
            edges -= 1
    told: JsonObject = {
        name: {"subject": f"task {name}", "body": "x" * 200, "after": some}
        for name, some in zip(names, after, strict=True)
    }
    return {"title": "woven", "tasks": told}


def fan(dependents: int) -> JsonObject:
    """One task, and all others wait for it."""
    some: JsonObject = {
        f"t{number}": {"subject": f"task {number}", "after": ["first"]}
        for number in range(dependents)
    }
    return {"title": "fan", "tasks": {"first": {"subject": "first", "priority": 1}, **some}}


def graph_rows(place: Place) -> Iterator[Row]:
    """One row for each goal."""
    yield _submit_row(place)
    yield _fan_row(place)


def _submit_row(place: Place) -> Row:
    tasks, edges = place.size(TASKS, 100), place.size(EDGES, 200)
    took = []
    for turn in range(place.rounds(7)):
        queue, line = Queue(place, f"submit-{turn}"), line_of(woven(tasks, edges, seed=turn))
        took.append(timed(lambda queue=queue, line=line: queue.submit(line)))  # type: ignore[misc]
        queue.store.close()
    return Row(
        "graph-submit", f"submit of {tasks:,} tasks with {edges:,} edges in one transaction",
        median(took), None, "s", median(took), SUBMIT_GOAL_S, load=load(),
        spread=(min(took), max(took)),
    )  # fmt: skip


def _fan_row(place: Place) -> Row:
    dependents = place.size(DEPENDENTS, 20)
    took = []
    for turn in range(place.rounds(15)):
        queue = Queue(place, f"fan-{turn}")
        queue.submit(line_of(fan(dependents)))
        took.append(queue.end_one() * 1000)
        queue.store.close()
    return Row(
        "fan-out", f"end of a task for which {dependents:,} others wait, durable",
        median(took), None, "ms", median(took), FAN_OUT_GOAL_MS, load=load(),
        spread=(min(took), max(took)),
    )  # fmt: skip
