"""What a store promises about repeats and about words that come in the wrong order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node.errors import Refused
from agent_node.spec import hash_of, spec_of
from tests.builders import NodeAtHand, a_task, uid, xfer
from tests.node.store.contract import Contract, MakeNode

T = a_task()
MOVE = (m.Settle(xfer(), uid(), "loom"),)
BACK = (m.Settle(xfer(), uid(), "forge"),)
ESCROW = m.Escrow("loom", "stolen", 60, (m.Move(xfer(), uid(), 1),))
HOLD = m.Hold("forge", "stolen", (m.Offer(xfer(), T, hash_of(spec_of(T))),))
ADD = c.Add((T,))
PAUSE = c.SetNode("paused", "upgrade")
# name: what is said before, what is said twice, the outcome that both answers carry
Twice = c.Command[tuple[c.Added | m.Transferred, ...]]
REPEATS: dict[str, tuple[tuple[c.Command[object], ...], Twice, str]] = {
    "add": ((), ADD, ""),
    "escrow": ((ADD,), ESCROW, "escrowed"),
    "commit": ((ADD, ESCROW), m.Commit(MOVE), "committed"),
    "abort": ((ADD, ESCROW), m.Abort(MOVE), "aborted"),
    "settled after commit": ((ADD, ESCROW, m.Commit(MOVE)), m.Settled(MOVE), "settled"),
    "settled after abort": ((ADD, ESCROW, m.Abort(MOVE)), m.Settled(MOVE), "settled"),
    "hold": ((), HOLD, "held"),
    "hold that is refused": ((PAUSE,), HOLD, "refused"),
    "activate": ((HOLD,), m.Activate(BACK), "activated"),
    "drop": ((HOLD,), m.Drop(BACK), "dropped"),
    "abort unseen": ((), m.Abort(MOVE), "aborted"),
    "drop unseen": ((), m.Drop(BACK), "dropped"),
    "commit unseen": ((), m.Commit(MOVE), "unknown"),
    "activate unseen": ((), m.Activate(BACK), "unknown"),
    "settled unseen": ((), m.Settled(MOVE), "unknown"),
    "commit after abort": ((ADD, ESCROW, m.Abort(MOVE)), m.Commit(MOVE), "aborted"),
    "abort after commit": ((ADD, ESCROW, m.Commit(MOVE)), m.Abort(MOVE), "committed"),
    "escrow after abort": ((ADD, ESCROW, m.Abort(MOVE)), ESCROW, "aborted"),
    "escrow after unseen abort": ((ADD, m.Abort(MOVE)), ESCROW, "aborted"),
    "escrow after commit": ((ADD, ESCROW, m.Commit(MOVE)), ESCROW, "committed"),
    "commit after unseen abort": ((ADD, m.Abort(MOVE)), m.Commit(MOVE), "aborted"),
    "hold after drop": ((HOLD, m.Drop(BACK)), HOLD, "dropped"),
    "hold after unseen drop": ((m.Drop(BACK),), HOLD, "dropped"),
    "hold after activate": ((HOLD, m.Activate(BACK)), HOLD, "activated"),
    "drop after activate": ((HOLD, m.Activate(BACK)), m.Drop(BACK), "activated"),
    "activate after drop": ((HOLD, m.Drop(BACK)), m.Activate(BACK), "dropped"),
    "activate after a refusal": ((PAUSE, HOLD), m.Activate(BACK), "refused"),
    "drop after a refusal": ((PAUSE, HOLD), m.Drop(BACK), "refused"),
}
# What each command may leave the task as, when it finds it as the row says; `None`: no row.
CHANGING: dict[str, Callable[[], c.Command[object]]] = {
    "escrow": lambda: ESCROW,
    "commit": lambda: m.Commit(MOVE),
    "abort": lambda: m.Abort(MOVE),
    "settled": lambda: m.Settled(MOVE),
    "activate": lambda: m.Activate(BACK),
    "drop": lambda: m.Drop(BACK),
}


class Repeats(Contract):
    @pytest.mark.parametrize("name", REPEATS)
    def test_a_repeat_gives_the_recorded_outcome_and_changes_nothing(
        self, node: NodeAtHand, name: str
    ) -> None:
        before, command, outcome = REPEATS[name]
        for earlier in before:
            node.say(earlier)
        first = node.say(command)
        after_first = node.dump()
        second = node.say(command)

        if outcome:
            assert (first[0].outcome, second[0].outcome) == (outcome, outcome)
            assert second == first
        assert node.dump() == after_first

    @pytest.mark.parametrize("name", REPEATS)
    def test_a_restart_forgets_no_outcome(self, node: NodeAtHand, name: str) -> None:
        before, command, outcome = REPEATS[name]
        for earlier in (*before, command):
            node.say(earlier)
        node.reopen()
        if outcome:
            assert node.say(command)[0].outcome == outcome

    @pytest.mark.parametrize("name", REPEATS)
    def test_a_rehearsal_answers_the_same_and_changes_nothing(
        self, node: NodeAtHand, name: str
    ) -> None:
        before, command, _ = REPEATS[name]
        for earlier in before:
            node.say(earlier)
        was = node.dump()
        rehearsed = node.say(command, dry_run=True)
        assert node.dump() == was
        assert node.say(command) == rehearsed

    def test_events_of_a_rehearsal_or_of_what_is_refused_take_no_numbers(
        self, node: NodeAtHand
    ) -> None:
        """Fails when the newest number is remembered before its event is durable: the generation
        would be further than the database, and the next start a quarantine.
        """
        node.has(a_task(1))
        before = node.facts().event_seq
        node.say(c.Cancel(uid(1)), dry_run=True)
        node.say(c.Add((a_task(2),)), dry_run=True)
        refused = c.Cancel(uid(1), sender=c.Sender("hub:arc", None, "01Z" + "0" * 23))
        assert node.store is not None
        with pytest.raises(Refused):
            node.store.together([c.Add((a_task(3),)), refused])
        node.clock.advance(2)
        node.has(a_task(4))
        assert node.facts().event_seq == before + 1
        generation = node.facts().generation
        node.reopen()
        assert (node.facts().state, node.facts().generation) == ("active", generation)

    @pytest.mark.parametrize("name", [n for n, (_, _, outcome) in REPEATS.items() if outcome])
    def test_no_word_of_the_protocol_loses_the_task(self, node: NodeAtHand, name: str) -> None:
        """Whatever follows whatever, a task that was here stays in one place of the table."""
        before, command, _ = REPEATS[name]
        for earlier in (*before, command):
            node.say(earlier)
        had = node.state(uid())
        for other in CHANGING.values():
            node.say(other())
        if had is not None and ADD in before:
            assert node.state(uid()) in {"READY", "ESCROW", "MOVED"}

    def test_a_repeated_escrow_hands_the_task_over_again(self, node: NodeAtHand) -> None:
        """The first answer may have been lost on the way."""
        node.say(ADD)
        first, second = node.say(ESCROW)[0], node.say(ESCROW)[0]
        assert first.task is not None
        assert second.task == first.task
        assert second.sha256 == first.sha256

    def test_a_repeated_escrow_does_not_lengthen_the_lease(self, node: NodeAtHand) -> None:
        node.say(ADD)
        node.say(ESCROW)
        node.clock.advance(30)
        node.say(ESCROW)
        node.wake(after=30)
        assert node.state(uid()) == "READY"

    def test_two_moves_of_one_task_do_not_answer_for_each_other(self, node: NodeAtHand) -> None:
        node.say(ADD)
        node.say(ESCROW)
        node.say(m.Abort(MOVE))
        second = (m.Settle(xfer(2), uid(), "loom"),)
        node.say(m.Escrow("loom", "stolen", 60, (m.Move(xfer(2), uid(), 2),)))

        assert node.say(m.Commit(MOVE))[0].outcome == "aborted"
        assert node.state(uid()) == "ESCROW"
        assert node.say(m.Commit(second))[0].outcome == "committed"
        assert node.say(m.Abort(MOVE))[0].outcome == "aborted"
        assert node.state(uid()) == "MOVED"

    def test_each_transfer_command_raises_the_generation(self, make_node: MakeNode) -> None:
        giver, taker = make_node("iris"), make_node("loom")
        giver.say(ADD)
        for node, command in (
            (giver, ESCROW),
            (taker, HOLD),
            (giver, m.Commit(MOVE)),
            (taker, m.Activate(BACK)),
            (giver, m.Settled(MOVE)),
        ):
            before = node.facts().generation
            node.say(command)
            assert node.facts().generation > before, command

    def test_the_generation_can_be_raised_for_anything_else(self, node: NodeAtHand) -> None:
        before = node.facts().generation
        node.say(ADD)
        node.say(c.Raise())
        assert node.facts().generation > before
