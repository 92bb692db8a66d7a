"""Which task is claimed, on a real store, against a judge that looks at every task anew."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_node import commands as c
from agent_node import queries as q
from agent_node.clock import iso, parse_iso
from agent_node.priority import (
    Turn,
    arriving,
    base_of,
    class_of,
    key,
    standing,
    urgency_of,
)
from agent_node.task import Task
from tests.builders import NodeAtHand, a_task, an_agent, uid, xfer
from tests.node.store.test_sqlite import Sqlite

BOOSTS = (None, None, 0.0, 0.01, 0.1, 0.5, 10.0, 100.0)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    node.set_agents(an_agent("iris", "gpu", "web", slots=1000))
    yield node
    node.close()


@dataclass
class Waiting:
    """What the judge knows of a task: itself, when it arrived, and its place in the queue."""

    task: Task
    arrived: int
    seq: int


def ms(node: NodeAtHand) -> int:
    return int(node.clock.now().timestamp() * 1000)


def plain_key(one: Waiting, now: int) -> tuple[int, int, int, int]:
    """From the task's own fields, without anything that the store keeps."""
    task, urgency = one.task, 0
    if task.deadline is not None:
        urgency, _ = urgency_of(int(parse_iso(task.deadline).timestamp() * 1000), now)
    stands = standing(base_of(task.priority, task.priority_100), urgency=urgency, heat=task.heat)
    pace = class_of(task.boost_per_minute)
    turn = arriving(stands, pace, arrived_ms=one.arrived, now_ms=one.arrived)
    return key(Turn(pace, turn), one.seq, now)


