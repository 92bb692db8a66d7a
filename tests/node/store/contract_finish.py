"""What a store promises about results: each accepted once, and nothing that fails its hash runs."""

from __future__ import annotations

import pytest

from agent_node import commands as c
from agent_node import moves as m
from tests.builders import Ending, NodeAtHand, a_task, an_agent, rule_of, uid, xfer
from tests.node.store.contract import Contract


class Finishes(Contract):
    def test_a_success_ends_the_task_with_what_it_brought(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        node.clock.advance(12)
        done = node.finish(
            got, output={"pr": 7}, artifacts=["a.txt"], cost_usd="0.12", tokens={"input": 9},
            exit_code=0, duration_s=12.0,
        )  # fmt: skip

        assert done == c.Finished(True, "COMPLETED", None, None)
        task = node.task(uid())
        assert (task.state, task.output, task.artifacts) == ("COMPLETED", {"pr": 7}, ["a.txt"])
        assert (task.cost_usd, task.tokens) == ("0.12", {"input": 9})
        assert task.completed_at == "2026-03-10T03:45:12.000Z"
        assert task.claim is None

    def test_each_moment_of_its_life_is_told(self, node: NodeAtHand) -> None:
        node.has(a_task())
        node.clock.advance(5)
        got = node.running()
        node.clock.advance(12)
        node.finish(got)
        task = node.task(uid())
        assert (task.created_at, task.ready_at) == ("2026-03-10T03:45:00.000Z",) * 2
        assert task.started_at == "2026-03-10T03:45:05.000Z"
        assert task.completed_at == "2026-03-10T03:45:17.000Z"

    def test_a_program_may_end_before_its_start_was_recorded(self, node: NodeAtHand) -> None:
        node.has(a_task())
        assert node.finish(node.claimed()).state == "COMPLETED"

    def test_a_result_is_accepted_once(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        node.finish(got, output="first")
        before = node.dump()
        late = node.finish(got, output="second")

        assert (late.accepted, rule_of(late)) == (False, "late_result")
        assert node.task(uid()).output == "first"
        assert node.dump()["task"] == before["task"]

    def test_the_result_of_an_older_attempt_is_refused(self, node: NodeAtHand) -> None:
        node.has(a_task())
        old = node.claimed()
        node.finish(old, "interrupted")
        new = node.running()

        late = node.finish(old, output="stale")
        assert (late.accepted, rule_of(late)) == (False, "late_result")
        assert node.state(uid()) == "RUNNING"
        assert node.finish(new, output="fresh").accepted

    def test_the_result_of_a_task_that_moved_away_is_refused(self, node: NodeAtHand) -> None:
        given = node.has(a_task())
        old = node.claimed()
        node.finish(old, "interrupted")
        node.gives_away(xfer(), given)

        late = node.finish(old)
        assert (late.accepted, rule_of(late)) == (False, "late_result")
        assert node.state(uid()) == "MOVED"

    def test_a_result_for_nothing_is_refused(self, node: NodeAtHand) -> None:
        answer = node.say(c.Finish(uid(5), 1, c.Result("completed")))
        assert not answer.accepted
        assert rule_of(answer) in {"late_result", "unknown_task"}

    def test_finishing_claims_the_next_in_the_same_breath(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("iris"))
        node.has(a_task(1), a_task(2))
        done = node.finish(node.running(), then_claim="iris")

        assert isinstance(done.next, c.Claimed)
        assert (done.state, done.next.task.uid, done.next.n) == ("COMPLETED", uid(2), 1)
        assert node.state(uid(2)) == "CLAIMED"

    def test_the_next_is_still_claimed_when_the_result_is_late(self, node: NodeAtHand) -> None:
        node.has(a_task(1))
        got = node.running()
        node.finish(got)
        node.has(a_task(2))

        late = node.finish(got, then_claim="iris")
        assert not late.accepted
        assert isinstance(late.next, c.Claimed)

    def test_finishing_on_a_paused_node_records_and_claims_nothing(self, node: NodeAtHand) -> None:
        node.has(a_task(1), a_task(2))
        got = node.running()
        node.say(c.SetNode("paused", "upgrade"))
        done = node.finish(got, then_claim="iris")

        assert done.state == "COMPLETED"
        assert isinstance(done.next, c.NothingToClaim)
        assert rule_of(done.next) == "paused"

    def test_a_program_that_was_stopped_by_request_is_cancelled(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        assert node.say(c.Cancel(uid(), "wrong branch")).outcome == "stopping"
        assert node.finish(got, "cancelled").state == "CANCELLED"

    def test_a_success_that_beat_the_cancel_is_kept(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        node.say(c.Cancel(uid(), "too slow"))
        assert node.finish(got, output="done after all").state == "COMPLETED"

    def test_a_cancelled_task_does_not_run_again_whatever_killed_it(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        node.say(c.Cancel(uid(), "wrong branch"))
        assert node.finish(got, "interrupted").state == "CANCELLED"

    def test_what_cannot_be_proved_waits_for_a_person(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        assert node.finish(got, "unproved", message="a process without a name").state == "PARKED"
        assert node.wake(after=10**6).readied == 0
        assert isinstance(node.claim(), c.NothingToClaim)

    @pytest.mark.parametrize("restarted", [False, True])
    def test_an_agent_that_fails_at_everything_recovers_with_one_success(
        self, node: NodeAtHand, restarted: bool
    ) -> None:
        for number in range(5):
            node.finish(node.running(a_task(number, max_attempts=1)), "failed", error_kind="crash")
        assert [agent.state for agent in node.facts().agents] == ["failing"]
        if restarted:
            node.reopen()
        node.finish(node.running(a_task(9)))
        assert [agent.state for agent in node.facts().agents] == ["active"]

    @pytest.mark.parametrize("kind", ["completed", "failed", "interrupted", "unproved"])
    def test_every_end_frees_the_slot(self, node: NodeAtHand, kind: Ending) -> None:
        node.set_agents(an_agent("iris"))
        node.finish(node.running(a_task(1)), kind)
        node.has(a_task(2, priority=1))
        assert node.claimed().task.uid == uid(2)

    def test_every_change_leaves_an_event_that_says_why(self, node: NodeAtHand) -> None:
        node.has(a_task(max_attempts=2))
        node.finish(node.running(), "failed", error_kind="crash", message="exit 3")
        node.wake(after=60)
        node.finish(node.running(), "failed", error_kind="crash", message="exit 4")
        node.say(c.RetryNow(uid(), "fixed the disk"))
        node.say(c.Cancel(uid(), "no longer wanted"))

        path = [event["state"] for event in node.events(uid()) if event.get("state")]
        assert path == [
            "READY", "CLAIMED", "RUNNING", "FAILED", "RETRYING", "READY",
            "CLAIMED", "RUNNING", "FAILED", "DEAD_LETTERED", "READY", "CANCELLED",
        ]  # fmt: skip
        said = " ".join(str(event) for event in node.events(uid()))
        for reason in ("exit 3", "exit 4", "fixed the disk", "no longer wanted"):
            assert reason in said

    def test_a_task_whose_hash_is_wrong_never_runs_and_says_so(self, node: NodeAtHand) -> None:
        """Fails when the claim skips the hash, or names the event of what it set aside."""
        node.has(a_task(1, body="pay 1 coin"), a_task(2))
        node.close()
        node.backend.damage_spec(node.place, uid(1))
        node.open()

        assert node.claimed().task.uid == uid(2)
        assert isinstance(node.claim(), c.NothingToClaim)
        assert node.state(uid(1)) == "PARKED"
        assert "hash" in str(node.events(uid(1))[-1]).lower()
        assert [one["event"] for one in node.events(uid(2))] == ["task_added", "task_claimed"]

    def test_a_damaged_task_does_not_travel(self, node: NodeAtHand) -> None:
        """Fails when escrow skips the hash."""
        given = node.has(a_task(1, body="pay 1 coin"), a_task(2))
        node.close()
        node.backend.damage_spec(node.place, uid(1))
        node.open()

        answer = node.say(
            m.Escrow("loom", "stolen", 60, (m.Move(xfer(1), uid(1), 1), m.Move(xfer(2), uid(2), 1)))
        )
        assert [one.outcome for one in answer] == ["refused", "escrowed"]
        assert rule_of(answer[0]) == "hash_mismatch"
        assert node.state(given.uid) in {"PARKED", "READY"}

    def test_ends_are_ends(self, node: NodeAtHand) -> None:
        node.finish(node.running(a_task()))
        assert not node.start(c.Claimed(node.task(uid()), 1, "token"))
        assert node.state(uid()) == "COMPLETED"
