"""Graphs end while the hub, their home or a member's node meets a fault: each child begins once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import MakeFleet
from tests.chaos.crash_table import ACTIONS
from tests.chaos.fleet import HEAL_S, Fleet
from tests.chaos.hub import new_ulid
from tests.chaos.hub_cells import HubCells
from tests.node.daemon.living import is_ready

HOME, AWAY = "iris", "loom"
TELL = ["sensors", "run", "fleet-graphs"]
# Who meets it where; the hub and the home while an end is told, the other node before that.
CELLS = (
    ("hub", "outbox.before_telling"), ("hub", "outbox.after_telling"),
    (HOME, "ended.before"), (HOME, "ended.after"),
    (AWAY, "dispatch.before_result"), (AWAY, "shim.after_verdict"),
)  # fmt: skip


class GraphCells:
    """A fleet in which `a` of each graph runs on one node, and `b`, which waits for it, at home."""

    def __init__(self, fleet: Fleet, action: str) -> None:
        self.fleet, self.action = fleet, action
        self.cells = HubCells(fleet, action)
        self.graphs: dict[str, tuple[str, str]] = {}
        fleet._configure(skills=["away"])
        self.restart(AWAY)
        fleet._configure(skills=[])

    def restart(self, name: str, failpoint: str = "") -> None:
        """In place of the daemon that was there, dead or alive."""
        if "Traceback" in self.fleet.daemons[name].said:
            self.cells.problems.append(f"{name}: {self.fleet.daemons[name].said[-1500:]}")
        self.fleet.kill(name)
        self.fleet.start_surely(name, failpoint)

    def cell(self, who: str, place: str) -> None:
        """One graph; it happens to somebody at this place; then all is started and goes on."""
        seen = self.fleet.place / f"seen-{len(self.graphs)}"
        dag, first = self.submit()
        armed = f"{place}:{self.action}:1"
        if who != "hub":
            self.fleet.nodes[who].env["ARC_FAILPOINT_SEEN"] = str(seen)
            self._with_skills(who, armed)
        self.move(first)
        self._until(lambda: seen.exists() or self._state(AWAY, first) == "COMPLETED")
        if who == AWAY:
            self._with_skills(AWAY)
        self._until(lambda: self._state(AWAY, first) == "COMPLETED")
        code, said = self._tells(armed if who == "hub" else "", seen)
        if who == "hub":
            self.cells._judge(f"{place} {self.action}", code, said)
        assert seen.exists(), f"{who} never came to {place}"
        if who == HOME:
            self._with_skills(HOME)
        self._until(lambda: self._told(dag))

    def _tells(self, failpoint: str, seen: Path) -> tuple[int, str]:
        """One round of the hub, while who stands still is woken, as a person would."""
        with ThreadPoolExecutor(1) as beside:
            telling = beside.submit(self.cells._run, TELL, failpoint, seen)
            while not telling.done():
                self._look_after()
            return telling.result()

    def _look_after(self) -> None:
        is_ready(self.fleet.rest, 0.05)
        if self.action == "stop":
            self.fleet.wake_stopped()
        for daemon in self.fleet.daemons.values():
            daemon.drain()

    def submit(self) -> tuple[str, str]:
        """A graph of two at home: nobody there can run the first one."""
        dag, first, second = (new_ulid(self.fleet.dice) for _ in range(3))
        again = {"max_attempts": 50, "retry": {"strategy": "immediate"}}  # a disk may fail it
        tasks = {"a": {"uid": first, "subject": "a", "needs": ["away"], **again},
                 "b": {"uid": second, "subject": "b", "after": ["a"], **again}}  # fmt: skip
        with self.fleet.nodes[HOME].one_talk() as talk:
            said = talk.ask("submit", graph={"id": dag, "title": "one", "tasks": tasks}, by="me")
        assert said["outcome"] == "added", said
        self.graphs[dag] = (first, second)
        self.fleet.acked += [first, second]
        return dag, first

    def move(self, uid: str) -> None:
        """By the hub's own command."""
        self.cells.must("tasks", "move", uid, "--to", AWAY, "--yes", "--reason", "a test")

    def _with_skills(self, name: str, failpoint: str = "") -> None:
        self.fleet._configure(skills=["away"] if name == AWAY else [])
        self.restart(name, failpoint)

    def _until(self, is_so: Any) -> None:
        until = time.monotonic() + HEAL_S
        while not is_so():
            assert time.monotonic() < until, self.fleet.done[-10:]
            self._look_after()

    def _state(self, name: str, uid: str) -> str:
        with suppress(AssertionError, OSError), self.fleet.nodes[name].one_talk() as talk:
            return str(talk.ask("show", uid=uid)["task"]["state"])
        return ""

    def _told(self, dag: str) -> bool:
        """Another round of the hub, as every minute, until the graph is over."""
        self._tells("", self.fleet.place / "nobody-looks")
        with self.fleet.nodes[HOME].one_talk() as talk:
            return bool(talk.ask("graph", dag=dag)["state"] == "completed")

    def events(self) -> list[dict[str, Any]]:
        """What the graphs' home wrote down."""
        with self.fleet.nodes[HOME].one_talk() as talk:
            found: list[dict[str, Any]] = talk.ask("events", after_seq=0, limit=1000)["events"]
        return found


@pytest.fixture
def graphs(make_fleet: MakeFleet, action: str) -> Iterator[GraphCells]:
    made = GraphCells(make_fleet("graphs"), action)
    yield made
    made.cells.close()


@pytest.mark.parametrize("action", ACTIONS)
def test_whatever_happens_as_an_end_is_told_its_child_begins_once(graphs: GraphCells) -> None:
    """Fails where an end is marked as told before it was: the child of that cell never begins; and
    where the same end is noted twice: its graph ends twice.
    """
    for who, place in CELLS:
        graphs.cell(who, place)
    events = graphs.events()
    for dag, (_, second) in graphs.graphs.items():
        ready = [one for one in events if one.get("uid") == second and one.get("state") == "READY"]
        assert len(ready) == 1, json.dumps(ready)
        ended = [one["event"] for one in events if one.get("uid") == dag]
        assert ended == ["dag_submitted", "dag_completed"]
    findings = graphs.cells.end()
    assert findings.clean, findings
    assert Path(graphs.fleet.place / "ledger").exists()
