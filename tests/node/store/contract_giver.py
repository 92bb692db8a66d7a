"""What a store promises while it gives a task away: escrow, commit, abort, and leases."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import BadInput, Refused
from agent_node.spec import hash_of, spec_of
from agent_node.task import task_from, to_wire
from tests.builders import NodeAtHand, a_task, rule_of, uid, xfer
from tests.node.store.contract import Contract


class Gives(Contract):
    def test_escrow_sets_a_ready_task_aside_and_hands_it_over_whole(self, node: NodeAtHand) -> None:
        given = node.has(a_task(body="do it", extra={"a": 1.5}, tags=["t"], key="k"))
        taken = node.escrow(xfer(), given)

        assert (taken.xfer, taken.outcome, taken.because) == (xfer(), "escrowed", None)
        assert taken.task is not None
        assert (taken.task.body, taken.task.extra, taken.task.key) == ("do it", {"a": 1.5}, "k")
        assert taken.sha256 == hash_of(spec_of(taken.task))
        assert node.state(uid()) == "ESCROW"
        assert isinstance(node.claim(), c.NothingToClaim)

    def test_a_task_takes_its_attempts_along(self, node: NodeAtHand) -> None:
        given = node.has(a_task())
        node.finish(node.running(), "interrupted")
        taken = node.escrow(xfer(), given).task
        assert taken is not None
        (attempt,) = taken.attempts
        assert isinstance(attempt, dict)
        assert attempt["n"] == 1
        assert taken.interruptions == 1

    @pytest.mark.parametrize("fields", [
        {}, {"tags": ["t"], "priority": 7, "domain": "d"}, {"heat": 2}, {"fallback_models": ["f"]},
        {"priority_100": 33}, {"deadline": "2030-01-01T00:00:00.000Z"}, {"boost_per_minute": 3},
    ])  # fmt: skip
    def test_an_escrow_hands_over_what_the_task_says(
        self, node: NodeAtHand, fields: dict[str, Any]
    ) -> None:
        """Whatever a column holds, the taker is given the task that `show` prints."""
        node.has(a_task(**fields))
        taken = node.escrow(xfer(), node.task(uid()))
        assert taken.task == node.task(uid())
        assert node.escrow(xfer(), node.task(uid())).task == taken.task

    @pytest.mark.parametrize("fields", [
        {}, {"tags": ["t"], "priority": 7, "domain": "d"}, {"skills": ["s"], "needs": ["python"]},
        {"heat": 2}, {"body": 'é \\"\n\U0001f600'}, {"body": '"extra":{"a":1.5}'},
        {"extra": {"a": 1.5, "float": "1"}}, {"extra": {"float": "1.5"}}, {"retry": {"max_s": 0.5}},
        {"key": "k", "origin": "cron:daily", "expected_s": 3, "max_attempts": 5, "models": ["m"]},
    ])  # fmt: skip
    def test_an_escrow_tells_tersely_what_it_would_hand_over_whole(
        self, node: NodeAtHand, fields: dict[str, Any]
    ) -> None:
        """Fails with a field that is left out though the task says something in it."""
        node.has(a_task(**fields))
        taken = node.escrow(xfer(), node.task(uid()), terse=True)
        assert taken.task is None
        assert task_from(json.loads(str(taken.told))) == node.task(uid())
        assert taken.sha256 == hash_of(spec_of(node.task(uid())))
        again = node.escrow(xfer(), node.task(uid()), terse=True).told
        assert json.loads(str(again)) == json.loads(str(taken.told))
        assert "max_s" not in json.loads(str(taken.told))  # which none of them says

    def test_an_escrow_tells_tersely_what_became_of_earlier_attempts(
        self, node: NodeAtHand
    ) -> None:
        node.has(a_task())
        node.finish(node.running(), "interrupted", message="the machine went down")
        taken = node.escrow(xfer(), node.task(uid()), terse=True)
        told = task_from(json.loads(str(taken.told)))
        assert told == node.task(uid())
        assert len(told.attempts) == 1

    def test_an_escrow_hands_over_what_became_of_earlier_attempts(self, node: NodeAtHand) -> None:
        node.has(a_task())
        node.finish(node.running(), "interrupted", message="the machine went down")
        taken = node.escrow(xfer(), node.task(uid()))
        assert taken.task == node.task(uid())
        assert taken.task is not None
        assert (taken.task.interruptions, len(taken.task.attempts)) == (1, 1)

    def test_commit_makes_it_the_takers_and_keeps_the_whole_task(self, node: NodeAtHand) -> None:
        given = node.has(a_task(body="do it", key="k"))
        node.escrow(xfer(), given)
        assert node.commit(xfer(), uid()).outcome == "committed"

        kept = node.task(uid())
        assert (kept.state, kept.epoch, kept.body, kept.key) == ("MOVED", 2, "do it", "k")
        assert isinstance(node.claim(), c.NothingToClaim)

    def test_abort_makes_it_ready_here_again_at_a_higher_epoch(self, node: NodeAtHand) -> None:
        given = node.has(a_task())
        node.escrow(xfer(), given)
        assert node.abort(xfer(), uid()).outcome == "aborted"

        assert (node.state(uid()), node.task(uid()).epoch) == ("READY", 2)
        assert node.claimed().task.uid == uid()

    def test_a_move_that_came_to_nothing_leaves_since_when_it_waits(self, node: NodeAtHand) -> None:
        """Seen to fail: a task that was offered and given back in each cycle had never waited long,
        and the node where it stood was never found stalled."""
        given = node.has(a_task())
        since = node.task(uid()).ready_at
        for number in (1, 2):
            node.wake(after=300)
            assert node.escrow(xfer(number), node.task(uid())).outcome == "escrowed"
            assert node.abort(xfer(number), uid()).outcome == "aborted"
        node.escrow(xfer(3), node.task(uid()))
        node.wake(after=3600)

        assert (node.state(uid()), node.task(uid()).epoch) == ("READY", given.epoch + 3)
        assert node.task(uid()).ready_at == since is not None
        assert node.facts().oldest_ready_at == since

    def test_an_escrow_that_was_decided_on_an_older_epoch_is_refused(
        self, node: NodeAtHand
    ) -> None:
        """Fails when escrow skips the epoch: a late escrow would take back what an abort gave."""
        given = node.has(a_task())
        node.say(c.SetFields(uid(), {"priority": 1}))
        assert rule_of(node.escrow(xfer(), given, epoch=1)) == "epoch_changed"
        assert node.state(uid()) == "READY"

    def test_an_escrow_of_a_future_epoch_is_refused(self, node: NodeAtHand) -> None:
        given = node.has(a_task())
        assert rule_of(node.escrow(xfer(), given, epoch=2)) == "epoch_changed"

    def test_only_a_ready_task_is_given(self, node: NodeAtHand) -> None:
        given = node.has(a_task())
        got = node.claimed()
        assert rule_of(node.escrow(xfer(1), given)) == "not_ready"
        node.start(got)
        assert rule_of(node.escrow(xfer(2), given)) == "not_ready"
        node.finish(got)
        assert rule_of(node.escrow(xfer(3), given)) == "not_ready"

    def test_a_task_is_in_one_transfer_at_a_time(self, node: NodeAtHand) -> None:
        given = node.has(a_task())
        node.escrow(xfer(1), given)
        assert rule_of(node.escrow(xfer(2), given, to="forge")) in {"in_transfer", "not_ready"}
        node.commit(xfer(1), uid())
        assert rule_of(node.escrow(xfer(3), given, to="forge")) == "moved_to"

    def test_an_unknown_task_is_not_given(self, node: NodeAtHand) -> None:
        assert rule_of(node.escrow(xfer(), a_task(), epoch=1)) == "unknown_task"

    def test_a_pinned_task_moves_only_by_hand(self, node: NodeAtHand) -> None:
        given = node.has(a_task(pinned=True))
        assert rule_of(node.escrow(xfer(1), given)) == "pinned"
        assert node.escrow(xfer(2), given, why="moved", even_if_pinned=True).outcome == "escrowed"

    def test_each_of_a_batch_is_judged_by_itself(self, node: NodeAtHand) -> None:
        node.has(a_task(1), a_task(2, pinned=True), a_task(3))
        moves = tuple(m.Move(xfer(n), uid(n), 1) for n in (1, 2, 3, 4))
        answers = node.say(m.Escrow("loom", "stolen", 60, moves))
        said = ["escrowed", "refused", "escrowed", "refused"]
        assert [answer.outcome for answer in answers] == said
        assert [answer.xfer for answer in answers] == [xfer(n) for n in (1, 2, 3, 4)]

    def test_one_uid_twice_in_a_batch_is_given_once(self, node: NodeAtHand) -> None:
        node.has(a_task())
        moves = (m.Move(xfer(1), uid(), 1), m.Move(xfer(2), uid(), 1))
        answers = node.say(m.Escrow("loom", "stolen", 60, moves))
        assert [answer.outcome for answer in answers] == ["escrowed", "refused"]

    @pytest.mark.parametrize("terse", [False, True])
    def test_a_batch_whose_bodies_exceed_one_line_is_cut_off(
        self, node: NodeAtHand, terse: bool
    ) -> None:
        tasks = [a_task(n, body="é" * 125_000) for n in range(40)]
        node.has(*tasks)
        moves = tuple(m.Move(xfer(n), uid(n), 1) for n in range(40))
        answers = node.say(m.Escrow("loom", "stolen", 60, moves, terse=terse))

        given = [answer for answer in answers if answer.outcome == "escrowed"]
        assert 20 <= len(given) <= 33
        assert {rule_of(answer) for answer in answers[len(given) :]} == {"batch_full"}
        assert node.state(uid(39)) == "READY"

    @pytest.mark.parametrize("lease_s", [9.999, 600.001, 0, -1])
    def test_a_lease_is_ten_to_six_hundred_seconds(self, node: NodeAtHand, lease_s: float) -> None:
        given = node.has(a_task())
        try:
            outcome = node.escrow(xfer(), given, lease_s=lease_s).outcome
        except (BadInput, Refused):
            outcome = "refused"
        else:
            outcome = "clamped" if outcome == "escrowed" else outcome
        assert outcome in {"refused", "clamped"}
        if outcome == "clamped":
            node.wake(after=min(max(lease_s, 10), 600) - 0.001)
            assert node.state(uid()) == "ESCROW"
            node.wake(after=0.001)
            assert node.state(uid()) == "READY"

    @pytest.mark.parametrize("lease_s", [10, 600])
    def test_a_lease_ends_by_seconds_since_boot(self, node: NodeAtHand, lease_s: float) -> None:
        given = node.has(a_task())
        node.escrow(xfer(), given, lease_s=lease_s)
        assert node.wake().next_lease == node.clock.boottime() + lease_s

        node.wake(after=lease_s - 0.001)
        assert node.state(uid()) == "ESCROW"
        assert node.wake(after=0.001).readied == 1
        assert (node.state(uid()), node.task(uid()).epoch) == ("READY", 2)
        assert node.commit(xfer(), uid()).outcome == "aborted"

    def test_a_wall_clock_that_jumps_ends_no_lease(self, node: NodeAtHand) -> None:
        node.escrow(xfer(), node.has(a_task()))
        node.clock.set_wall("2031-01-01T00:00:00.000Z")
        node.wake()
        assert node.state(uid()) == "ESCROW"

    def test_another_boot_ends_every_lease(self, node: NodeAtHand) -> None:
        """The count since boot is lower than before; the name of the boot decides."""
        node.escrow(xfer(), node.has(a_task()), lease_s=600)
        node.reboot()
        node.wake()
        assert node.state(uid()) == "READY"
        assert node.commit(xfer(), uid()).outcome == "aborted"

    def test_a_restarted_daemon_keeps_a_lease(self, node: NodeAtHand) -> None:
        node.escrow(xfer(), node.has(a_task()))
        node.reopen()
        node.wake(after=59)
        assert node.state(uid()) == "ESCROW"
        assert node.commit(xfer(), uid()).outcome == "committed"

    def test_a_lease_that_ended_but_was_not_looked_at_still_commits(self, node: NodeAtHand) -> None:
        """Until an abort is recorded the row is ESCROW(x), and that alone decides."""
        node.escrow(xfer(), node.has(a_task()), lease_s=10)
        node.clock.advance(11)
        assert node.commit(xfer(), uid()).outcome in {"committed", "aborted"}
        assert node.state(uid()) in {"MOVED", "READY"}

    def test_a_transfer_is_bound_to_its_task_and_taker(self, node: NodeAtHand) -> None:
        one, two = a_task(1), a_task(2)
        node.has(one, two)
        node.escrow(xfer(1), one)
        before = node.dump()

        assert node.commit(xfer(1), uid(2)).outcome in {"refused", "unknown"}
        assert node.commit(xfer(1), uid(1), peer="forge").outcome in {"refused", "unknown"}
        assert node.dump()["task"] == before["task"]
        assert (node.state(uid(1)), node.state(uid(2))) == ("ESCROW", "READY")

    def test_doubts_name_what_is_not_over_at_the_giver(self, node: NodeAtHand) -> None:
        tasks = [a_task(n) for n in (1, 2, 3, 4)]
        node.has(*tasks)
        for n in (1, 2, 3):
            node.escrow(xfer(n), tasks[n - 1])
        node.commit(xfer(2), uid(2))
        node.abort(xfer(3), uid(3))
        node.clock.advance(5)

        doubts = {doubt.xfer: doubt for doubt in node.ask(q.Doubts())}
        states = {x: (d.uid, d.side, d.state, d.peer) for x, d in doubts.items()}
        assert states == {
            xfer(1): (uid(1), "giver", "ESCROW", "loom"),
            xfer(2): (uid(2), "giver", "MOVED", "loom"),
            xfer(3): (uid(3), "giver", "ABORTED", "loom"),
        }
        assert doubts[xfer(1)].age_s == pytest.approx(5)
        for n in (2, 3):
            assert node.settled(xfer(n), uid(n)).outcome == "settled"
        assert [doubt.xfer for doubt in node.ask(q.Doubts())] == [xfer(1)]

    def test_an_escrow_is_not_over_and_cannot_be_settled(self, node: NodeAtHand) -> None:
        node.escrow(xfer(), node.has(a_task()))
        assert node.settled(xfer(), uid()).outcome != "settled"
        assert node.state(uid()) == "ESCROW"
        assert len(node.ask(q.Doubts())) == 1

    def test_every_move_is_shown_with_its_task(self, node: NodeAtHand) -> None:
        node.gives_away(xfer(), node.has(a_task()))
        shown = node.shown(uid())
        assert shown is not None
        assert [(move["xfer"], move["outcome"]) for move in shown.moves] == [(xfer(), "committed")]

    def test_all_that_happened_in_its_moves_is_told_with_a_task(self, node: NodeAtHand) -> None:
        """Fails when a move does not name an event of its own, or names another's."""
        for number in (1, 2, 3):
            node.has(a_task(number))
        node.escrow(xfer(1), node.task(uid(1)))
        node.abort(xfer(1), uid(1))
        node.gives_away(xfer(2), node.task(uid(1)))
        node.escrow(xfer(3), node.task(uid(2)), lease_s=10)
        node.wake(11)
        node.hold(xfer(4), a_task(4))
        node.hold(xfer(5), a_task(4, epoch=2))
        node.drop(xfer(5), uid(4))
        node.takes(xfer(6), a_task(5))
        every = node.ask(q.Events(after_seq=0))
        told = {number: node.events(uid(number)) for number in (1, 2, 3, 5)}
        for number, events in told.items():
            assert list(events) == [event for event in every if event.get("uid") == uid(number)]
        assert [event["event"] for event in told[1]] == [
            "task_added", "task_escrowed", "task_given_back", "task_escrowed", "task_moved",
        ]  # fmt: skip
        assert all("n" not in event for event in every)

    def test_what_leaves_and_comes_back_is_the_same_task(self, node: NodeAtHand) -> None:
        given = a_task(body="do it", key="k", tags=["t"], extra={"a": 1.5}, priority=7)
        node.has(given)
        left = node.gives_away(xfer(1), given)
        back = node.hold(xfer(2), left, giver="loom")
        assert back.outcome == "refused", "an epoch no higher than the tombstone's must not land"

        node.takes(xfer(3), replace(left, epoch=left.epoch + 1, hops=1), giver="loom")
        kept = to_wire(node.task(uid()))
        for name in ("body", "key", "tags", "extra", "priority", "created_at", "origin"):
            assert kept[name] == to_wire(left)[name]
        assert kept["hops"] == 2

    def test_what_left_is_told_by_peer_with_the_transfer_and_the_incarnation(
        self, node: NodeAtHand
    ) -> None:
        node.has(a_task(1), a_task(2), a_task(3))
        node.gives_away(xfer(1), a_task(1), peer_incarnation="01J00000000000000000000001")
        node.gives_away(xfer(2), a_task(2), to="forge")
        told = node.ask(q.Moved(peer="loom"))
        assert [(one.uid, one.xfer, one.peer_incarnation) for one in told] == [
            (uid(1), xfer(1), "01J00000000000000000000001")
        ]
        assert (told[0].epoch, told[0].settled, told[0].ended, told[0].here) == (
            2, False, None, False
        )
        assert [one.uid for one in node.ask(q.Moved())] == [uid(1), uid(2)]

    def test_a_task_whose_end_is_known_is_no_longer_open(self, node: NodeAtHand) -> None:
        node.has(a_task(1), a_task(2))
        node.gives_away(xfer(1), a_task(1))
        node.gives_away(xfer(2), a_task(2))
        node.settled(xfer(1), uid(1), ended="COMPLETED")
        node.settled(xfer(2), uid(2))
        told = node.ask(q.Moved())
        assert [(one.settled, one.ended) for one in told] == [(True, "COMPLETED"), (True, None)]
        assert [one.uid for one in node.ask(q.Moved(open_only=True))] == [uid(2)]

    def test_pages_of_what_left_follow_each_other(self, node: NodeAtHand) -> None:
        node.has(a_task(1), a_task(2))
        node.gives_away(xfer(1), a_task(1))
        node.gives_away(xfer(2), a_task(2))
        (first,) = node.ask(q.Moved(limit=1))
        (second,) = node.ask(q.Moved(after=first.uid, limit=1))
        assert (first.uid, second.uid) == (uid(1), uid(2))
        assert node.ask(q.Moved(after=second.uid)) == ()
