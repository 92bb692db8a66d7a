"""What a store promises about who may command it: terms of hubs, and incarnations of nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.budget_words import SetBudget
from agent_node.errors import Refused
from agent_node.spec import hash_of, spec_of
from agent_node.task import Task
from tests.builders import NodeAtHand, a_task, refusal, uid, xfer
from tests.node.store.contract import Contract

T1, T9 = a_task(1), a_task(9)
OTHER = "01ANQTHER00000000000000000"


def hello(node: NodeAtHand, term: int, *, fenced: bool = False) -> None:
    node.say(m.Hello("arc0", "arc", term, node.clock.boot_id(), fenced=fenced))


FIRST, SECOND = "01J00000000000000000000001", "01J00000000000000000000002"


def heard(node: NodeAtHand, term: int, instance: str | None) -> None:
    node.say(m.Hello("arc0", "arc", term, node.clock.boot_id(), instance=instance))


def hold_of(task: Task, sender: c.Sender, *, number: int = 9, peer: str | None = None) -> m.Hold:
    offer = m.Offer(xfer(number), task, hash_of(spec_of(task)), peer)
    return m.Hold("forge", "stolen", (offer,), sender)


def escrow_of(sender: c.Sender, *, number: int = 8, peer: str | None = None) -> m.Escrow:
    return m.Escrow("loom", "stolen", 60, (m.Move(xfer(number), uid(1), 1, peer),), sender)


MUTATIONS: dict[str, Callable[[c.Sender], c.Command[object]]] = {
    "add": lambda sender: c.Add((T9,), sender),
    "escrow": escrow_of,
    "hold": lambda sender: hold_of(T9, sender),
    "commit": lambda sender: m.Commit((m.Settle(xfer(2), uid(2), "loom"),), sender),
    "abort": lambda sender: m.Abort((m.Settle(xfer(2), uid(2), "loom"),), sender),
    "activate": lambda sender: m.Activate((m.Settle(xfer(3), uid(3), "forge"),), sender),
    "drop": lambda sender: m.Drop((m.Settle(xfer(3), uid(3), "forge"),), sender),
    "bar": lambda sender: m.Bar((m.Target(uid(77), 2**20),), sender=sender),
    "reown": lambda sender: m.Reown((m.Target(uid(4), 2**21),), sender=sender),
    "pause": lambda sender: c.SetNode("paused", "no", sender),
    "set": lambda sender: c.SetFields(uid(1), {"priority": 1}, "no", sender),
    "cancel": lambda sender: c.Cancel(uid(1), "no", sender),
    "quarantine": lambda sender: m.Quarantine("no", sender),
}


def busy(node: NodeAtHand) -> NodeAtHand:
    """A READY task 1, task 2 in escrow, task 3 held, task 4 moved away."""
    node.has(T1, a_task(2), a_task(4))
    node.escrow(xfer(2), a_task(2))
    node.hold(xfer(3), a_task(3))
    node.gives_away(xfer(4), a_task(4))
    return node


class KnowsSenders(Contract):
    @pytest.mark.parametrize("name", MUTATIONS)
    def test_a_hub_of_an_older_term_changes_nothing(self, node: NodeAtHand, name: str) -> None:
        hello(busy(node), 5)
        before = node.dump()
        assert refusal(node, MUTATIONS[name](c.Sender("hub:old", 4))) == "old_term"
        assert node.dump() == before

    @pytest.mark.parametrize("name", MUTATIONS)
    def test_a_word_for_another_incarnation_changes_nothing(
        self, node: NodeAtHand, name: str
    ) -> None:
        busy(node)
        before = node.dump()
        sender = c.Sender("hub:arc", None, OTHER)
        assert refusal(node, MUTATIONS[name](sender)) == "other_incarnation"
        assert node.dump() == before

    @pytest.mark.parametrize("term", [5, 6])
    def test_a_hub_of_the_seen_term_or_a_later_one_is_obeyed(
        self, node: NodeAtHand, term: int
    ) -> None:
        hello(busy(node), 5)
        sender = c.Sender("hub:arc", term, node.facts().incarnation)
        assert node.say(escrow_of(sender))[0].outcome == "escrowed"

    @pytest.mark.parametrize("name", MUTATIONS)
    def test_a_second_hub_of_the_same_term_changes_nothing(
        self, node: NodeAtHand, name: str
    ) -> None:
        """Seen to fail with the last check of `check_term` taken out."""
        heard(busy(node), 5, FIRST)
        before = node.dump()
        assert refusal(node, MUTATIONS[name](c.Sender("hub:two", 5, None, SECOND))) == "other_hub"
        assert node.dump() == before

    def test_a_second_hub_of_the_same_term_is_not_remembered(self, node: NodeAtHand) -> None:
        """Seen to fail without the check in `hello`."""
        heard(node, 5, FIRST)
        with pytest.raises(Refused, match="obeys another hub"):
            heard(node, 5, SECOND)
        assert node.say(c.Add((T9,), c.Sender("hub", 5, None, FIRST)))[0].outcome == "added"

    def test_a_higher_term_replaces_the_hub_that_was_known(self, node: NodeAtHand) -> None:
        heard(busy(node), 5, FIRST)
        heard(node, 6, SECOND)
        assert node.say(c.Add((T9,), c.Sender("hub", 6, None, SECOND)))[0].outcome == "added"
        assert refusal(node, escrow_of(c.Sender("hub", 6, None, FIRST))) == "other_hub"

    def test_a_hub_that_names_no_instance_is_taken_at_its_term(self, node: NodeAtHand) -> None:
        heard(busy(node), 5, FIRST)
        heard(node, 5, None)
        assert node.say(escrow_of(c.Sender("hub", 5)))[0].outcome == "escrowed"
        other = c.Sender("hub", 5, None, SECOND)
        assert refusal(node, c.Cancel(uid(1), "no", other)) == "other_hub"

    def test_an_owner_is_bound_by_no_term(self, node: NodeAtHand) -> None:
        hello(node, 5)
        assert node.add(a_task())[0].outcome == "added"
        node.say(c.SetNode("paused", "mine"))
        assert node.facts().state == "paused"

    def test_an_older_hub_is_not_even_greeted(self, node: NodeAtHand) -> None:
        hello(node, 5)
        assert refusal(node, m.Hello("arc0", "old", 4, node.clock.boot_id())) == "old_term"
        assert (node.facts().term, node.facts().hub) == (5, "arc")

    def test_a_hello_tells_whether_it_said_anything_new(self, node: NodeAtHand) -> None:
        said = m.Hello("arc0", "arc", 5, node.clock.boot_id(), domains={"version": "1"})
        later = replace(said, domains={"version": "2"})
        assert [node.say(one) for one in (said, said, later, later)] == [True, False, True, False]
        assert node.say(replace(later, fenced=True))
        assert not node.say(replace(later, fenced=True)), "it is quarantined already"

    def test_a_term_outlives_a_restart(self, node: NodeAtHand) -> None:
        hello(node, 5)
        node.reopen()
        assert node.facts().term == 5

    def test_an_older_hub_still_hears_what_was_recorded(self, node: NodeAtHand) -> None:
        """A recorded outcome comes before every refusal: the old hub may have to settle by it."""
        old = c.Sender("hub:old", 1)
        hello(node, 1)
        node.has(T1)
        node.say(escrow_of(old))
        node.say(m.Commit((m.Settle(xfer(8), uid(1), "loom"),), old))
        node.say(hold_of(T9, old))
        hello(node, 2)

        for word in (m.Commit, m.Abort):
            again = node.say(word((m.Settle(xfer(8), uid(1), "loom"),), old))[0]
            assert again.outcome == "committed"
        assert node.say(escrow_of(old))[0].outcome == "committed"
        assert node.say(hold_of(T9, old))[0].outcome == "held"

    def test_a_transfer_is_bound_to_the_incarnation_of_the_other_side(
        self, node: NodeAtHand
    ) -> None:
        node.has(T1)
        node.say(escrow_of(c.OWNER, peer=OTHER))
        meant_for_another = m.Settle(xfer(8), uid(1), "loom", "01Z" + "0" * 23)
        assert refusal(node, m.Commit((meant_for_another,))) == "other_incarnation"
        assert node.state(uid(1)) == "ESCROW"

        right = m.Settle(xfer(8), uid(1), "loom", OTHER)
        assert node.say(m.Commit((right,)))[0].outcome == "committed"

    def test_a_copy_is_bound_to_the_incarnation_that_gave_it(self, node: NodeAtHand) -> None:
        node.say(hold_of(T9, c.OWNER, peer=OTHER))
        wrong = m.Settle(xfer(9), uid(9), "forge", "01Z" + "0" * 23)
        for word in (m.Activate, m.Drop):
            assert refusal(node, word((wrong,))) == "other_incarnation"
        assert node.state(uid(9)) == "HELD"
        assert node.ask(q.Doubts())[0].peer_incarnation == OTHER
        right = m.Settle(xfer(9), uid(9), "forge", OTHER)
        assert node.say(m.Activate((right,)))[0].outcome == "activated"

    @pytest.mark.parametrize("says", [{}, {"heat": 1}, {"boost_per_minute": 1.0}])
    @pytest.mark.parametrize("limited", [False, True], ids=["free", "limited"])
    def test_after_a_boot_tasks_that_moved_in_wait_for_the_hub(
        self, node: NodeAtHand, says: dict[str, Any], limited: bool
    ) -> None:
        """The machine may have been declared off meanwhile, and its tasks given to others.

        Where boosts differ or money counts, the first task is looked up before it is taken.
        """
        hello(node, 1)
        if limited:
            node.say(SetBudget("fleet", "100"))
        node.has(T1)
        node.takes(xfer(9), replace(T9, priority=1, **says))
        node.reboot()

        assert node.facts().waits_for_hub
        assert node.claimed().task.uid == uid(1)
        answer = node.claim()
        assert isinstance(answer, c.NothingToClaim)
        assert answer.because.rule == "waits_for_hub"
        hello(node, 1)
        assert not node.facts().waits_for_hub
        assert node.claimed().task.uid == uid(9)

    def test_a_restarted_daemon_on_the_same_boot_waits_for_nobody(self, node: NodeAtHand) -> None:
        hello(node, 1)
        node.takes(xfer(9), T9)
        node.reopen()
        assert node.claimed().task.uid == uid(9)

    def test_a_fenced_node_is_quarantined_by_the_hello_that_says_so(
        self, node: NodeAtHand
    ) -> None:
        hello(node, 1)
        node.takes(xfer(9), T9)
        node.reboot()
        hello(node, 1, fenced=True)

        assert node.facts().state == "quarantined"
        answer = node.claim()
        assert isinstance(answer, c.NothingToClaim)
        assert answer.because.rule == "quarantined"
