"""What a store promises about a person's or the hub's word on one task or on the node."""

from __future__ import annotations

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.errors import BadInput, Refused
from agent_node.strict import JsonObject, JsonValue
from tests.builders import NodeAtHand, a_task, refusal, rule_of, uid, xfer
from tests.node.store.contract import Contract


def set_fields(node: NodeAtHand, **fields: JsonValue) -> c.Changed:
    return node.say(c.SetFields(uid(), fields, reason="asked to"))


class Obeys(Contract):
    def test_set_changes_a_waiting_task_and_raises_its_epoch(self, node: NodeAtHand) -> None:
        node.has(a_task(priority=5))
        changed = set_fields(node, priority=2, tags=["b", "a"], pinned=True, max_s=9)

        assert changed.outcome == "changed"
        task = node.task(uid())
        assert (task.priority, task.tags, task.pinned, task.max_s) == (2, ["a", "b"], True, 9)
        assert task.epoch == 2

    def test_set_orders_what_is_claimed_next(self, node: NodeAtHand) -> None:
        node.has(a_task(1), a_task(2))
        node.say(c.SetFields(uid(2), {"priority": 1}))
        assert node.claimed().task.uid == uid(2)

    def test_set_of_a_plain_priority_takes_back_the_finer_one(self, node: NodeAtHand) -> None:
        node.has(a_task(priority_100=90))
        set_fields(node, priority=1)
        task = node.task(uid())
        assert task.priority == 1
        assert task.priority_100 is None or task.priority_100 < 10

    def test_set_never_touches_what_the_hash_covers(self, node: NodeAtHand) -> None:
        node.has(a_task(body="pay 1"))
        covered: tuple[JsonObject, ...] = (
            {"body": "pay 100"}, {"needs": []}, {"state": "COMPLETED"}, {"epoch": 9},
        )  # fmt: skip
        for fields in covered:
            try:
                outcome = node.say(c.SetFields(uid(), fields)).outcome
            except (BadInput, Refused):
                outcome = "refused"
            assert outcome == "refused", fields
        assert node.task(uid()).epoch == 1
        assert node.claimed().task.body == "pay 1"

    def test_set_checks_each_value_and_changes_none_if_one_is_wrong(self, node: NodeAtHand) -> None:
        node.has(a_task())
        with pytest.raises(BadInput, match="priority"):
            set_fields(node, tags=["new"], priority=11)
        assert node.task(uid()).tags == []

    def test_a_later_start_takes_the_task_out_of_ready(self, node: NodeAtHand) -> None:
        node.has(a_task())
        set_fields(node, not_before="2026-03-10T03:46:00.000Z")

        assert node.state(uid()) in {"CREATED", "PENDING"}
        assert isinstance(node.claim(), c.NothingToClaim)
        set_fields(node, not_before=None)
        assert node.state(uid()) == "READY"

    def test_set_on_what_runs_or_has_ended_is_refused(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        assert set_fields(node, priority=1).outcome == "refused"
        node.finish(got)
        assert set_fields(node, priority=1).outcome == "refused"
        assert node.task(uid()).epoch == 1

    def test_a_waiting_task_is_cancelled_at_once(self, node: NodeAtHand) -> None:
        node.has(a_task())
        assert node.say(c.Cancel(uid(), "duplicate")).outcome == "changed"

        task = node.task(uid())
        assert (task.state, task.completed_at) == ("CANCELLED", "2026-03-10T03:45:00.000Z")
        assert isinstance(node.claim(), c.NothingToClaim)

    def test_a_running_task_is_asked_to_stop_first(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        answer = node.say(c.Cancel(uid(), "duplicate", c.Sender("human:ada")))

        assert (answer.outcome, node.state(uid())) == ("stopping", "RUNNING")
        (attempt,) = node.ask(q.OpenAttempts())
        assert "duplicate" in str(attempt.stopping)
        assert node.finish(got, "cancelled").state == "CANCELLED"

    def test_cancel_of_what_has_ended_is_refused(self, node: NodeAtHand) -> None:
        node.finish(node.running(a_task()))
        assert node.say(c.Cancel(uid())).outcome == "refused"
        assert node.state(uid()) == "COMPLETED"

    def test_retry_of_what_waits_or_runs_is_refused(self, node: NodeAtHand) -> None:
        node.has(a_task(not_before="2026-03-11T00:00:00.000Z"))
        assert node.say(c.RetryNow(uid())).outcome == "refused"
        node.say(c.SetFields(uid(), {"not_before": None}))
        node.claimed()
        assert node.say(c.RetryNow(uid())).outcome == "refused"
        assert node.state(uid()) == "CLAIMED"

    def test_a_cancelled_task_may_be_wanted_again(self, node: NodeAtHand) -> None:
        node.has(a_task())
        node.say(c.Cancel(uid()))
        assert node.say(c.RetryNow(uid(), "changed my mind")).outcome == "changed"
        task = node.task(uid())
        assert (task.state, task.completed_at) == ("READY", None)

    def test_a_task_that_is_wanted_again_waits_for_its_time(self, node: NodeAtHand) -> None:
        """Seen to fail: it ran at once, a day before the moment that it still named."""
        later = "2026-03-11T00:00:00.000Z"
        node.has(a_task(not_before=later))
        node.say(c.Cancel(uid()))
        said = node.say(c.RetryNow(uid(), "after all"), dry_run=True)
        assert said.task is not None
        assert (said.task.state, said.task.not_before) == ("PENDING", later)
        node.say(c.RetryNow(uid(), "after all"))
        task = node.task(uid())
        assert (task.state, task.not_before, task.ready_at) == ("PENDING", later, None)
        assert isinstance(node.claim(), c.NothingToClaim)
        told = next(one for one in node.ask(q.Events()) if one["event"] == "task_retried")
        assert told["state"] == "PENDING"
        assert f"after all; it waits for its time, {later}" in str(told["because"])
        again = node.say(c.RetryNow(uid()))
        assert again.because is not None
        assert f"is PENDING; it waits for its time, {later}; set not_before=" in again.because.text
        node.clock.set_wall(later)
        assert node.wake().readied == 1
        assert node.claimed().task.uid == uid()

    def test_a_task_that_is_wanted_again_waits_for_others_and_not_for_its_time_alone(
        self, node: NodeAtHand
    ) -> None:
        """Seen to fail: what it had waited for was taken to be told already, so its time alone
        held it, and it ran before the task that it depends on.
        """
        later = "2026-03-11T00:00:00.000Z"
        node.has(a_task(1, priority=9))
        node.has(a_task(2, not_before=later, depends_on=[{"uid": uid(1), "on_failure": "fail"}]))
        node.say(c.Cancel(uid(2)))
        node.say(c.RetryNow(uid(2), "after all"))
        told = next(one for one in node.events(uid(2)) if one["event"] == "task_retried")
        assert told["because"] == "after all; waits for other tasks to end"
        node.clock.set_wall(later)
        assert node.wake().readied == 0
        assert node.state(uid(2)) == "PENDING"
        assert node.claimed().task.uid == uid(1)
        assert isinstance(node.claim(), c.NothingToClaim)

    def test_a_time_that_is_cleared_or_has_passed_holds_nobody(self, node: NodeAtHand) -> None:
        node.has(*(a_task(n, not_before="2026-03-11T00:00:00.000Z") for n in (1, 2)))
        for number in (1, 2):
            node.say(c.Cancel(uid(number)))
        node.say(c.RetryNow(uid(1)))
        assert node.say(c.SetFields(uid(1), {"not_before": None})).outcome == "changed"
        assert node.state(uid(1)) == "READY"
        node.clock.set_wall("2026-03-11T00:00:00.000Z")
        node.say(c.RetryNow(uid(2)))
        assert node.state(uid(2)) == "READY"

    def test_retry_of_what_is_ready_changes_nothing(self, node: NodeAtHand) -> None:
        node.has(a_task())
        before = node.dump()
        said = node.say(c.RetryNow(uid()))
        assert (said.outcome, said.already) == ("changed", True)
        assert node.dump() == before

    def test_a_second_cancel_says_that_it_was_so_before(self, node: NodeAtHand) -> None:
        """Seen to fail before: whoever asked twice was told of a change twice."""
        node.has(a_task())
        assert not node.say(c.Cancel(uid(), "duplicate")).already
        said = node.say(c.Cancel(uid(), "duplicate"))
        assert (said.outcome, said.already) == ("changed", True)

    def test_what_is_set_to_what_it_is_says_that_it_was_so_before(self, node: NodeAtHand) -> None:
        """Seen to fail before: a person's reason was told to be kept, and no event had it."""
        node.has(a_task(priority=2))
        before = node.dump()
        assert set_fields(node, priority=2).already
        assert node.dump() == before
        assert not set_fields(node, priority=3).already

    def test_a_success_is_not_tried_again(self, node: NodeAtHand) -> None:
        node.finish(node.running(a_task()))
        assert node.say(c.RetryNow(uid())).outcome == "refused"

    @pytest.mark.parametrize(
        ("to", "state"), [("done", "COMPLETED"), ("failed", "FAILED"), ("cancelled", "CANCELLED")]
    )
    def test_a_person_decides_what_became_of_a_parked_task(
        self, node: NodeAtHand, to: str, state: str
    ) -> None:
        node.finish(node.running(a_task()), "unproved")
        answer = node.say(c.Resolve(uid(), to, "I looked"))  # type: ignore[arg-type]

        assert answer.outcome == "changed"
        assert node.state(uid()) in ({"FAILED", "DEAD_LETTERED"} if to == "failed" else {state})
        assert "I looked" in str(node.events(uid())[-1])

    def test_nobody_resolves_what_is_not_in_doubt(self, node: NodeAtHand) -> None:
        node.has(a_task())
        assert node.say(c.Resolve(uid(), "done")).outcome == "refused"
        assert node.state(uid()) == "READY"

    @pytest.mark.parametrize("word", [c.Cancel, c.RetryNow])
    def test_words_on_an_unknown_task_say_so(self, node: NodeAtHand, word: type) -> None:
        assert rule_of(node.say(word(uid(9)))) == "unknown_task"

    def test_words_on_a_task_that_is_being_moved_are_refused(self, node: NodeAtHand) -> None:
        given = node.has(a_task(1))
        node.escrow(xfer(1), given)
        node.hold(xfer(2), a_task(2))
        for number in (1, 2):
            before = node.task(uid(number))
            words = (
                c.SetFields(uid(number), {"priority": 1}),
                c.Cancel(uid(number)),
                c.RetryNow(uid(number)),
                c.Resolve(uid(number), "done"),
            )
            assert [refusal(node, word) for word in words[:3]] == ["in_transfer"] * 3
            assert node.say(words[3]).outcome == "refused"
            assert node.task(uid(number)) == before

    def test_words_on_a_task_that_moved_away_say_where(self, node: NodeAtHand) -> None:
        node.gives_away(xfer(), node.has(a_task()))
        for word in (c.SetFields(uid(), {"priority": 1}), c.Cancel(uid()), c.RetryNow(uid())):
            answer = node.say(word)
            assert rule_of(answer) == "moved_to"
            assert answer.because is not None
            assert "loom" in answer.because.text

    def test_pausing_twice_is_pausing_once(self, node: NodeAtHand) -> None:
        node.say(c.SetNode("paused", "upgrade"))
        before = node.dump()
        node.say(c.SetNode("paused", "upgrade"))
        assert node.dump() == before

    def test_stopping_twice_is_stopping_once(self, node: NodeAtHand) -> None:
        node.running(a_task())
        assert node.say(c.Cancel(uid(), "duplicate")).outcome == "stopping"
        before = node.dump()
        assert node.say(c.Cancel(uid(), "duplicate")).outcome == "stopping"
        assert node.dump() == before

    def test_a_paused_node_finishes_what_runs(self, node: NodeAtHand) -> None:
        got = node.running(a_task())
        node.say(c.SetNode("paused", "upgrade"))
        assert node.finish(got).accepted

    def test_a_paused_node_still_gives_tasks_away(self, node: NodeAtHand) -> None:
        given = node.has(a_task())
        node.say(c.SetNode("draining", "goes home"))
        assert node.escrow(xfer(), given, why="drained").outcome == "escrowed"

    @pytest.mark.parametrize("word", ["set", "cancel", "pause"])
    def test_a_rehearsed_word_changes_nothing(self, node: NodeAtHand, word: str) -> None:
        node.has(a_task())
        before = node.dump()
        node.say(
            {
                "set": c.SetFields(uid(), {"priority": 1}),
                "cancel": c.Cancel(uid()),
                "pause": c.SetNode("paused", "no"),
            }[word],
            dry_run=True,
        )
        assert node.dump() == before
        assert node.facts().state == "active"
