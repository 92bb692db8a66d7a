"""Whatever three nodes and a forgetful hub do to each other, no task is doubled and none is lost."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from agent_node import commands as c
from agent_node import moves as m
from agent_node.errors import Refused
from tests.builders import DAY, a_task, uid, xfer
from tests.node.store.fleet import NAMES, Fleet, Sent

names = st.sampled_from(NAMES)
picks = st.integers(0, 2**16)
UIDS = 4


class ThreeNodes(RuleBasedStateMachine):
    """Each rule is one thing that may happen next; the order is Hypothesis's to choose."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="arc-fleet-"))
        self.fleet = Fleet(self.place)

    def teardown(self) -> None:
        self.fleet.close()
        shutil.rmtree(self.place)

    @invariant()
    def nothing_is_doubled_and_nothing_is_lost(self) -> None:
        self.fleet.check()

    @rule(name=names, number=st.integers(1, UIDS), key=st.sampled_from([None, None, "k"]))
    def work_comes_in(self, name: str, number: int, key: str | None) -> None:
        self.fleet.add(name, number, key)

    @rule(name=names)
    def an_agent_claims(self, name: str) -> None:
        self.fleet.claim(name)

    @rule(pick=picks, kind=st.sampled_from(["completed", "failed", "interrupted", "unproved"]))
    def a_program_ends(self, pick: int, kind: str) -> None:
        if running := sorted(self.fleet.living):
            self.fleet.end(running[pick % len(running)], kind)

    @rule(number=st.integers(1, UIDS), giver=names, taker=names, steps=st.integers(1, 5))
    def a_move_begins(self, number: int, giver: str, taker: str, steps: int) -> None:
        node = self.fleet.nodes[giver]
        had = [j for j in self.fleet.journeys if j.uid == uid(number)]
        if giver == taker or self.fleet.off & {giver, taker} or len(had) >= 4:
            return
        if (shown := node.shown(uid(number))) is not None:
            journey = self.fleet.begin_move(shown.task, giver, taker)
            way = (m.Escrow, m.Hold, m.Commit, m.Activate, m.Settled)
            self.fleet.follow(journey, *way[:steps])

    @rule(pick=picks, step=picks, lost=st.booleans())
    def a_move_goes_on(self, pick: int, step: int, lost: bool) -> None:
        if self.fleet.journeys:
            journey = self.fleet.journeys[pick % len(self.fleet.journeys)]
            steps = self.fleet.next_steps(journey)
            self.fleet.send(steps[step % len(steps)], lost=lost)

    @rule(pick=picks, lost=st.booleans())
    def an_old_command_arrives_again(self, pick: int, lost: bool) -> None:
        if self.fleet.bag:
            sent = self.fleet.bag[pick % len(self.fleet.bag)]
            self.fleet.send(sent, lost=lost, again=True)

    @rule(name=names, seconds=st.sampled_from([1, 30, 61, 700]))
    def time_passes(self, name: str, seconds: int) -> None:
        if name not in self.fleet.off:
            self.fleet.nodes[name].wake(after=seconds)

    @rule(name=names)
    def a_daemon_is_killed_and_started(self, name: str) -> None:
        if name not in self.fleet.off:
            self.fleet.nodes[name].reopen()

    @rule(name=names)
    def a_machine_reboots(self, name: str) -> None:
        self.fleet.reboot(name)

    @rule(name=names)
    def the_hub_greets(self, name: str) -> None:
        self.fleet.hello(name)

    @rule(name=names, number=st.integers(1, UIDS), word=st.sampled_from(["set", "cancel", "retry"]))
    def a_person_has_a_word(self, name: str, number: int, word: str) -> None:
        command: c.Command[object] = {
            "set": c.SetFields(uid(number), {"priority": number}),
            "cancel": c.Cancel(uid(number)),
            "retry": c.RetryNow(uid(number)),
        }[word]
        self.fleet.send(Sent(name, command, None))

    @rule(name=names, to=st.sampled_from(["active", "paused", "draining"]))
    def a_node_is_paused(self, name: str, to: str) -> None:
        self.fleet.send(Sent(name, c.SetNode(to, "asked to"), None))  # type: ignore[arg-type]

    @rule(name=names)
    def a_month_passes_and_a_node_forgets(self, name: str) -> None:
        for node in self.fleet.nodes.values():
            node.clock.advance(31 * DAY)
        self.fleet.forget(name)

    @rule(name=names)
    def a_backup_is_made(self, name: str) -> None:
        self.fleet.back_up(name)

    @rule(name=names)
    def a_backup_is_put_back(self, name: str) -> None:
        self.fleet.restore(name)

    @rule(name=names)
    def a_machine_is_switched_off_for_good(self, name: str) -> None:
        self.fleet.fence(name)

    @rule(name=names)
    def a_machine_comes_back(self, name: str) -> None:
        self.fleet.switch_on(name)

    @rule(number=st.integers(1, UIDS), winner=names)
    def ownership_is_taken_back(self, number: int, winner: str) -> None:
        self.fleet.reown(uid(number), winner)

    @rule(name=names)
    def a_quarantine_is_ended(self, name: str) -> None:
        self.fleet.release(name)

    @rule()
    def every_doubt_is_settled(self) -> None:
        self.fleet.settle_all()


QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def test_nothing_is_doubled_and_nothing_is_lost() -> None:
    """Fails when any needed guard of the protocol is taken out of the store."""
    run_state_machine_as_test(
        ThreeNodes,
        settings=settings(
            max_examples=120, stateful_step_count=40, deadline=None, derandomize=True,
            database=None, suppress_health_check=QUIET,
        ),
    )  # fmt: skip


@pytest.mark.soak
def test_nothing_is_doubled_and_nothing_is_lost_in_a_long_run() -> None:
    """The same, never the same way twice."""
    run_state_machine_as_test(
        ThreeNodes,
        settings=settings(
            max_examples=4000, stateful_step_count=80, deadline=None, database=None,
            suppress_health_check=QUIET, print_blob=True,
        ),
    )  # fmt: skip


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
    for sent in list(fleet.bag):
        fleet.send(sent, again=True)
        fleet.check()
    for name in NAMES:
        fleet.claim(name)
    assert fleet.living[uid()][0] == "forge"
    fleet.end(uid(), "completed")


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


def test_attempts_on_the_disk_keep_a_task_from_running_again(fleet: Fleet) -> None:
    """Fails when the evidence on the disk is not asked in bar."""
    fleet.add("iris", 1, None)
    fleet.back_up("forge")
    fleet.move(uid(), "iris", "forge")
    fleet.claim("forge")
    fleet.end(uid(), "completed")
    fleet.restore("forge")
    assert fleet.reown(uid(), "iris") is None
    fleet.claim("iris")


def test_a_late_hold_of_a_forgotten_move_makes_no_second_owner(fleet: Fleet) -> None:
    """Fails when the floor does not rise with what is forgotten."""
    fleet.add("iris", 1, None)
    journey = fleet.move(uid(), "iris", "forge")
    fleet.claim("forge")
    fleet.end(uid(), "completed")
    fleet.follow(journey, m.Settled)
    for node in fleet.nodes.values():
        node.clock.advance(31 * DAY)
    for name in NAMES:
        fleet.forget(name)
    for sent in list(fleet.bag):
        fleet.send(sent, again=True)
    for name in NAMES:
        fleet.claim(name)
    assert fleet.nodes["forge"].hold(xfer(1), a_task(1), giver="iris").outcome == "too_old"
