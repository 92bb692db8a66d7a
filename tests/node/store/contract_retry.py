"""What a store promises about failures: what is tried again, when, and when it is enough."""

from __future__ import annotations

import pytest

from agent_node import commands as c
from agent_node.clock import iso, parse_iso
from tests.builders import NodeAtHand, a_task, uid
from tests.node.store.contract import Contract, MakeNode


def fails(node: NodeAtHand, kind: str = "crash", **more: str) -> c.Finished:
    """The task is claimed, started, and fails."""
    return node.finish(node.running(), "failed", error_kind=kind, message="exit 1", **more)


def wait_s(node: NodeAtHand, number: int = 1) -> float:
    """How long the task waits for its next attempt."""
    retry_at = node.task(uid(number)).retry_at
    assert retry_at is not None
    return (parse_iso(retry_at) - node.clock.now()).total_seconds()


class Retries(Contract):
    def test_a_failed_task_waits_and_is_tried_three_times(self, node: NodeAtHand) -> None:
        node.has(a_task())
        for number in (1, 2):
            assert fails(node).state == "RETRYING"
            assert node.task(uid()).failures == number
            assert isinstance(node.claim(), c.NothingToClaim)
            assert node.wake(after=wait_s(node)).readied == 1
        assert fails(node).state == "DEAD_LETTERED"

        task = node.task(uid())
        assert (task.failures, len(task.attempts)) == (3, 3)
        assert "exit 1" in str(task.failure_reason)
        assert node.wake(after=10**6).readied == 0

    def test_a_retry_does_not_come_early(self, node: NodeAtHand) -> None:
        node.has(a_task())
        fails(node)
        left = wait_s(node)
        assert node.facts().next_at == node.task(uid()).retry_at

        assert node.wake(after=left - 0.001).readied == 0
        assert node.state(uid()) == "RETRYING"
        assert node.wake(after=0.001).readied == 1

    def test_waits_double_up_to_five_minutes_within_half_of_it(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=9))
        for wanted in (10, 20, 40, 80, 160, 300, 300, 300):
            assert fails(node).state == "RETRYING"
            assert wanted * 0.5 <= wait_s(node) <= wanted * 1.5
            node.wake(after=wait_s(node))
        assert fails(node).state == "DEAD_LETTERED"

    def test_waits_differ_so_that_failed_tasks_do_not_come_back_as_one(
        self, node: NodeAtHand
    ) -> None:
        node.has(*(a_task(n) for n in range(12)))
        for _ in range(12):
            fails(node)
        waits = [wait_s(node, n) for n in range(12)]
        assert len(set(waits)) == 12
        assert max(waits) - min(waits) > 2

    def test_the_same_seed_gives_the_same_waits(self, make_node: MakeNode) -> None:
        waits = []
        for name in ("one", "two"):
            node = make_node(name)
            node.has(a_task())
            fails(node)
            waits.append(wait_s(node))
        assert waits[0] == waits[1]

    def test_a_task_may_bring_its_own_waits(self, node: NodeAtHand) -> None:
        policy = {"initial_s": 4, "multiplier": 3, "max_s": 13, "jitter": 0}
        node.has(a_task(max_attempts=5, retry=policy))
        for wanted in (4, 12, 13, 13):
            fails(node)
            assert wait_s(node) == wanted
            node.wake(after=wanted)

    @pytest.mark.parametrize(
        ("policy", "waits"),
        [
            ({"strategy": "fixed", "initial_s": 7, "jitter": 0}, (7, 7, 7)),
            ({"strategy": "fixed", "initial_s": 7, "max_s": 5, "jitter": 0}, (5, 5, 5)),
            ({"strategy": "immediate", "initial_s": 7}, (0, 0, 0)),
        ],
    )
    def test_a_task_may_wait_equally_long_each_time_or_not_at_all(
        self, node: NodeAtHand, policy: dict[str, object], waits: tuple[int, ...]
    ) -> None:
        node.has(a_task(max_attempts=9, retry=policy))
        for wanted in waits:
            fails(node)
            assert wait_s(node) == wanted
            assert node.wake(after=wanted).readied == 1

    def test_one_attempt_means_one(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=1))
        assert fails(node).state == "DEAD_LETTERED"

    @pytest.mark.parametrize("kind", ["auth_failure", "budget_exceeded"])
    def test_what_would_fail_again_is_not_tried_again(self, node: NodeAtHand, kind: str) -> None:
        node.has(a_task())
        assert fails(node, kind).state == "DEAD_LETTERED"
        assert node.task(uid()).failures == 1

    @pytest.mark.parametrize("kind", ["timeout", "crash", "invalid_output", "other"])
    def test_what_may_go_better_is_tried_again(self, node: NodeAtHand, kind: str) -> None:
        node.has(a_task())
        assert fails(node, kind).state == "RETRYING"

    def test_a_task_may_say_what_is_not_tried_again(self, node: NodeAtHand) -> None:
        node.has(a_task(retry={"no_retry_on": ["timeout"]}))
        assert fails(node, "timeout").state == "DEAD_LETTERED"

    def test_a_rate_limit_waits_until_it_is_over_and_does_not_count(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=1))
        until = "2026-03-10T05:00:00.000Z"
        assert fails(node, "rate_limit", retry_at=until).state == "RETRYING"

        task = node.task(uid())
        assert (task.retry_at, task.failures) == (until, 0)
        node.clock.set_wall(until)
        assert node.wake().readied == 1
        assert node.claimed().n == 2

    @pytest.mark.parametrize("times", [1, 2])
    def test_an_interruption_costs_no_retry(self, node: NodeAtHand, times: int) -> None:
        node.has(a_task(max_attempts=1))
        for number in range(1, times + 1):
            assert node.finish(node.running(), "interrupted").state == "READY"
            task = node.task(uid())
            assert (task.failures, task.interruptions) == (0, number)

    def test_after_three_interruptions_a_person_decides(self, node: NodeAtHand) -> None:
        node.has(a_task())
        ends = [node.finish(node.running(), "interrupted").state for _ in range(3)]
        assert ends == ["READY", "READY", "PARKED"]
        assert node.task(uid()).interruptions == 3

    def test_interruptions_and_failures_count_apart(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=2))
        node.finish(node.running(), "interrupted")
        fails(node)
        node.wake(after=60)
        node.finish(node.running(), "interrupted")
        task = node.task(uid())
        assert (task.state, task.failures, task.interruptions) == ("READY", 1, 2)

    def test_a_task_that_must_not_be_repeated_is_parked_at_once(self, node: NodeAtHand) -> None:
        node.has(a_task(on_interrupt="park"))
        assert node.finish(node.running(), "interrupted").state == "PARKED"

    def test_a_retry_by_hand_forgives_the_failures(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=1))
        fails(node)
        changed = node.say(c.RetryNow(uid(), "disk was full"))

        assert changed.outcome == "changed"
        assert changed.task is not None
        assert (changed.task.state, changed.task.failures) == ("READY", 0)
        assert node.claimed().n == 2

    def test_a_retry_by_hand_ends_the_wait(self, node: NodeAtHand) -> None:
        node.has(a_task())
        fails(node)
        assert node.say(c.RetryNow(uid(), "now")).outcome == "changed"
        assert node.state(uid()) == "READY"
        assert node.wake(after=10**6).readied == 0

    def test_a_wait_outlives_a_restart(self, node: NodeAtHand) -> None:
        node.has(a_task())
        fails(node)
        due = node.task(uid()).retry_at
        node.reopen()
        assert node.task(uid()).retry_at == due
        assert node.wake(after=wait_s(node)).readied == 1

    def test_waking_says_when_to_wake_next(self, node: NodeAtHand) -> None:
        assert node.wake() == c.Woken(0, None, None)
        node.has(a_task(1), a_task(2))
        fails(node)
        node.clock.advance(1)
        fails(node)
        both = [str(node.task(uid(n)).retry_at) for n in (1, 2)]
        assert node.wake().next_at == min(both)
        assert iso(node.clock.now()) < min(both)
