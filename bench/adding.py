"""Measures a request that adds a thousand tasks, from its bytes to the bytes of the answer."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from itertools import count
from statistics import median

from agent_node.clock import SystemClock, iso
from agent_node.config import NodeSettings
from agent_node.desk import NoDaemon, Session
from agent_node.home import Home
from agent_node.replies import Answers
from agent_node.store.rows import INSERT_NEW
from agent_node.store.schema import STEPS, statements
from agent_node.store.sqlite import open_store
from agent_node.ulid import new_ulid

from .floor_queue import connect
from .machine import load
from .measuring import Place, Row, in_turns, milliseconds, ratio
from .work import BODY

AGAINST = (
    "json.loads, sha256(json.dumps(sorted)) of each, executemany of the same rows and of one"
    " event each into the same tables with the same indexes, one durable transaction, json.dumps"
)
EVENT = "INSERT INTO event (at, uid, event, state, by) VALUES (?, ?, 'task_added', 'READY', ?)"
# What the store keeps of a task: the immutable fields that say something, as one sorted text.
SPEC = ("body", "created_at", "needs", "origin", "subject", "uid")
_asked, _uids = count(1), random.Random(20)


class Floor:
    """A good hand's own script: no checks, no reasons, nothing about repeats."""

    def __init__(self, place: Place) -> None:
        self.db = connect(place.fresh("floor") / "floor.db")
        for step in STEPS:
            for statement in statements(step):
                self.db.execute(statement)
        self.db.execute("INSERT INTO need_set (id, needs) VALUES (1, '[]')")
        self.clock = SystemClock()
        self.turns = count()

    def answer(self, line: bytes) -> bytes:
        """Take the tasks of this line in, and say so."""
        request = json.loads(line)
        now = iso(self.clock.now())
        rows = [self._row(task, now) for task in request["tasks"]]
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(INSERT_NEW, rows)
        self.db.executemany(EVENT, [(now, row[0], "hub") for row in rows])
        self.db.execute("COMMIT")
        results = [{"uid": row[0], "outcome": "added"} for row in rows]
        reply = {"id": request["id"], "ok": True, "result": {"results": results}}
        return json.dumps(reply, separators=(",", ":")).encode() + b"\n"

    def _row(self, task: dict[str, object], now: str) -> tuple[object, ...]:
        kept = {name: task[name] for name in SPEC if name in task}
        kept["created_at"] = now
        spec = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(spec.encode()).hexdigest()
        given = {
            "uid": task["uid"], "epoch": 1, "state": "READY", "subject": task["subject"],
            "priority": task["priority"], "skills": json.dumps(task["skills"]), "needs": "[]",
            "need_set": 1, "tags": "[]", "source": task["source"], "pinned": 0,
            "max_attempts": 3, "models": "[]", "fallback_models": "[]", "ready_at": now,
            "sha256": digest, "spec": spec, "pace": 10, "turn": next(self.turns),
        }  # fmt: skip
        return tuple(given.get(name) for name in COLUMNS)


COLUMNS = INSERT_NEW.partition("(")[2].partition(")")[0].split(", ")


def request_line(number: int) -> bytes:
    """An `add` as a hub sends it, every task new."""
    tasks = [
        {
            "uid": new_ulid(1_773_114_300_000 + place, _uids.randbytes(10)),
            "subject": f"task {place}",
            "body": BODY,
            "priority": place % 10 + 1,
            "skills": ["rust"],
            "source": "human:ann",
            "origin": "human:ann",
        }
        for place in range(number)
    ]
    return json.dumps({"id": next(_asked), "do": "add", "tasks": tasks}).encode()


def add_rows(place: Place) -> Iterator[Row]:
    """One row; both queues grow alike, by the same tasks."""
    tasks = place.size(1000, 20)
    home = Home(place.fresh("home"))
    clock = SystemClock()
    store = open_store(home.root, name="iris", clock=clock, queue_max=10_000_000)
    answers = Answers(
        store, home=home, settings=NodeSettings(name="iris", queue_max=10_000_000), clock=clock,
        host=NoDaemon(home),
    )  # fmt: skip
    session, floor = Session("hub"), Floor(place)
    lines = [request_line(tasks) for _ in range(place.rounds(31))]
    ours, theirs = iter(lines), iter(lines)
    check_same(answers.answer(session, request_line(2)), floor.answer(request_line(2)))
    mine, other = in_turns(
        len(lines),
        milliseconds(lambda: answers.answer(session, next(ours))),
        milliseconds(lambda: floor.answer(next(theirs))),
    )
    (held,) = floor.db.execute("SELECT count(*) FROM task").fetchone()
    store.close()
    floor.db.close()
    if held != tasks * len(lines) + 2:
        raise RuntimeError(f"the floor holds {held} tasks")
    middle, spread = ratio(mine, other)
    yield Row(
        "add-1000", f"add of {tasks:,} tasks in one request, decoded, checked, hashed, durable",
        median(mine), median(other), "ms", middle, 1.5, against=AGAINST, spread=spread,
        load=load(),
    )  # fmt: skip


def check_same(ours: bytes, floor: bytes) -> None:
    """Both take the tasks in, or there is nothing to compare."""
    said = [json.loads(reply)["result"]["results"] for reply in (ours, floor)]
    if any(result["outcome"] != "added" for results in said for result in results):
        raise RuntimeError(f"not added: {ours!r} {floor!r}")
