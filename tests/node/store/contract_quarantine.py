"""What a store promises in quarantine: nothing runs, nothing moves, and a person is asked."""

from __future__ import annotations

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import Refused
from agent_node.spec import hash_of, spec_of
from tests.builders import NodeAtHand, Settling, a_task, refusal, rule_of, uid, xfer
from tests.node.store.contract import Contract

T9 = a_task(9)
CUT_OFF = c.Because("bad_task", "it was cut off")


def with_everything(node: NodeAtHand) -> NodeAtHand:
    """READY 1, ESCROW 2, HELD 3, RUNNING 4, MOVED 5, RETRYING 6, COMPLETED 7."""
    node.finish(node.running(a_task(7)))
    node.finish(node.running(a_task(6)), "failed", error_kind="crash")
    node.running(a_task(4))
    node.has(a_task(1), a_task(2), a_task(5))
    node.escrow(xfer(2), a_task(2))
    node.hold(xfer(3), a_task(3))
    node.gives_away(xfer(5), a_task(5))
    return node


def quarantined(node: NodeAtHand) -> NodeAtHand:
    with_everything(node)
    node.say(m.Quarantine("an older copy was put back"))
    return node


def said(node: NodeAtHand, command: c.Command[object]) -> str:
    """What came of it: the outcome's own word, or `refused`."""
    try:
        outcome = node.say(command)
    except Refused:
        return "refused"
    first = outcome[0] if isinstance(outcome, tuple) else outcome
    return str(getattr(first, "outcome", first))


