"""What a store promises when ownership is taken back: everybody else is barred, one wins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node.task import Task
from tests.builders import NodeAtHand, a_task, rule_of, uid, xfer
from tests.node.store.contract import Contract

S = 1 + 2**20
LOOM = "01LQQM00000000000000000000"
FENCED = (m.Fenced("loom", LOOM),)


def moved_to_loom(node: NodeAtHand, **fields: object) -> Task:
    """The task was given to loom, as loom is under this incarnation."""
    return node.gives_away(xfer(), node.has(a_task(1, **fields)), peer_incarnation=LOOM)


def bar(
    node: NodeAtHand,
    *,
    epoch: int = S,
    fenced: tuple[m.Fenced, ...] = (),
    evidence: dict[str, tuple[int, ...]] | None = None,
) -> m.Reowned:
    targets = (m.Target(uid(), epoch),)
    return node.say(m.Bar(targets, fenced, evidence=evidence or {}))[0]


def reown(
    node: NodeAtHand,
    *,
    epoch: int = S,
    fenced: tuple[m.Fenced, ...] = (),
    evidence: dict[str, tuple[int, ...]] | None = None,
    living: frozenset[str] = frozenset(),
    alone: bool = False,
) -> m.Reowned:
    how = m.Reown(
        (m.Target(uid(), epoch),), fenced, evidence=evidence or {}, living=living, alone=alone
    )
    return node.say(how)[0]


class Reowns(Contract):
    def test_a_bar_keeps_every_older_copy_away(self, node: NodeAtHand) -> None:
        """Fails when bar answers without writing anything down."""
        assert bar(node).outcome == "barred"
        assert rule_of(node.hold(xfer(1), a_task(epoch=5))) == "newer_known"
        assert rule_of(node.hold(xfer(2), a_task(epoch=S - 1))) == "newer_known"
        assert node.hold(xfer(3), a_task(epoch=S)).outcome == "held"

    def test_a_bar_outlives_a_restart(self, node: NodeAtHand) -> None:
        bar(node)
        node.reopen()
        assert rule_of(node.hold(xfer(1), a_task(epoch=5))) == "newer_known"

    def test_a_bar_repeated_changes_nothing(self, node: NodeAtHand) -> None:
        bar(node)
        before = node.dump()
        assert bar(node).outcome == "barred"
        assert node.dump() == before

    def test_a_node_that_has_the_task_is_not_barred(self, node: NodeAtHand) -> None:
        node.has(a_task())
        assert rule_of(bar(node)) == "has_row"
        got = node.running()
        assert rule_of(bar(node)) == "has_row"
        node.finish(got)
        assert rule_of(bar(node)) == "has_row"
        assert node.state(uid()) == "COMPLETED"

    def test_a_node_that_holds_a_copy_of_a_living_giver_is_not_barred(
        self, node: NodeAtHand
    ) -> None:
        node.hold(xfer(), a_task(), giver="forge")
        assert rule_of(bar(node, fenced=FENCED)) == "has_row"
        assert node.state(uid()) == "HELD"

    def test_a_copy_of_a_fenced_giver_gives_way(self, node: NodeAtHand) -> None:
        node.hold(xfer(), a_task(), giver="loom", peer_incarnation=LOOM)
        assert bar(node, fenced=FENCED).outcome == "barred"
        assert node.state(uid()) in {None, "MOVED"}
        assert node.activate(xfer(), uid(), peer="loom").outcome == "dropped"

    def test_a_node_on_which_an_attempt_lies_is_not_barred(self, node: NodeAtHand) -> None:
        """Fails when the evidence on the disk is not asked: it may have run here."""
        assert rule_of(bar(node, evidence={uid(): (1,)})) == "has_attempts"
        assert node.hold(xfer(1), a_task(epoch=5)).outcome == "held"

    def test_a_node_that_knows_a_later_epoch_is_not_barred(self, node: NodeAtHand) -> None:
        bar(node, epoch=2 * S)
        answer = bar(node, epoch=S)
        assert (answer.outcome, rule_of(answer)) == ("refused", "newer_known")

    def test_a_tombstone_here_is_no_obstacle(self, node: NodeAtHand) -> None:
        node.gives_away(xfer(), node.has(a_task()))
        assert bar(node).outcome == "barred"
        assert node.claim().because.rule == "nothing_ready"  # type: ignore[union-attr]

    def test_one_who_is_barred_does_not_win_afterwards(self, node: NodeAtHand) -> None:
        node.gives_away(xfer(), node.has(a_task()))
        bar(node)
        assert reown(node).outcome == "refused"
        assert isinstance(node.claim(), c.NothingToClaim)

    def test_the_kept_copy_of_a_task_that_moved_away_is_owned_again(self, node: NodeAtHand) -> None:
        moved_to_loom(node, body="do it", key="k")
        assert reown(node, fenced=FENCED).outcome == "reowned"

        task = node.task(uid())
        assert (task.state, task.epoch, task.body, task.key) == ("READY", S, "do it", "k")
        assert node.claimed().task.uid == uid()

    def test_owning_again_twice_is_owning_once(self, node: NodeAtHand) -> None:
        moved_to_loom(node)
        assert reown(node, fenced=FENCED).outcome == "reowned"
        before = node.dump()
        assert reown(node, fenced=FENCED).outcome == "reowned"
        assert node.dump() == before
        got = node.claimed()
        assert reown(node, fenced=FENCED).outcome in {"reowned", "refused"}
        assert node.state(got.task.uid) == "CLAIMED"

    def test_late_words_of_the_old_move_do_nothing_to_it(self, node: NodeAtHand) -> None:
        moved_to_loom(node)
        reown(node, fenced=FENCED)
        for word in (node.commit, node.abort, node.settled):
            word(xfer(), uid())
        assert (node.state(uid()), node.task(uid()).epoch) == ("READY", S)

    def test_a_copy_from_the_fenced_node_does_not_come_back(self, node: NodeAtHand) -> None:
        moved_to_loom(node)
        reown(node, fenced=FENCED)
        assert rule_of(node.hold(xfer(2), a_task(epoch=9), giver="loom")) == "already_here"

    def test_nobody_owns_what_it_never_had(self, node: NodeAtHand) -> None:
        answer = reown(node)
        assert (answer.outcome, rule_of(answer)) == ("refused", "unknown_task")

    def test_a_later_epoch_refuses(self, node: NodeAtHand) -> None:
        moved_to_loom(node)
        bar(node, epoch=2 * S)
        answer = reown(node, epoch=S)
        assert (answer.outcome, rule_of(answer)) == ("refused", "newer_known")

    def test_an_attempt_that_may_live_refuses(self, node: NodeAtHand) -> None:
        """Fails when reown does not ask who lives."""
        node.finish(node.running(a_task()), "unproved")
        node.say(m.Quarantine("an older copy was put back"))
        answer = reown(node, living=frozenset({uid()}))
        assert (answer.outcome, rule_of(answer)) == ("refused", "attempt_lives")
        assert node.state(uid()) == "PARKED"

    @pytest.mark.parametrize("was", ["READY", "PARKED"])
    def test_a_quarantined_row_is_owned_again(self, node: NodeAtHand, was: str) -> None:
        node.has(a_task()) if was == "READY" else node.running(a_task())
        node.say(m.Quarantine("an older copy was put back"))
        assert reown(node).outcome == "reowned"
        assert (node.state(uid()), node.task(uid()).epoch) == ("READY", S)

        node.say(m.Release("decided"))
        assert node.claimed().n > (0 if was == "READY" else 1)

    def test_attempts_on_the_disk_that_nobody_knows_refuse_or_are_counted(
        self, node: NodeAtHand
    ) -> None:
        """Fails when the evidence on the disk is not asked; a person's word may overrule it."""
        node.has(a_task())
        node.say(m.Quarantine("an older copy was put back"))
        folders: dict[str, tuple[int, ...]] = {uid(): (1, 2, 3)}
        assert rule_of(reown(node, evidence=folders)) == "has_attempts"

        assert reown(node, evidence=folders, alone=True).outcome == "reowned"
        node.say(m.Release("decided"))
        assert node.claimed().n > 3

    @pytest.mark.parametrize("was", ["READY", "PARKED"])
    def test_a_quarantined_row_gives_way_to_a_bar(self, node: NodeAtHand, was: str) -> None:
        node.has(a_task(1)) if was == "READY" else node.hold(xfer(), a_task(1))
        node.say(m.Quarantine("an older copy was put back"))
        assert bar(node).outcome == "barred"
        assert node.state(uid()) in {None, "MOVED"}
        assert node.facts().counts.get("READY", 0) == 0

    def test_a_held_copy_of_a_fenced_giver_may_win(self, node: NodeAtHand) -> None:
        node.hold(xfer(), a_task(body="do it"), giver="loom", peer_incarnation=LOOM)
        assert reown(node, fenced=FENCED).outcome == "reowned"
        assert (node.state(uid()), node.task(uid()).body) == ("READY", "do it")
        assert node.drop(xfer(), uid(), peer="loom").outcome == "dropped"
        assert node.activate(xfer(), uid(), peer="loom").outcome == "dropped"
        assert node.state(uid()) == "READY"

    def test_a_held_copy_of_a_living_giver_does_not_win(self, node: NodeAtHand) -> None:
        node.hold(xfer(), a_task(), giver="forge")
        assert reown(node, fenced=FENCED).outcome == "refused"
        assert node.state(uid()) == "HELD"

    def test_a_row_that_runs_or_waits_here_is_not_owned_again(self, node: NodeAtHand) -> None:
        node.has(a_task())
        got = node.running()
        assert reown(node).outcome == "refused"
        assert (node.state(uid()), node.task(uid()).epoch) == ("RUNNING", 1)
        assert node.finish(got).accepted

    def test_what_was_owned_again_may_move_again(self, node: NodeAtHand) -> None:
        left = moved_to_loom(node)
        reown(node, fenced=FENCED)
        taken = node.escrow(xfer(2), node.task(uid()))
        assert taken.task is not None
        assert (taken.outcome, taken.task.epoch) == ("escrowed", S)
        assert node.commit(xfer(2), uid()).outcome == "committed"
        assert rule_of(node.hold(xfer(3), replace(left, epoch=S), giver="loom")) == "newer_known"
