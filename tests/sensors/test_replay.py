"""The 56 cycles in which the original moved nothing, once more: each moves, or names the rule."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from arc.sensor import SensorReport
from tests.sensors_stage import Scene, rows

# Who was idle, who was busy, and in how many cycles on end; by the first letters of the seed's
# nodes: forge, iris, loom, spark. 2026-03-09 14:44Z to 2026-03-11 01:57Z, 0 steals.
CYCLES = """
f:i 1  fl:i 1  fls:i 3  fl:i 1  ls:i 1  fls:i 3  f:il 1  fs:il 3  fs:i 1  l:i 1  fls:i 3  ls:i 1
fls:i 4  fl:i 1  ls:i 1  fls:i 1  s:i 1  ls:i 1  l:fi 2  ls:i 3  fls:i 6  fl:i 1  fls:i 1  s:f 1
l:f 1  l:fi 2  ls:i 1  fi:ls 1  fls:i 1  fil:s 1  s:fil 1  fil:s 1  s:fil 1  fl:is 1  ils:f 1
fl:is 1
"""
NODES = {name[0]: name for name in ("forge", "iris", "loom", "spark")}


def cycles() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    words = CYCLES.split()
    found: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for sets, times in zip(words[::2], words[1::2], strict=True):
        idle, busy = (tuple(NODES[letter] for letter in some) for some in sets.split(":"))
        found += [(idle, busy)] * int(times)
    return found


def mixed(node: str) -> list[dict[str, Any]]:
    """Twelve tasks as such queues held them: urgent ones, the node's own work, and small things."""
    own = {"forge": "deploy", "iris": "arc-research", "loom": "ci", "spark": "clarity"}[node]
    return [
        *({"priority": p, "skills": [own]} for p in (1, 3, 5, 6, 7)),
        *({"priority": p, "skills": ["ci"]} for p in (4, 8)),
        *({"priority": p} for p in (5, 6)),
        *({"priority": p} for p in (8, 9, 10)),
    ]


def comes_in(stage: Scene, node: str) -> None:
    tasks = [{**task, "subject": f"{node} {n}"} for n, task in enumerate(mixed(node))]
    stage.asks(node, "add", tasks=tasks)


def test_there_are_56_of_them() -> None:
    assert len(cycles()) == 56
    assert sum(len(idle) == 3 and busy == ("iris",) for idle, busy in cycles()) == 22


@pytest.mark.parametrize(("idle", "busy"), sorted(set(cycles())))
def test_every_cycle_moves_tasks_or_names_the_rule_for_each_that_stays(
    tmp_path: Path, idle: tuple[str, ...], busy: tuple[str, ...],
) -> None:
    stage = Scene(tmp_path)
    for node in NODES.values():
        if node in busy:
            comes_in(stage, node)
        if node not in idle:
            stage.has(node, 1, priority=1)
            stage.works(node)
    before = {node: stage.waiting(node) for node in busy}
    stage.passes(300)

    report = stage.run("fleet-rebalance")
    assert report.acted > 0
    adds_up(report, before)
    places = list(chain.from_iterable(
        [task["uid"] for task in rows(stage.asks(node, "list", states=["READY"]), "tasks")]
        for node in NODES.values()))  # fmt: skip
    assert len(places) == len(set(places)) == sum(before.values())
    stage.close()


def adds_up(report: SensorReport, before: dict[str, int]) -> None:
    """Of each busy node every task moved, or is kept by a rule that says why."""
    assert report.outcome == "done"
    assert report.acted == report.decided
    for node, count in before.items():
        kept = sum(one.count for one in report.decisions if one.node == node and not one.uid)
        moved = sum(one.busy == node for one in report.moves)
        assert kept + moved == count
        assert all(one.rule and one.because for one in report.decisions if one.node == node)


def test_all_of_them_in_order_on_one_fleet_move_tasks_or_name_the_rule(tmp_path: Path) -> None:
    """What moved once, what each node got lately, and who has refused what carries over."""
    stage, acted, runs = Scene(tmp_path), list[int](), Counter[str]()
    rules = set[str]()
    for idle, busy in cycles():
        for node in NODES.values():
            get_on(stage, node, 0 if node in idle else 3, runs)
            if node in busy:
                comes_in(stage, node)
            if node not in idle:
                stage.asks(node, "add", tasks=[{"subject": "goes on", "priority": 1}])
                stage.works(node)
        stage.passes(300)
        before = {node: stage.waiting(node) for node in busy}
        report = stage.run("fleet-rebalance")
        adds_up(report, before)
        acted.append(report.acted)
        rules |= {one.rule for one in report.decisions}
    assert (len(acted), min(acted) > 0) == (56, True)
    assert "not_stolen_before" in rules  # what one cycle moved, a later one looked at again
    assert max(runs.values()) == 1  # what moved was started once, wherever that was
    stage.close()


def get_on(stage: Scene, node: str, until_left: int, runs: Counter[str]) -> None:
    """Its programs end what runs and what waits, until so much is left."""
    store = stage.fleet.machines[node].store
    boot = stage.fleet.machines[node].clock.boot_id()
    for task in rows(stage.asks(node, "list", states=["RUNNING"]), "tasks"):
        store.apply(c.Finish(str(task["uid"]), 1, c.Result("completed")))
    while stage.waiting(node) > until_left:
        got = store.apply(c.Claim(node))
        assert isinstance(got, c.Claimed)
        runs[got.task.uid] += 1
        store.apply(c.Started(got.task.uid, got.n, 42, 99, boot))
        store.apply(c.Finish(got.task.uid, got.n, c.Result("completed")))