class Quarantines(Contract):
    def test_nothing_runs(self, node: NodeAtHand) -> None:
        quarantined(node)
        assert rule_of(node.claim()) == "quarantined"
        node.reopen()
        assert rule_of(node.claim()) == "quarantined"
        assert (node.facts().state, node.facts().reason) == (
            "quarantined", "an older copy was put back",
        )  # fmt: skip

    def test_what_was_on_its_way_or_running_waits_for_a_person(self, node: NodeAtHand) -> None:
        quarantined(node)
        states = {number: node.state(uid(number)) for number in range(1, 8)}
        assert {states[number] for number in (2, 3, 4)} == {"PARKED"}
        assert (states[5], states[7]) == ("MOVED", "COMPLETED")
        assert states[1] in {"READY", "PARKED"}

    def test_a_new_life_has_a_later_name(self, node: NodeAtHand) -> None:
        before = node.facts().incarnation
        node.clock.advance(1)
        quarantined(node)
        assert node.facts().incarnation > before

    def test_nothing_comes_in_and_nothing_leaves(self, node: NodeAtHand) -> None:
        quarantined(node)
        offer = m.Offer(xfer(9), T9, hash_of(spec_of(T9)))
        for command in (
            c.Add((T9,)),
            m.Escrow("loom", "stolen", 60, (m.Move(xfer(8), uid(1), 1),)),
            m.Hold("forge", "stolen", (offer,)),
            m.Hold("forge", "stolen", (), unread=(m.Unread(xfer(9), uid(9), CUT_OFF),)),
        ):
            was = node.dump()
            assert said(node, command) == "refused"
            assert node.dump() == was
        assert node.state(uid(9)) is None

    @pytest.mark.parametrize("kind", [m.Commit, m.Abort, m.Settled, m.Activate, m.Drop, "escrow"])
    def test_no_word_of_a_move_changes_anything(
        self, node: NodeAtHand, kind: Settling | str
    ) -> None:
        quarantined(node)
        was = node.dump()
        for number, peer in ((2, "loom"), (3, "forge"), (5, "loom")):
            if isinstance(kind, str):
                said(node, m.Escrow(peer, "stolen", 60, (m.Move(xfer(number), uid(number), 1),)))
            else:
                said(node, kind((m.Settle(xfer(number), uid(number), peer),), c.OWNER))
        assert node.dump() == was

    @pytest.mark.parametrize("before", [False, True], ids=["never settled", "settled before"])
    def test_the_end_of_what_moved_away_is_noted_after_the_quarantine(
        self, node: NodeAtHand, before: bool
    ) -> None:
        """What was recorded is still answered; the hub says the rest again, once it is over."""
        node.has(a_task(5))
        node.gives_away(xfer(5), a_task(5))
        if before:
            node.settled(xfer(5), uid(5))
        node.say(m.Quarantine("an older copy was put back"))
        was = node.dump()
        over = m.Settled((m.Settle(xfer(5), uid(5), "loom", ended="COMPLETED"),))
        assert refusal(node, over) == "quarantined"
        word = m.Settled((m.Settle(xfer(5), uid(5), "loom"),))
        assert said(node, word) == ("settled" if before else "refused")
        assert node.dump() == was
        assert [one.settled for one in node.ask(q.Moved())] == [before]

        node.say(m.Release("all done"))
        assert said(node, over) == "settled"
        assert [(one.settled, one.ended) for one in node.ask(q.Moved())] == [(True, "COMPLETED")]
        node.say(m.Quarantine("once more"))
        assert said(node, over) == "settled", "it is recorded"

    def test_no_time_makes_anything_ready(self, node: NodeAtHand) -> None:
        """The lease of task 2 and the wait of task 6 both end, and nothing comes of it."""
        quarantined(node)
        assert node.wake(after=10_000).readied == 0
        assert node.facts().counts.get("READY", 0) <= 1
        assert node.state(uid(2)) == "PARKED"

    @pytest.mark.parametrize(
        "word",
        [
            c.SetFields(uid(1), {"priority": 1}),
            c.Cancel(uid(1)),
            c.RetryNow(uid(6)),
            c.SetNode("active", "let it run"),
            c.SetNode("paused", "pause"),
        ],
        ids=["set", "cancel", "retry", "resume", "pause"],
    )
    def test_words_for_a_working_node_are_refused(
        self, node: NodeAtHand, word: c.Command[object]
    ) -> None:
        """`resume` least of all: only a release ends a quarantine."""
        quarantined(node)
        states = {number: node.state(uid(number)) for number in range(1, 8)}
        assert said(node, word) == "refused"
        assert node.facts().state == "quarantined"
        assert {number: node.state(uid(number)) for number in range(1, 8)} == states

    def test_a_person_may_still_resolve(self, node: NodeAtHand) -> None:
        quarantined(node)
        assert node.say(c.Resolve(uid(4), "cancelled", "I looked")).outcome == "changed"
        assert node.state(uid(4)) == "CANCELLED"

    def test_a_result_of_the_earlier_life_is_late(self, node: NodeAtHand) -> None:
        """The program of task 4 ran on the machine before; what it says is kept, not believed."""
        quarantined(node)
        answer = node.say(c.Finish(uid(4), 1, c.Result("completed")))
        assert not answer.accepted
        assert node.state(uid(4)) == "PARKED"

    def test_a_result_that_comes_after_a_quarantine_changes_nothing(self, node: NodeAtHand) -> None:
        """A person has decided, and other work runs here again; what comes now is late.

        Fails when an attempt that this process claimed may complete its task from any state.
        """
        got = node.running(a_task(4))
        node.say(m.Quarantine("an older copy was put back"))
        node.say(c.Resolve(uid(4), "cancelled", "I looked"))
        node.say(m.Release("all done"))
        node.running(a_task(9))
        assert rule_of(node.finish(got)) == "late_result"
        assert (node.state(uid(4)), node.state(uid(9))) == ("CANCELLED", "RUNNING")

    def test_a_word_for_the_earlier_life_changes_nothing(self, node: NodeAtHand) -> None:
        before = node.facts().incarnation
        quarantined(node)
        was = node.dump()
        sender = c.Sender("hub:arc", None, before)
        for kind, number, peer in (
            (m.Commit, 2, "loom"), (m.Abort, 2, "loom"), (m.Activate, 3, "forge"),
            (m.Drop, 3, "forge"),
        ):  # fmt: skip
            said(node, kind((m.Settle(xfer(number), uid(number), peer),), sender))
        assert node.dump() == was

    def test_a_release_waits_until_every_task_was_decided_upon(self, node: NodeAtHand) -> None:
        """Whatever state a task was in, a person has some word that decides it."""
        with_everything(node)
        node.has(a_task(8, not_before="2026-03-12T00:00:00.000Z"))
        node.say(m.Quarantine("an older copy was put back"))
        assert refusal(node, m.Release("all done")) == "unreleased"

        for task in node.ask(q.ListTasks()).tasks:
            if task.state in {"COMPLETED", "MOVED"}:
                continue
            node.say(m.Bar((m.Target(task.uid, task.epoch + 2**20),)))
            if node.state(task.uid) not in {None, "MOVED"}:
                node.say(c.Resolve(task.uid, "cancelled", "gone"))
        node.say(m.Release("all done"))
        assert node.facts().state == "active"
        node.has(a_task(9))
        assert node.claimed().task.uid == uid(9)

    def test_a_release_of_a_working_node_changes_nothing(self, node: NodeAtHand) -> None:
        node.has(a_task())
        before = node.dump()
        node.say(m.Release("just in case"))
        assert node.dump() == before

    def test_reading_goes_on(self, node: NodeAtHand) -> None:
        quarantined(node)
        assert len(node.ask(q.ListTasks()).tasks) >= 6
        assert node.task(uid(1)).subject == "work 1"