class Judge:
    """One node, a clock moved by hand, and every task that waits there."""

    def __init__(self, node: NodeAtHand, seed: int) -> None:
        self.node, self.rng = node, random.Random(seed)
        self.waiting: dict[str, Waiting] = {}
        self.count = 0

    def add(self) -> None:
        self.count += 1
        rng, now = self.rng, self.node.clock.now()
        given: dict[str, Any] = {
            "priority": rng.randint(1, 10), "boost_per_minute": rng.choice(BOOSTS),
            "needs": rng.choice([[], [], ["gpu"], ["gpu", "web"], ["tape"]]),
            "heat": rng.choice([None, None, -20.0, 12.5]),
        }  # fmt: skip
        if rng.random() < 0.3:
            given["priority"], given["priority_100"] = None, rng.randint(0, 100)
            given = {name: value for name, value in given.items() if name != "priority"}
        if rng.random() < 0.4:
            given["deadline"] = iso(now + timedelta(minutes=rng.randint(-60, 3000)))
        task = self.node.has(a_task(self.count, **given))
        if "tape" not in task.needs:
            self.waiting[task.uid] = Waiting(task, ms(self.node), self.count)

    def claim(self) -> None:
        self.node.wake()  # deadlines are looked at when the store is woken, as it asked to be
        now = ms(self.node)
        got = self.node.claim()
        if not self.waiting:
            assert isinstance(got, c.NothingToClaim)
            return
        assert isinstance(got, c.Claimed), got
        best = min(self.waiting.values(), key=lambda one: plain_key(one, now))
        assert got.task.uid == best.task.uid
        del self.waiting[best.task.uid]

    def set(self) -> None:
        """A person's own word on the order; the age stays."""
        if not self.waiting:
            return
        one = self.rng.choice([*self.waiting.values()])
        told = self.node.say(
            c.SetFields(one.task.uid, {"priority": self.rng.randint(1, 10)}, "because I say so")
        )
        assert told.task is not None
        one.task = told.task

    def pass_time(self) -> None:
        self.node.clock.advance(self.rng.choice([0.4, 30, 600, 7200, 100_000]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_the_store_claims_whom_a_plain_judge_would(seed: int) -> None:
    """Fails when a claim looks at one pace alone, and when a Wake does not bring deadlines nearer.

    `set` may cost a task up to one step of its own pace of age, so it is judged by itself below.
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        node = NodeAtHand(Sqlite(), Path(folder) / "iris")
        node.set_agents(an_agent("iris", "gpu", "web", slots=1000))
        judge = Judge(node, seed)
        for _ in range(60):
            judge.rng.choice(
                [judge.add, judge.add, judge.claim, judge.pass_time, node.reopen]
                if judge.rng.random() < 0.1 else [judge.add, judge.claim, judge.pass_time]
            )()
        while judge.waiting:
            judge.claim()
        node.close()


def test_a_person_s_word_puts_a_task_where_its_new_priority_and_its_age_belong(
    node: NodeAtHand,
) -> None:
    """Fails when `set` writes the priority and not the turn."""
    node.has(a_task(1, priority=9))
    node.clock.advance(3600)
    node.has(a_task(2, priority=4), a_task(3, priority=3))
    node.say(c.SetFields(uid(1), {"priority": 3}, "it is urgent after all"))
    assert [node.claimed().task.uid for _ in range(3)] == [uid(1), uid(3), uid(2)]


def test_a_boost_can_be_set_and_taken_away(node: NodeAtHand) -> None:
    node.has(a_task(1, priority=9), a_task(2, priority=2))
    node.say(c.SetFields(uid(1), {"boost_per_minute": 10.0}))
    node.clock.advance(600)
    assert node.claimed().task.uid == uid(1)
    node.has(a_task(3, priority=9, boost_per_minute=10.0))
    node.say(c.SetFields(uid(3), {"boost_per_minute": None}))
    node.clock.advance(600)
    assert node.claimed().task.uid == uid(2)


def test_age_brings_the_least_urgent_before_a_fresh_urgent_one(node: NodeAtHand) -> None:
    """P10 stands at 95, a fresh P1 at 5: 90 points are 900 minutes at 0.1 a minute."""
    node.has(a_task(1, priority=10))
    node.clock.advance(899 * 60)
    node.has(a_task(2, priority=1))
    assert node.claimed().task.uid == uid(2)
    node.clock.advance(2 * 60)
    node.has(a_task(3, priority=1))
    assert node.claimed().task.uid == uid(1)


def test_a_deadline_that_comes_near_is_woken_for(node: NodeAtHand) -> None:
    """Fails when the next step of a deadline is not in `next_at`."""
    due = node.clock.now() + timedelta(hours=25)
    node.has(a_task(1, priority=5, deadline=iso(due)), a_task(2, priority=5))
    node.clock.advance(1)
    assert node.wake().next_at == iso(due - timedelta(hours=24))
    node.clock.advance(3600)
    assert node.wake().next_at == iso(due - timedelta(hours=12))
    shown = node.shown(uid(1))
    assert shown is not None
    assert shown.order == {"effective": 38.0, "tier": "Normal"}


def test_age_travels_with_a_task_and_never_makes_it_overdue(node: NodeAtHand) -> None:
    """The clock of another node may lie: what it says counts for 30 days and no more."""
    node.has(a_task(1, priority=1))
    old = a_task(2, priority=10, created_at="1999-01-01T00:00:00.000Z", boost_per_minute=100.0)
    node.takes(xfer(1), old)
    young = a_task(3, priority=9, created_at=iso(node.clock.now() - timedelta(hours=20)))
    node.takes(xfer(2), young)
    later = a_task(4, priority=1, created_at="2099-01-01T00:00:00.000Z")
    node.takes(xfer(3), later)
    assert [node.claimed().task.uid for _ in range(4)] == [uid(2), uid(3), uid(1), uid(4)]


@pytest.mark.parametrize(("back_s", "restarts"), [(30, False), (3600, False), (3600, True),
                                                  (86_400 * 400, True)])  # fmt: skip
def test_a_clock_that_is_put_back_makes_nobody_wait_for_it(
    node: NodeAtHand, back_s: int, *, restarts: bool
) -> None:
    """Fails when tasks that arrived in a future keep their turn."""
    node.has(a_task(1))
    node.clock.wall -= timedelta(seconds=back_s)
    if restarts:
        node.reopen()
        node.set_agents(an_agent("iris", "gpu", "web", slots=1000))
    node.has(a_task(2))
    node.wake()
    node.has(a_task(3))
    assert [node.claimed().task.uid for _ in range(3)] == [uid(1), uid(2), uid(3)]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_retry_waits_no_longer_for_a_clock_that_is_put_back(
    node: NodeAtHand, *, restarts: bool
) -> None:
    """Fails where its time stays as the wrong clock wrote it: it would come in a year."""
    node.set_agents(an_agent("iris"), an_agent("other"))
    node.has(a_task(1, retry={"jitter": 0}))
    node.finish(node.running(), "failed", error_kind="crash")
    node.clock.wall -= timedelta(days=400)
    if restarts:
        node.reopen()
        node.set_agents(an_agent("iris"), an_agent("other"))
    assert node.wake().readied == 0
    assert node.task(uid(1)).retry_at == iso(node.clock.now() + timedelta(seconds=10))
    assert node.facts().next_at == iso(node.clock.now() + timedelta(seconds=10))
    assert node.wake(after=10).readied == 1
    node.wake(after=30)
    assert isinstance(node.claim("iris"), c.Claimed), "it is for everybody again"


def test_what_a_person_said_of_a_start_stays_where_a_clock_is_put_back(node: NodeAtHand) -> None:
    later = iso(node.clock.now() + timedelta(hours=2))
    node.has(a_task(1, not_before=later))
    node.clock.wall -= timedelta(days=1)
    node.has(a_task(2))
    assert node.facts().next_at == later


def test_a_task_that_is_tried_again_waits_from_now_on(node: NodeAtHand) -> None:
    node.has(a_task(1, priority=5))
    node.say(c.Cancel(uid(1)))
    node.clock.advance(86_400)
    node.has(a_task(2, priority=5))
    node.clock.advance(60)
    node.say(c.RetryNow(uid(1)))
    assert node.claimed().task.uid == uid(2)


def test_lists_say_what_a_task_is_worth_and_ended_ones_are_worth_nothing(
    node: NodeAtHand,
) -> None:
    node.has(a_task(1, priority=1), a_task(2, priority=10))
    node.finish(node.claimed())
    listed = node.ask(q.ListTasks())
    assert listed.order == {uid(2): {"effective": 95.0, "tier": "Background"}}


def test_ready_tasks_are_counted_in_the_tier_that_each_of_them_shows(node: NodeAtHand) -> None:
    """Fails when a bound is one off, or when the count goes by what a task was worth at first."""
    scale = [0, 9, 10, 29, 30, 59, 60, 79, 80, 100]
    node.has(*(
        a_task(n, priority_100=base, boost_per_minute=BOOSTS[n % len(BOOSTS)])
        for n, base in enumerate(scale * 3, 1)
    ))  # fmt: skip
    for minutes in (0, 7, 120, 60 * 24 * 20):
        node.clock.advance(minutes * 60)
        listed = node.ask(q.ListTasks(limit=100))
        shown = [str(one["tier"]).lower() for one in listed.order.values()]
        counted = node.ask(q.ReadyByTier())
        assert counted == {name: shown.count(name) for name in counted}
        assert sum(counted.values()) == len(scale) * 3
    node.claimed()
    assert sum(node.ask(q.ReadyByTier()).values()) == len(scale) * 3 - 1
