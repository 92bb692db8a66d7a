"""What a store promises while it takes a task over: hold, activate, drop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.clock import iso
from agent_node.spec import hash_of, spec_of
from tests.builders import NodeAtHand, a_task, an_agent, refusal, rule_of, uid, xfer
from tests.node.store.contract import Contract, MakeNode


class Takes(Contract):
    def test_a_held_copy_does_not_run_before_it_is_activated(self, node: NodeAtHand) -> None:
        assert node.hold(xfer(), a_task()).outcome == "held"
        assert (node.state(uid()), node.task(uid()).epoch) == ("HELD", 2)
        assert isinstance(node.claim(), c.NothingToClaim)

        assert node.activate(xfer(), uid()).outcome == "activated"
        assert node.state(uid()) == "READY"
        assert node.claimed().task.uid == uid()

    def test_everything_arrives(self, node: NodeAtHand) -> None:
        sent = a_task(
            body="do it", key="k", skills=["s"], tags=["t"], extra={"a": [1.5]}, models=["b", "a"],
            priority_100=93, domain="d", max_s=60, failures=1, interruptions=2, origin="human:ada",
            attempts=[{"n": 1, "node": "forge", "agent": "forge", "outcome": "failed"}],
        )  # fmt: skip
        node.takes(xfer(), sent)

        kept = node.task(uid())
        for name in (
            "body", "key", "skills", "tags", "extra", "models", "priority", "priority_100",
            "domain", "max_s", "failures", "interruptions", "origin",
        ):  # fmt: skip
            assert getattr(kept, name) == getattr(sent, name), name
        (attempt,) = kept.attempts
        assert isinstance(attempt, dict)
        assert (attempt["n"], attempt["node"]) == (1, "forge")

    def test_what_ended_elsewhere_is_not_what_ended_here_last(self, node: NodeAtHand) -> None:
        """Fails when the attempts of other nodes count, whose logs and clocks are not of here."""
        at, tried = iso(node.clock.now()), {"agent": "forge", "outcome": "failed"}
        node.takes(xfer(), a_task(
            failures=1, attempts=[{"n": 1, "node": "forge", "ended_at": at, **tried}]))
        assert node.facts().last_task is None
        node.finish(node.claimed(), "failed", error_kind="auth_failure")
        node.takes(xfer(2), a_task(
            2, failures=1, attempts=[{"n": 1, "node": "forge", "ended_at": at, **tried}]))
        assert (node.facts().last_task or {})["uid"] == uid()

    @pytest.mark.parametrize(
        ("why", "source", "stolen_from"),
        [
            ("stolen", "fleet:forge:stolen", "forge"),
            ("routed", "fleet:arc:router", None),
            ("drained", None, None),
        ],
    )
    def test_a_task_says_how_it_came(
        self, node: NodeAtHand, why: str, source: str | None, stolen_from: str | None
    ) -> None:
        node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id()))
        sent = a_task(source="human:ada", origin="human:ada")
        node.takes(xfer(), sent, giver="forge", why=why, sender=c.Sender("hub:arc", 1))

        kept = node.task(uid())
        hops = int(why == "stolen")  # a hop is a theft: being routed or drained is none
        assert (kept.hops, kept.stolen_from, kept.origin) == (hops, stolen_from, "human:ada")
        if source is not None:
            assert kept.source == source

    def test_a_stolen_task_stays_known_as_stolen_when_it_moves_on(self, node: NodeAtHand) -> None:
        node.takes(xfer(), a_task(stolen_from="loom", hops=1), why="drained")
        assert node.task(uid()).stolen_from == "loom"

    def test_a_wrong_hash_is_refused(self, node: NodeAtHand) -> None:
        """Fails when hold skips the hash."""
        assert rule_of(node.hold(xfer(), a_task(), sha256="0" * 64)) == "hash_mismatch"
        assert node.state(uid()) is None

    def test_a_refusal_is_remembered(self, node: NodeAtHand) -> None:
        node.say(c.SetNode("paused", "upgrade"))
        first = node.hold(xfer(), a_task())
        node.say(c.SetNode("active", "done"))

        again = node.hold(xfer(), a_task())
        assert (again.outcome, rule_of(again)) == ("refused", "paused")
        assert again == first
        assert node.hold(xfer(2), a_task()).outcome == "held"

    @pytest.mark.parametrize("about", [uid(), ""], ids=["its uid", "no uid"])
    def test_what_cannot_be_read_is_refused_for_its_transfer(
        self, node: NodeAtHand, about: str
    ) -> None:
        """Fails when a later copy is held under a transfer that its giver knows as refused."""
        why = c.Because("bad_task", "task.priority: should be 1 to 10")
        said = m.Hold("forge", "stolen", (), unread=(m.Unread(xfer(), about, why),))
        assert node.say(said) == (m.Transferred(xfer(), "refused", why),)
        was = node.dump()
        assert node.say(said) == (m.Transferred(xfer(), "refused", why),)
        assert node.hold(xfer(), a_task()).outcome == "refused"
        assert node.drop(xfer(), uid()).outcome == "refused"
        assert node.dump() == was
        assert node.hold(xfer(2), a_task()).outcome == "held"

    def test_a_repeat_that_cannot_be_read_hears_what_was_recorded(self, node: NodeAtHand) -> None:
        """Fails when it is refused unseen: a copy is held, and its giver hears that none is."""
        node.hold(xfer(1), a_task(1))
        why = c.Because("bad_task", "it was cut off")
        torn = tuple(m.Unread(xfer(number), uid(number), why) for number in (1, 2))
        offer = m.Offer(xfer(3), a_task(3), hash_of(spec_of(a_task(3))))
        said = node.say(m.Hold("forge", "stolen", (offer,), unread=torn))
        assert [one.outcome for one in said] == ["held", "held", "refused"]
        elsewhere = m.Hold("loom", "stolen", (), unread=torn[:1])
        assert rule_of(node.say(elsewhere)[0]) == "other_transfer"

    def test_what_cannot_be_read_is_no_word_of_a_hub_that_was_replaced(
        self, node: NodeAtHand
    ) -> None:
        node.say(m.Hello("arc0", "arc", 2, node.clock.boot_id()))
        torn = (m.Unread(xfer(), uid(), c.Because("bad_task", "it was cut off")),)
        was = node.dump()
        old = m.Hold("forge", "stolen", (), c.Sender("hub:old", 1), unread=torn)
        assert refusal(node, old) == "old_term"
        assert node.dump() == was

    @pytest.mark.parametrize("state", ["paused", "draining"])
    def test_a_node_that_is_told_to_stop_takes_nothing(self, node: NodeAtHand, state: str) -> None:
        node.say(c.SetNode(state, "upgrade"))  # type: ignore[arg-type]
        assert rule_of(node.hold(xfer(), a_task())) == state

    def test_a_node_that_paused_in_between_still_activates(self, node: NodeAtHand) -> None:
        node.hold(xfer(), a_task())
        node.say(c.SetNode("paused", "upgrade"))
        assert node.activate(xfer(), uid()).outcome == "activated"

    def test_a_node_whose_dispatcher_stopped_takes_nothing_unless_told(
        self, node: NodeAtHand
    ) -> None:
        node.dispatches(running=False)
        assert rule_of(node.hold(xfer(1), a_task(1))) == "dispatcher_stopped"
        assert node.hold(xfer(2), a_task(2), even_if_stopped=True).outcome == "held"
        assert node.activate(xfer(2), uid(2)).outcome == "activated"

    def test_a_full_queue_takes_nothing(self, make_node: MakeNode) -> None:
        node = make_node(queue_max=2)
        node.has(a_task(1))
        assert node.hold(xfer(2), a_task(2)).outcome == "held"
        assert rule_of(node.hold(xfer(3), a_task(3))) == "no_room"
        assert node.activate(xfer(2), uid(2)).outcome == "activated"

    def test_room_counts_down_within_a_batch(self, make_node: MakeNode) -> None:
        node = make_node(queue_max=2)
        offers = tuple(m.Offer(xfer(n), a_task(n), hash_of(spec_of(a_task(n)))) for n in (1, 2, 3))
        answers = node.say(m.Hold("forge", "stolen", offers))
        assert [answer.outcome for answer in answers] == ["held", "held", "refused"]

    def test_one_request_may_bring_a_task_twice_over_an_older_copy(self, node: NodeAtHand) -> None:
        """Fails when an outcome is written before the record that the same request made."""
        assert node.hold(xfer(1), a_task()).outcome == "held"
        copies = [(xfer(epoch), a_task(epoch=epoch)) for epoch in (2, 3)]
        offers = tuple(m.Offer(x, task, hash_of(spec_of(task))) for x, task in copies)
        said = node.say(m.Hold("forge", "stolen", offers))
        assert [one.outcome for one in said] == ["held", "held"]

        for number in (1, 2):
            assert rule_of(node.drop(xfer(number), uid())) == "replaced"
        assert node.task(uid()).epoch == 4
        assert node.activate(xfer(3), uid()).outcome == "activated"

    def test_a_task_that_is_here_is_not_taken_again(self, node: NodeAtHand) -> None:
        node.has(a_task())
        reaches: tuple[Callable[[], object], ...] = (lambda: None, node.claimed)
        for number, reach in enumerate(reaches, start=1):
            reach()
            before = node.task(uid())
            answer = node.hold(xfer(number), a_task(epoch=50))
            assert rule_of(answer) == "already_here"
            assert node.task(uid()) == before

    def test_a_task_that_ended_here_is_not_taken_again(self, node: NodeAtHand) -> None:
        node.finish(node.running(a_task()))
        assert rule_of(node.hold(xfer(), a_task(epoch=50))) == "already_here"
        assert node.state(uid()) == "COMPLETED"

    def test_a_key_of_another_task_is_not_taken_twice(self, node: NodeAtHand) -> None:
        node.has(a_task(1, key="k"))
        answer = node.hold(xfer(), a_task(2, key="k"))
        assert rule_of(answer) == "key_taken"
        assert answer.because is not None
        assert uid(1) in answer.because.text

    def test_two_tasks_of_one_key_in_one_request_are_not_both_held(self, node: NodeAtHand) -> None:
        tasks = a_task(1), a_task(2, key="k"), a_task(3, key="k"), a_task(4)
        held = node.say(m.Hold("forge", "stolen", tuple(
            m.Offer(xfer(number), task, hash_of(spec_of(task)))
            for number, task in enumerate(tasks, 1))))  # fmt: skip
        assert [one.outcome for one in held] == ["held", "held", "refused", "held"]
        assert rule_of(held[2]) == "key_taken"
        assert [node.state(task.uid) for task in tasks] == ["HELD", "HELD", None, "HELD"]

    def test_one_request_that_brings_a_task_twice_holds_it_once(self, node: NodeAtHand) -> None:
        tasks = a_task(1), a_task(1), a_task(1, epoch=5), a_task(2)
        held = node.say(m.Hold("forge", "stolen", tuple(
            m.Offer(xfer(number), task, hash_of(spec_of(task)))
            for number, task in enumerate(tasks, 1))))  # fmt: skip
        assert [one.outcome for one in held] == ["held", "refused", "held", "held"]
        assert rule_of(held[1]) == "already_here"
        assert node.task(uid(1)).epoch == 6
        assert node.activate(xfer(1), uid(1)).outcome == "dropped"
        assert node.activate(xfer(3), uid(1)).outcome == "activated"

    def test_a_task_does_not_collide_with_its_own_key(self, node: NodeAtHand) -> None:
        given = node.has(a_task(key="k"))
        left = node.gives_away(xfer(1), given)
        assert node.hold(xfer(2), replace(left, epoch=2), giver="loom").outcome == "held"
        assert node.task(uid()).key == "k"

    def test_a_copy_that_is_older_than_what_is_known_is_refused(self, node: NodeAtHand) -> None:
        """Fails when hold skips the tombstone's epoch."""
        given = node.has(a_task())
        node.gives_away(xfer(1), given)
        assert rule_of(node.hold(xfer(2), a_task(), giver="loom")) == "newer_known"
        assert node.state(uid()) == "MOVED"

    def test_a_held_copy_gives_way_to_a_newer_one_and_is_known_as_dropped(
        self, node: NodeAtHand
    ) -> None:
        node.hold(xfer(1), a_task(epoch=3))
        assert rule_of(node.hold(xfer(2), a_task(epoch=3))) in {"newer_known", "already_here"}
        assert node.hold(xfer(3), a_task(epoch=4), giver="loom").outcome == "held"

        assert node.task(uid()).epoch == 5
        assert node.activate(xfer(1), uid()).outcome == "dropped"
        assert node.state(uid()) == "HELD"
        assert node.activate(xfer(3), uid(), peer="loom").outcome == "activated"

    def test_a_dropped_copy_is_gone(self, node: NodeAtHand) -> None:
        node.hold(xfer(1), a_task())
        assert node.drop(xfer(1), uid()).outcome == "dropped"
        assert node.state(uid()) is None
        assert node.activate(xfer(1), uid()).outcome == "dropped"
        assert node.hold(xfer(1), a_task()).outcome == "dropped"
        assert node.hold(xfer(2), a_task()).outcome == "held"

    def test_a_dropped_copy_leaves_the_older_tombstone(self, node: NodeAtHand) -> None:
        left = node.gives_away(xfer(1), node.has(a_task(body="mine", key="k")))
        node.hold(xfer(2), replace(left, epoch=2), giver="loom")
        assert node.state(uid()) == "HELD"
        node.drop(xfer(2), uid(), peer="loom")

        kept = node.task(uid())
        assert (kept.state, kept.epoch, kept.body) == ("MOVED", 2, "mine")
        assert node.commit(xfer(1), uid()).outcome == "committed"
        assert rule_of(node.add(a_task(9, key="k", body="other"))[0]) == "key_conflict"

    def test_only_a_held_copy_is_activated(self, node: NodeAtHand) -> None:
        """Fails when activate does not ask for HELD(x)."""
        node.takes(xfer(), a_task())
        node.finish(node.running())
        assert node.activate(xfer(), uid()).outcome == "activated"
        assert node.state(uid()) == "COMPLETED"

    def test_activate_of_another_transfer_changes_nothing(self, node: NodeAtHand) -> None:
        node.hold(xfer(2), a_task())
        assert node.activate(xfer(1), uid()).outcome in {"unknown", "too_old"}
        assert node.activate(xfer(2), uid(7)).outcome in {"unknown", "refused"}
        assert node.state(uid()) == "HELD"

    def test_a_drop_does_not_take_back_an_activation(self, node: NodeAtHand) -> None:
        node.takes(xfer(), a_task())
        assert node.drop(xfer(), uid()).outcome == "activated"
        assert node.state(uid()) == "READY"

    def test_nothing_here_ends_by_a_clock(self, node: NodeAtHand) -> None:
        """Fails when the taker drops what it holds after some time."""
        node.hold(xfer(), a_task())
        node.clock.advance(90 * 86_400)
        node.wake()
        node.say(c.Forget())
        node.reboot()
        node.wake()
        node.say(c.Forget())
        assert node.state(uid()) == "HELD"
        assert node.activate(xfer(), uid()).outcome == "activated"

    def test_a_held_copy_is_a_doubt_until_it_is_activated(self, node: NodeAtHand) -> None:
        node.hold(xfer(), a_task(epoch=4))
        (doubt,) = node.ask(q.Doubts())
        assert (doubt.side, doubt.state, doubt.peer) == ("taker", "HELD", "forge")
        assert (doubt.xfer, doubt.uid, doubt.epoch) == (xfer(), uid(), 5)
        node.activate(xfer(), uid())
        assert node.ask(q.Doubts()) == ()

    def test_needs_go_with_the_task(self, node: NodeAtHand) -> None:
        node.set_agents(an_agent("plain"), an_agent("rich", "gpu"))
        node.takes(xfer(), a_task(needs=["gpu"]))
        assert rule_of(node.claim("plain")) == "needs_unmet"
        assert node.claimed("rich").task.uid == uid()
