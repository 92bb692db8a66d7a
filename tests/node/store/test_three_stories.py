"""Moves, fences and restores that went wrong once, told one by one on three real nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node.errors import Refused
from tests.builders import a_task, uid, xfer
from tests.node.store.fleet import Fleet
from tests.node.store.hub_double import NAMES


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path)
    yield fleet
    fleet.check()
    fleet.close()


def test_a_task_goes_to_and_fro_and_runs_once(fleet: Fleet) -> None:
    fleet.add("iris", 1, "k")
    for giver, taker in (("iris", "forge"), ("forge", "iris"), ("iris", "loom"), ("loom", "forge")):
        fleet.move(uid(), giver, taker)
        fleet.check()
    everything_returns(fleet)
    for name in NAMES:
        fleet.claim(name)
    assert fleet.living[uid()][0] == "forge"
    fleet.end(uid(), "completed")
    everything_returns(fleet)


def test_a_lease_that_ends_before_the_commit_leaves_the_task_with_its_giver(fleet: Fleet) -> None:
    fleet.add("iris", 1, None)
    journey = fleet.begin_move(a_task(1), "iris", "forge")
    fleet.follow(journey, m.Escrow, m.Hold)
    fleet.nodes["iris"].wake(after=61)
    fleet.follow(journey, m.Commit, m.Activate, m.Drop)
    fleet.claim("iris")
    fleet.claim("forge")
    assert fleet.living[uid()][0] == "iris"
    assert fleet.nodes["forge"].state(uid()) is None


def test_two_machines_declared_dead_one_after_the_other_double_nothing(fleet: Fleet) -> None:
    """Fails when a task that was owned again runs after a boot before the hub has spoken."""
    fleet.add("iris", 1, None)
    fleet.move(uid(), "iris", "forge")
    fleet.move(uid(), "forge", "iris")
    fleet.fence("iris")
    assert fleet.reown(uid(), "forge") == "forge"
    fleet.switch_on("iris")
    fleet.hello("iris")
    fleet.reown(uid(), "forge")
    fleet.bar_at("iris", uid())
    fleet.release("iris")
    fleet.hello("iris")
    fleet.fence("forge")
    assert fleet.reown(uid(), "iris") == "iris"
    fleet.claim("iris")
    fleet.switch_on("forge")
    fleet.claim("forge")
    assert fleet.living[uid()][0] == "iris"


def test_a_cancelled_task_of_an_older_copy_is_not_brought_back_to_life(fleet: Fleet) -> None:
    """Fails when a quarantine lets go of ended tasks that a retry could make READY."""
    fleet.add("iris", 1, None)
    iris = fleet.nodes["iris"]
    iris.say(c.Cancel(uid()))
    fleet.back_up("iris")
    iris.say(c.RetryNow(uid()))
    fleet.move(uid(), "iris", "forge")
    fleet.claim("forge")
    fleet.restore("iris")
    fleet.release("iris")
    with suppress(Refused):
        iris.say(c.RetryNow(uid()))
    fleet.claim("iris")
    assert fleet.living[uid()][0] == "forge"


def everything_returns(fleet: Fleet) -> None:
    """All that the hub ever said arrives once more."""
    for sent in list(fleet.bag):
        fleet.send(sent, again=True)
        fleet.check()


def test_an_add_that_returns_after_a_restore_brings_nothing_back(fleet: Fleet) -> None:
    """Fails when an add is meant for whichever life its node has by then."""
    fleet.back_up("iris")
    fleet.add("iris", 1, None)
    fleet.claim("iris")
    fleet.end(uid(), "completed")
    fleet.restore("iris")
    fleet.release("iris")
    assert fleet.nodes["iris"].facts().state == "active"
    everything_returns(fleet)
    fleet.claim("iris")
    assert uid() not in fleet.living


def test_an_add_that_returns_after_its_task_was_owned_again_elsewhere_adds_nothing(
    fleet: Fleet,
) -> None:
    """Fails when only the tasks that are here are known, and not those that left."""
    fleet.add("iris", 1, None)
    fleet.move(uid(), "iris", "forge")
    fleet.fence("forge")
    assert fleet.reown(uid(), "iris") == "iris"
    fleet.move(uid(), "iris", "loom")
    everything_returns(fleet)
    for name in ("iris", "loom"):
        fleet.claim(name)
    assert fleet.living[uid()][0] == "loom"


def test_attempts_on_the_disk_keep_a_task_from_running_again(fleet: Fleet) -> None:
    """Fails when bar does not look at the disk: an older copy of forge does not know the task."""
    fleet.add("iris", 1, None)
    fleet.back_up("forge")
    fleet.move(uid(), "iris", "loom")
    fleet.move(uid(), "loom", "forge")
    fleet.claim("forge")
    fleet.end(uid(), "completed")
    fleet.restore("forge")
    fleet.fence("loom")
    assert fleet.reown(uid(), "iris") is None
    fleet.claim("iris")
    assert uid() not in fleet.living


def test_a_late_hold_of_a_forgotten_move_makes_no_second_owner(fleet: Fleet) -> None:
    """Fails when the floor does not rise with what is forgotten."""
    fleet.add("iris", 1, None)
    journey = fleet.move(uid(), "iris", "forge")
    fleet.claim("forge")
    fleet.end(uid(), "completed")
    fleet.follow(journey, m.Settled)
    for name in NAMES:
        fleet.forget(name)
    for sent in list(fleet.bag):
        fleet.send(sent, again=True)
    for name in NAMES:
        fleet.claim(name)
    assert fleet.nodes["forge"].hold(xfer(1), a_task(1), giver="iris").outcome == "too_old"


def test_attempts_are_numbered_once_in_the_whole_fleet(fleet: Fleet) -> None:
    """Fails when a re-own goes on from the numbers that this node happens to know."""
    fleet.add("iris", 1, None)
    fleet.move(uid(), "iris", "forge")
    fleet.move(uid(), "forge", "iris")
    fleet.fence("iris")
    assert fleet.reown(uid(), "forge") == "forge"
    fleet.claim("forge")
    fleet.switch_on("iris")
    fleet.hello("iris")
    fleet.bar_at("iris", uid())
    fleet.release("iris")
    fleet.hello("iris")
    fleet.fence("forge")
    assert fleet.reown(uid(), "iris") == "iris"
    fleet.claim("iris")
    assert fleet.living[uid()][0] == "iris"
