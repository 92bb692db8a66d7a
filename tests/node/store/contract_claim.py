"""What a store promises about claiming: who gets what, in which order, and when nobody does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from tests.builders import NodeAtHand, a_task, an_agent, refusal, rule_of, uid, xfer
from tests.node.store.contract import Contract

# One field at a time, each with something else than its default.
SAYING: dict[str, Any] = {
    "body": "do it", "needs": [], "origin": "human:ann", "priority": 2, "priority_100": 33,
    "skills": ["clarity"], "domain": "docs", "deadline": "2027-03-10T03:45:00.000Z",
    "not_before": "2026-03-10T03:44:00.000Z", "expected_s": 1.5, "max_s": 60.0, "max_attempts": 5,
    "models": ["b", "a"], "fallback_models": ["c"], "boost_per_minute": 0.5, "heat": -1.0,
    "pinned": True, "tags": ["x"],
}  # fmt: skip


def drained(node: NodeAtHand, agent: str = "iris") -> list[str]:
    """Everything that this agent may claim, in the order in which it gets it."""
    order = []
    while isinstance(got := node.claim(agent), c.Claimed):
        order.append(got.task.uid)
        node.finish(got)
    return order


class Claims(Contract):
    def test_the_most_urgent_goes_first_then_the_one_that_came_first(
        self, node: NodeAtHand
    ) -> None:
        priorities = {1: 5, 2: 9, 3: 1, 4: 5, 5: 10, 6: 1}
        node.has(*(a_task(n, priority=p) for n, p in priorities.items()))
        assert drained(node) == [uid(n) for n in (3, 6, 1, 4, 2, 5)]

    def test_a_finer_priority_orders_within_its_step(self, node: NodeAtHand) -> None:
        node.has(a_task(1, priority_100=49), a_task(2, priority_100=40), a_task(3, priority_100=30))
        assert drained(node) == [uid(3), uid(2), uid(1)]

    def test_no_clock_has_a_say_in_the_order(self, node: NodeAtHand) -> None:
        """The wall jumps back a year between two tasks; the first to come still goes first."""
        node.has(a_task(1))
        node.clock.set_wall("2025-03-10T03:45:00.000Z")
        node.has(a_task(2))
        assert drained(node) == [uid(1), uid(2)]

    def test_a_task_goes_only_to_an_agent_with_every_power_it_needs(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("plain"), an_agent("rich", "gpu", "disk", "net", slots=2))
        node.has(a_task(1, needs=["gpu", "disk"]), a_task(2, needs=["gpu", "camera"]))

        assert rule_of(node.claim("plain")) == "needs_unmet"
        assert node.claimed("rich").task.uid == uid(1)
        assert rule_of(node.claim("rich")) == "needs_unmet"
        assert node.state(uid(2)) == "READY"

    def test_all_that_nobody_here_can_do_is_counted_however_much_it_is(
        self, node: NodeAtHand
    ) -> None:
        """A hub that hears of fewer takes the rest for work that is about to start here."""
        node.set_agents(an_agent("iris", "gpu"))
        node.has(*(a_task(n, needs=["tpu"]) for n in range(1, 1101)))
        node.has(*(a_task(n, needs=[f"power-{n}"]) for n in range(2001, 2031)))
        node.has(a_task(3001), a_task(3002, needs=["gpu"]))
        facts = node.facts()
        assert (len(facts.unmet), max(number for _, number in facts.unmet)) == (20, 1000)
        assert facts.unmet_more + sum(number for _, number in facts.unmet) == 1130

    def test_powers_that_come_later_count(self, node: NodeAtHand) -> None:
        node.has(a_task(needs=["gpu"]))
        assert isinstance(node.claim(), c.NothingToClaim)

        node.set_agents(an_agent("iris", "gpu"))
        assert node.claimed().task.uid == uid()

    def test_powers_that_are_gone_do_not_count(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("iris", "gpu"))
        node.has(a_task(needs=["gpu"]))
        node.set_agents(an_agent("iris"))
        assert rule_of(node.claim()) == "needs_unmet"

    def test_skills_are_tags_and_keep_nobody_away(self, node: NodeAtHand) -> None:
        node.has(a_task(skills=["stacks-js", "clarity"]))
        assert node.claimed().task.uid == uid()

    def test_a_rare_need_is_found_behind_many_others(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("iris", "rare"))
        node.has(*(a_task(n, needs=[f"need{n % 7}"], priority=1) for n in range(200)))
        node.has(a_task(999, needs=["rare"], priority=10))
        assert node.claimed().task.uid == uid(999)

    def test_nobody_gets_what_is_claimed(self, node: NodeAtHand) -> None:
        node.has(a_task())
        assert node.claimed().task.uid == uid()
        assert rule_of(node.claim()) == "nothing_ready"

    def test_an_unknown_agent_gets_nothing(self, node: NodeAtHand) -> None:
        node.has(a_task())
        assert rule_of(node.claim("stranger")) == "no_such_agent"
        assert node.state(uid()) == "READY"

    def test_an_agent_that_was_taken_away_gets_nothing(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("other"))
        node.has(a_task())
        assert rule_of(node.claim("iris")) == "no_such_agent"

    def test_an_agent_gets_no_more_than_its_slots(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("iris", slots=2))
        node.has(a_task(1), a_task(2), a_task(3))
        first, _ = node.claimed(), node.claimed()

        assert rule_of(node.claim()) == "full"
        node.finish(first)
        assert node.claimed().task.uid == uid(3)

    @pytest.mark.parametrize("state", ["paused", "draining"])
    def test_a_node_that_is_told_to_stop_claims_nothing(self, node: NodeAtHand, state: str) -> None:
        node.has(a_task())
        node.say(c.SetNode(state, "upgrade"))  # type: ignore[arg-type]

        assert rule_of(node.claim()) == state
        node.say(c.SetNode("active", "done"))
        assert node.claimed().task.uid == uid()

    def test_a_pause_outlives_a_restart(self, node: NodeAtHand) -> None:
        node.has(a_task())
        node.say(c.SetNode("paused", "upgrade"))
        node.reopen()

        assert (node.facts().state, node.facts().reason) == ("paused", "upgrade")
        assert rule_of(node.claim()) == "paused"

    def test_a_paused_agent_claims_nothing_and_others_go_on(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("one"), an_agent("two"))
        node.has(a_task())
        node.say(c.SetNode("paused", "its key expired", agent="one"))

        assert rule_of(node.claim("one")) == "paused"
        assert node.facts().state == "active"
        assert node.claimed("two").task.uid == uid()

    def test_a_paused_agent_stays_paused_when_agents_are_named_again(
        self, node: NodeAtHand
    ) -> None:
        node.has(a_task())
        node.say(c.SetNode("paused", "its key expired", agent="iris"))
        node.reopen()
        assert rule_of(node.claim()) == "paused"

    def test_an_agent_that_is_not_here_cannot_be_paused(self, node: NodeAtHand) -> None:
        command = c.SetNode("paused", "typing error", agent="irsi")
        assert refusal(node, command) == "no_such_agent"

    def test_a_claim_numbers_the_attempt_and_says_who(self, node: NodeAtHand) -> None:
        node.has(a_task())
        got = node.claimed()

        assert (got.n, got.task.state, len(got.token) >= 16) == (1, "CLAIMED", True)
        assert node.task(uid()).claim == {
            "agent": "iris",
            "claimed_at": "2026-03-10T03:45:00.000Z",
            "heartbeat_at": "2026-03-10T03:45:00.000Z",
        }

    @pytest.mark.parametrize(("field", "value"), SAYING.items())
    def test_a_claim_hands_over_what_the_task_says(
        self, node: NodeAtHand, field: str, value: Any
    ) -> None:
        """Whatever a column holds, the program is given the task that `show` prints."""
        node.has(a_task(**{field: value}))
        got = node.claimed().task
        assert getattr(got, field) == value
        assert got == replace(node.task(uid()), attempts=[])

    def test_a_later_claim_hands_over_what_became_of_the_earlier_ones(
        self, node: NodeAtHand
    ) -> None:
        node.has(a_task())
        node.finish(node.running(), "interrupted", message="the machine went down")
        got, shown = node.claimed().task, node.task(uid())
        assert (got.interruptions, len(got.attempts)) == (1, 2)
        assert got == shown

    def test_a_claim_hands_over_the_whole_task(self, node: NodeAtHand) -> None:
        node.has(a_task(body="do it", extra={"a": 1.5}, models=["b", "a"]))
        got = node.claimed().task
        assert (got.body, got.extra, got.models) == ("do it", {"a": 1.5}, ["b", "a"])

    def test_numbers_go_on_and_tokens_differ(self, node: NodeAtHand) -> None:
        node.has(a_task())
        first = node.claimed()
        node.finish(first, "interrupted")
        second = node.claimed()
        assert (first.n, second.n) == (1, 2)
        assert first.token != second.token

    def test_numbers_go_on_after_a_restart(self, node: NodeAtHand) -> None:
        node.has(a_task())
        node.finish(node.claimed(), "interrupted")
        node.reopen()
        assert node.claimed().n == 2

    def test_numbers_go_on_when_the_task_comes_from_another_node(self, node: NodeAtHand) -> None:
        tried = [{"n": n, "node": "forge", "agent": "forge"} for n in (1, 2, 3)]
        node.takes(xfer(), a_task(attempts=tried, failures=2))
        assert node.claimed().n == 4

    def test_what_runs_is_listed_for_a_new_daemon_to_adopt(self, node: NodeAtHand) -> None:
        node.has(a_task(1, max_s=60), a_task(2))
        one = node.claimed()
        node.start(one, pid=77)
        two = node.claimed()
        node.reopen()

        attempts = {open_.uid: open_ for open_ in node.ask(q.OpenAttempts())}
        assert set(attempts) == {one.task.uid, two.task.uid}
        adopted = attempts[one.task.uid]
        assert (adopted.n, adopted.token, adopted.max_s) == (1, one.token, 60)
        assert (adopted.pid, adopted.start_ticks) == (77, 99)
        assert adopted.boot_id == node.clock.boot_id()
        assert attempts[two.task.uid].pid is None

    def test_only_the_attempt_that_was_claimed_starts(self, node: NodeAtHand) -> None:
        node.has(a_task())
        got = node.claimed()
        stale = c.Started(uid(), got.n + 1, 1, 1, "boot")

        assert node.say(stale) is False
        assert node.state(uid()) == "CLAIMED"
        assert node.start(got) is True
        assert node.state(uid()) == "RUNNING"

    def test_a_beat_counts_for_the_running_attempt_alone(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        node.clock.advance(30)

        assert node.say(c.Beat(uid(), got.n, "half way")) is True
        task = node.task(uid())
        assert task.progress == "half way"
        assert task.claim is not None
        assert task.claim["heartbeat_at"] == "2026-03-10T03:45:30.000Z"
        assert node.say(c.Beat(uid(), got.n + 1)) is False
        node.finish(got)
        assert node.say(c.Beat(uid(), got.n)) is False

    def test_a_claim_of_nothing_leaves_no_life_that_later_ones_belong_to(
        self, node: NodeAtHand
    ) -> None:
        """Fails when a claim goes by what an earlier one wrote, and nobody committed: what is under
        way would be found by nobody after a restart.
        """
        assert isinstance(node.claim(), c.NothingToClaim)
        assert isinstance(node.claim(), c.NothingToClaim)
        got = node.running(a_task())
        assert [one.uid for one in node.ask(q.OpenAttempts())] == [got.task.uid]
        node.reopen()
        assert [one.uid for one in node.ask(q.OpenAttempts())] == [got.task.uid]

    def test_what_is_claimed_after_a_quarantine_belongs_to_the_new_life(
        self, node: NodeAtHand
    ) -> None:
        node.finish(node.running(a_task(1)))
        before = node.facts().incarnation
        node.say(m.Quarantine("a drill"))
        node.say(m.Release("it was one"))
        got = node.running(a_task(2))
        (attempt,) = node.task(got.task.uid).attempts
        assert isinstance(attempt, dict)
        assert attempt["incarnation"] == node.facts().incarnation != before
        assert [one.uid for one in node.ask(q.OpenAttempts())] == [got.task.uid]

    def test_each_attempt_has_a_secret_of_its_own(self, node: NodeAtHand) -> None:
        node.has(*(a_task(number) for number in range(1, 101)))
        tokens = []
        for _ in range(100):
            got = node.claimed()
            tokens.append(got.token)
            node.finish(got)
        assert len({*tokens}) == 100
        assert {len(token) for token in tokens} == {32}

    def test_a_claim_may_be_rehearsed(self, node: NodeAtHand) -> None:
        node.has(a_task())
        before = node.dump()
        assert isinstance(node.say(c.Claim("iris"), dry_run=True), c.Claimed)
        assert node.dump() == before
