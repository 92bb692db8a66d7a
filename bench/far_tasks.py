"""Gives a far node of fixed answers a life: its tasks start and end, one after the other."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from agent_node.clock import iso
from agent_node.strict import JsonObject
from agent_node.task import State, task_from, to_wire
from agent_node.ulid import new_ulid

# 102 s on the average, as what the simulator draws, so that a node is at work for 0.65 of its time;
# each is over before the next one comes, so that events are numbered as they happen.
LENGTHS_S = (31, 77, 104, 145, 153)
EVERY_S = 157
STATES = (
    ("task_added", None, "READY"), ("task_claimed", "READY", "CLAIMED"),
    ("task_started", "CLAIMED", "RUNNING"), ("task_completed", "RUNNING", "COMPLETED"),
)  # fmt: skip
AGENT = "agent-0"


class Shift:
    """One node's tasks by the time alone: a new one each `EVERY_S`, as long as its turn says; who
    asks twice is told the same.
    """

    def __init__(self, name: str, began_s: float) -> None:
        self._name, self._began_s = name, began_s
        turn = sum(3**place * byte for place, byte in enumerate(name.encode()))
        self._late_s: int = turn % EVERY_S

    def events(self, after: int, now_s: float) -> list[JsonObject]:
        """What happened since the event of this number."""
        found: list[JsonObject] = []
        for task in range(self._last(now_s) + 1):
            if 4 * task + 4 > after:
                found += self._of(task)
        return [event for event in found
                if int(str(event["seq"])) > after and str(event["at"]) <= _at(now_s)]  # fmt: skip

    def running(self, now_s: float) -> tuple[int, ...]:
        """What runs now: one task or none."""
        last = self._last(now_s)
        return (last,) if last >= 0 and now_s < self._ends_s(last) else ()

    def done(self, now_s: float) -> int:
        """How many have ended."""
        return sum(self._ends_s(task) <= now_s for task in range(self._last(now_s) + 1))

    def document(self, task: int) -> JsonObject:
        """As `list` tells it while it runs."""
        started = _at(self._starts_s(task))
        made = task_from({"uid": self._uid(task), "subject": f"work {task} of {self._name}",
                          "priority": 1 + task % 10, "created_at": started})  # fmt: skip
        return {**to_wire(made), "state": State.RUNNING.value, "started_at": started}

    def _last(self, now_s: float) -> int:
        """The number of the last one that came; -1: none has."""
        return int((now_s - self._began_s - self._late_s) // EVERY_S)

    def _starts_s(self, task: int) -> float:
        return self._began_s + self._late_s + EVERY_S * task

    def _ends_s(self, task: int) -> float:
        lasts_s = LENGTHS_S[(task + self._late_s) % len(LENGTHS_S)]
        return self._starts_s(task) + lasts_s

    def _uid(self, task: int) -> str:
        return new_ulid(round(self._starts_s(task) * 1000), self._name.encode()[:10].ljust(10))

    def _of(self, task: int) -> list[JsonObject]:
        uid, began, ended = self._uid(task), self._starts_s(task), self._ends_s(task)
        said: list[JsonObject] = []
        for place, (event, was, state) in enumerate(STATES):
            over = event == "task_completed"
            said.append({
                "seq": 4 * task + place + 1, "event": event, "uid": uid, "was": was,
                "state": state, "at": _at(ended if over else began), "by": AGENT,
                "n": 1 if place else None, "data": {"cost_usd": "0.02"} if over else {},
            })  # fmt: skip
        return said


def at_work(status: JsonObject, shift: Shift, now_s: float) -> JsonObject:
    """The report of a node that has nothing to do, with what it does now."""
    running, counts = len(shift.running(now_s)), status["counts"]
    assert isinstance(counts, Mapping)
    agents = status["agents"]
    assert isinstance(agents, list)
    busy = [{**one, "state": "full", "running": 1} if place < running else one
            for place, one in enumerate(agents) if isinstance(one, dict)]  # fmt: skip
    done = int(str(counts["COMPLETED"])) + shift.done(now_s)
    return {
        **status, "idle": not running, "idle_since": None if running else status["idle_since"],
        "running_count": running, "free_slots": len(agents) - running, "agents": [*busy],
        "counts": {"COMPLETED": done, **({"RUNNING": running} if running else {})},
    }  # fmt: skip


def asked_after(line: bytes) -> int:
    """From where on a request for events wants to hear."""
    after = json.loads(line).get("after_seq")
    return after if isinstance(after, int) else 0


def _at(seconds: float) -> str:
    return iso(datetime.fromtimestamp(seconds, UTC))


def begins() -> float:
    """When the first tasks come: a moment ago, so that some run at the first look."""
    return time.time() - 2 * EVERY_S
