"""What a store promises about forgetting: only what is over, and never so that it comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.clock import iso
from tests.builders import DAY, Ending, NodeAtHand, a_task, uid, xfer
from tests.node.store.contract import Contract
from tests.node.store.contract_graphs import a_graph, ended, of, submit

LONG = 30 * DAY + 1


def forget(node: NodeAtHand, after: float = LONG) -> int:
    node.clock.advance(after)
    return node.say(c.Forget())


class Forgets(Contract):
    def test_a_task_that_ended_is_kept_for_thirty_days(self, node: NodeAtHand) -> None:
        node.finish(node.running(a_task(key="k")))
        assert forget(node, 30 * DAY - 1) == 0
        assert node.state(uid()) == "COMPLETED"
        assert node.add(a_task(2, key="k", subject="other"))[0].outcome == "refused"

        assert forget(node, 2) >= 1
        assert node.state(uid()) is None
        assert node.add(a_task(2, key="k", subject="other"))[0].outcome == "added"

    @pytest.mark.parametrize("state", ["READY", "RUNNING", "RETRYING", "PARKED", "ESCROW", "HELD"])
    def test_what_is_not_over_is_never_forgotten(self, node: NodeAtHand, state: str) -> None:
        if state == "HELD":
            node.hold(xfer(), a_task())
        else:
            node.has(a_task())
        if state in {"RUNNING", "RETRYING", "PARKED"}:
            got = node.running()
            kinds: dict[str, Ending] = {"RETRYING": "failed", "PARKED": "unproved"}
            kind = kinds.get(state)
            if kind:
                node.finish(got, kind, error_kind="crash")
        if state == "ESCROW":
            node.escrow(xfer(), a_task())
        forget(node, 400 * DAY)
        assert node.state(uid()) == state

    def test_a_moved_task_is_kept_until_its_end_is_known(self, node: NodeAtHand) -> None:
        node.gives_away(xfer(), node.has(a_task(body="do it")))
        forget(node)
        assert node.task(uid()).body == "do it"

        node.settled(xfer(), uid())
        forget(node)
        assert node.task(uid()).body == "do it"
        assert node.settled(xfer(), uid(), ended="COMPLETED").outcome == "settled"
        forget(node, 30 * DAY - 1)
        assert node.state(uid()) == "MOVED"
        forget(node, 2)
        assert node.state(uid()) is None

    def test_a_record_that_is_not_settled_is_kept(self, node: NodeAtHand) -> None:
        given = node.has(a_task())
        node.escrow(xfer(), given)
        node.abort(xfer(), uid())
        forget(node, 400 * DAY)
        assert node.commit(xfer(), uid()).outcome == "aborted"
        assert len(node.ask(q.Doubts())) == 1

    def test_what_was_forgotten_is_too_old_and_never_new(self, node: NodeAtHand) -> None:
        """Fails when forgetting does not raise the floor: a late hold would make two owners."""
        given = node.has(a_task())
        node.escrow(xfer(5), given)
        node.abort(xfer(5), uid())
        node.settled(xfer(5), uid())
        assert forget(node) >= 1

        assert node.facts().xfer_floor == xfer(5)
        before = node.dump()
        for number in (5, 4):
            assert node.commit(xfer(number), uid()).outcome == "too_old"
            assert node.abort(xfer(number), uid()).outcome == "too_old"
            assert node.settled(xfer(number), uid()).outcome == "too_old"
            assert node.activate(xfer(number), uid()).outcome == "too_old"
            assert node.drop(xfer(number), uid()).outcome == "too_old"
            assert node.escrow(xfer(number), given).outcome == "too_old"
            assert node.hold(xfer(number), a_task(9)).outcome == "too_old"
        assert node.dump() == before
        assert node.escrow(xfer(6), given).outcome == "escrowed"

    def test_a_late_hold_of_a_forgotten_move_is_too_old(self, node: NodeAtHand) -> None:
        node.takes(xfer(1), a_task())
        node.finish(node.running())
        forget(node)
        assert node.state(uid()) is None
        assert node.hold(xfer(1), a_task()).outcome == "too_old"
        assert node.hold(xfer(2), replace(a_task(), epoch=1)).outcome in {"held", "refused"}

    def test_a_takers_ended_records_age_by_themselves(self, node: NodeAtHand) -> None:
        node.hold(xfer(1), a_task(1))
        node.drop(xfer(1), uid(1))
        forget(node)
        assert node.hold(xfer(1), a_task(1)).outcome == "too_old"

    def test_a_record_of_what_is_still_here_is_kept_while_it_is(self, node: NodeAtHand) -> None:
        node.hold(xfer(1), a_task(1))
        forget(node, 400 * DAY)
        assert node.activate(xfer(1), uid(1)).outcome == "activated"

    def test_forgetting_is_bounded(self, node: NodeAtHand) -> None:
        for number in range(1, 6):
            node.has(a_task(number))
            node.say(c.Cancel(uid(number)))
        node.clock.advance(LONG)
        assert node.say(c.Forget(limit=2)) > 0
        assert node.facts().counts["CANCELLED"] >= 3
        for _ in range(3):
            node.say(c.Forget(limit=2))
        assert node.facts().counts.get("CANCELLED", 0) == 0

    def test_forgetting_raises_the_floor_only_over_what_it_forgot(self, node: NodeAtHand) -> None:
        one, two = a_task(1), a_task(2)
        node.has(one, two)
        node.escrow(xfer(1), one)
        node.abort(xfer(1), uid(1))
        node.settled(xfer(1), uid(1))
        node.escrow(xfer(2), two, lease_s=600)
        node.commit(xfer(2), uid(2))
        forget(node)
        assert node.facts().xfer_floor == xfer(1)
        assert node.commit(xfer(2), uid(2)).outcome == "committed"

    def test_a_forgotten_task_keeps_no_events_alive_for_ever(self, node: NodeAtHand) -> None:
        node.finish(node.running(a_task(1)))
        node.clock.advance(LONG)
        node.has(a_task(2))
        last = node.facts().event_seq
        node.say(c.Forget())

        assert [event.get("uid") for event in node.ask(q.Events())] == [uid(2)]
        node.has(a_task(3))
        assert node.facts().event_seq > last

    def test_a_completed_task_that_a_graph_needs_is_found_when_it_is_needed_no_more(
        self, node: NodeAtHand
    ) -> None:
        """Fails when the event goes by which a completed task is found, and the task stays."""
        graph = a_graph(a=[], b=["a"])
        submit(node, graph)
        assert ended(node) == "a"
        forget(node)
        forget(node)
        assert node.state(of(graph, "a")) == "COMPLETED"
        told = [one["event"] for one in node.ask(q.Events()) if one["uid"] == of(graph, "a")]
        assert told == ["task_completed"]

        assert ended(node) == "b"
        for _ in range(2):  # the graph goes after its tasks, and they with the next look
            forget(node)
        assert [node.state(of(graph, name)) for name in "ab"] == [None, None]

    def test_a_clock_that_was_ahead_for_a_while_keeps_nothing_for_ever(
        self, node: NodeAtHand
    ) -> None:
        """Fails when an event that lies in the future ends the look for old ones."""
        now = iso(node.clock.now())
        node.clock.advance(4000 * DAY)
        node.has(a_task(9, priority=10))
        node.clock.set_wall(now)
        node.finish(node.running(a_task(1)))
        forget(node)
        assert node.state(uid(1)) is None
        assert node.state(uid(9)) == "READY"

    def test_what_ended_in_other_ways_is_forgotten_beside_what_completed(
        self, node: NodeAtHand
    ) -> None:
        for number in range(1, 4):
            node.finish(node.running(a_task(number)))
        node.has(a_task(4))
        node.say(c.Cancel(uid(4)))
        node.finish(node.running(a_task(5)), "unproved")
        node.say(c.Resolve(uid(5), "done"))
        assert node.facts().counts == {"COMPLETED": 4, "CANCELLED": 1}
        node.reopen()
        assert node.facts().counts == {"COMPLETED": 4, "CANCELLED": 1}
        forget(node)
        assert node.facts().counts == {}

    def test_the_task_that_ended_last_is_told_however_it_ended(self, node: NodeAtHand) -> None:
        def last() -> object:
            told = node.facts().last_task
            return None if told is None else (told["uid"], told["outcome"])

        assert last() is None
        node.finish(node.running(a_task(1)), exit_code=0)
        assert last() == (uid(1), "completed")
        node.clock.advance(1)
        node.finish(node.running(a_task(2)), "failed", error_kind="auth_failure")
        assert last() == (uid(2), "failed")
        node.clock.advance(1)
        node.finish(node.running(a_task(3)))
        node.has(a_task(4))
        assert last() == (uid(3), "completed")
        node.reopen()
        assert last() == (uid(3), "completed")

    def test_the_task_that_ended_last_is_one_that_is_still_here(self, node: NodeAtHand) -> None:
        """Fails when the one that was told last is told again after it was forgotten."""
        node.finish(node.running(a_task(1)))
        assert (node.facts().last_task or {})["uid"] == uid(1)
        forget(node)
        assert node.state(uid(1)) is None
        assert node.facts().last_task is None
        node.reopen()
        assert node.facts().last_task is None
