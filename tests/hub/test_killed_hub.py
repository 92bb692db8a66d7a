"""Kills real hubs with -9 in the middle of moves; no task is lost, and none is there twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.hub_processes import LIMIT_S, a_hub, answer, run
from tests.sensors_stage import rows

TASKS = 1000  # a run moves 200 of them at most
LOOK_S = 0.0005
# After the giver was first seen to have set tasks aside; the steps that follow take some 50 ms.
MOMENTS_S = (0.0, 0.005, 0.01, 0.025, 0.05)
FLEET = """\
version: 1
rebalance: {every: 1s}
router: {every: 1d, enabled: false}
nodes:
  - {name: iris, local: true, home: ./iris}
  - {name: loom, local: true, home: ./loom}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Two nodes on this machine; one drains, and nothing there starts a task."""
    place = tmp_path / "fleet"
    place.mkdir(mode=0o700)
    run(place, "arc", "init", str(place))
    (place / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    for node in ("iris", "loom"):
        run(place, "agent_node", "init", "--name", node, "--run", "true", node=node)
    lines = "".join(f'{{"subject": "task {n}"}}\n' for n in range(TASKS))
    (place / "tasks.jsonl").write_text(lines, encoding="utf-8")
    run(place, "agent_node", "add", "--file", "tasks.jsonl", node="iris")
    run(place, "agent_node", "drain", "--reason", "new disk", node="iris")
    return place


def test_hubs_that_are_killed_in_the_middle_of_moves_lose_nothing_and_double_nothing(
    fleet: Path,
) -> None:
    """Where exactly each blow falls is chance; what must be true afterwards is not."""
    halves = 0
    for moment in MOMENTS_S:
        with a_hub(fleet) as hub:
            until_tasks_are_set_aside(fleet)
            time.sleep(moment)
            os.kill(hub.pid, signal.SIGKILL)
        halves += aside(fleet)
    assert halves, "no blow fell within a move"
    for _ in range(1 + TASKS // 200):
        run(fleet, "arc", "up", "--once")
    assert rows(answer(fleet, "doubts", "list"), "doubts") == []
    listed = rows(answer(fleet, "tasks", "list", "--limit", "5000"), "tasks")
    places = Counter(str(task["uid"]) for task in listed if task["state"] != "MOVED")
    assert (len(places), set(places.values())) == (TASKS, {1})
    assert {(task["node"], task["state"]) for task in listed} == {("inbox", "READY")}


def until_tasks_are_set_aside(place: Path) -> None:
    """A move is under way: there are more of them than the killed hub before left behind."""
    before, until = moved(place), time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        if moved(place) != before:
            return
        time.sleep(LOOK_S)
    raise AssertionError("no hub moved anything")


def aside(place: Path) -> int:
    """How many tasks are neither waiting nor gone."""
    return count(place, "SELECT count(*) FROM task WHERE state = 'ESCROW'")


def moved(place: Path) -> int:
    """The newest transfer that the giver knows of."""
    return count(place, "SELECT count(*) FROM transfer WHERE side = 'giver'")


def count(place: Path, sql: str) -> int:
    with closing(sqlite3.connect(f"file:{place / 'iris' / 'queue.db'}?mode=ro", uri=True)) as db:
        (found,) = db.execute(sql).fetchone()
    return int(found)
