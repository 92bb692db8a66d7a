"""Thousands of small fleets in bad weather: no task is started twice, lost, or stuck."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from agent_node.store import graphs, spending
from tests.fleet.machines import FATES
from tests.fleet_in_memory import DEATHS, MOVES, Told, move_carelessly, replay, tell

PARTS = 20
SEEDS = 2000
SOAK = int(os.environ.get("SEEDS", "100000"))
MOVERS = ("fleet-rebalance", "fleet-router")
# Each of them moved half a task to one and a half in a story on the mean, in every part looked at.
A_STORY = 0.2


def idle_movers(moved: Counter[str], stories: int) -> list[str]:
    """Sensors that moved too little in so many stories: moves by hand would hide it."""
    return [f"{name} moved {moved[name]} tasks in {stories} stories" for name in MOVERS
            if moved[name] < A_STORY * stories]  # fmt: skip


def wrong_with(told: Told) -> list[str]:
    """What the story came to that it must not, or did not contain that it has to."""
    happened = set(told.happened)
    absent = [] if happened.issuperset(FATES) else [f"only {sorted(happened)} happened"]
    absent += [] if happened & set(DEATHS[:2]) else ["no hub died"]
    absent += [] if happened & set(DEATHS[2:]) else ["no node died"]
    absent += [] if told.moved >= MOVES else [f"only {told.moved} moves"]
    return [*told.faults, *absent]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_task_is_started_twice_lost_or_stuck(part: int) -> None:
    """Seen to fail when a commit follows no hold, an activate comes before its commit, a doubt is
    dropped by guess or never settled, and when a giver commits what it had taken back. With money:
    when nothing objects, no day turns, an aborted move keeps its money, or an end tells the cost of
    the last attempt alone. And when fleet-rebalance plans nothing, or fleet-router.
    """
    moved = Counter[str]()
    for seed in range(part, SEEDS, PARTS):
        told = tell(seed)
        moved.update(told.by_sensors)
        wrong = wrong_with(told)
        assert wrong == [], f"{wrong}; tell it again with: {replay(seed)}"
    assert idle_movers(moved, SEEDS // PARTS) == []


@pytest.mark.soak
def test_no_task_of_many_more_fleets_is_started_twice_lost_or_stuck() -> None:
    """As many seeds as `SEEDS` says, all of them other ones."""
    moved = Counter[str]()
    for seed in range(10**6, 10**6 + SOAK):
        told = tell(seed)
        moved.update(told.by_sensors)
        wrong = wrong_with(told)
        assert wrong == [], f"{wrong}; tell it again with: {replay(seed)}"
    assert SOAK < SEEDS // PARTS or idle_movers(moved, SOAK) == []


def test_a_home_that_counts_no_children_from_elsewhere_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same checker, where births cost a graph nothing, as they once did."""
    monkeypatch.setattr(graphs, "reserve_for_birth", lambda *_: None)
    monkeypatch.setattr(spending, "_charge_its_graph", lambda *_: None)
    faults = [one for seed in range(60) for one in tell(seed).faults]
    assert [one for one in faults if "the graph counts" in one]


def test_fault_create_there_then_close_here_ran_tasks_twice() -> None:
    """The negative control: the checker that is content with our moves finds fault with these."""
    stories = [tell(seed, mover=move_carelessly) for seed in range(60)]
    assert sum(len(told.twice) for told in stories) >= 20
    assert all(told.moved >= MOVES for told in stories)
