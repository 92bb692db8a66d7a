"""Courses of events for which the protocol has its guards: each goes wrong where one is missing.

They begin on three nodes in whatever condition those are, with a task that is READY at `giver`;
what comes after them is anybody's guess. A step that the nodes refuse changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from agent_node import commands as c
from agent_node import moves as m
from tests.node.store.fleet import Fleet
from tests.node.store.hub_double import NAMES, Journey, Sent

Course = Callable[[Fleet, str, str, str], object]


def _moved(fleet: Fleet, uid: str, giver: str, taker: str) -> Journey:
    journey = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    fleet.follow(journey, m.Escrow, m.Hold, m.Commit, m.Activate)
    return journey


def _runs(fleet: Fleet, uid: str, name: str, *, ends: bool = True) -> None:
    """Its turn comes, if it is there to be claimed; and it completes."""
    for _ in range(4):
        if not _lives(fleet, uid, name):
            fleet.claim(name)
    if ends and _lives(fleet, uid, name):
        fleet.end(uid, "completed")


def _lives(fleet: Fleet, uid: str, name: str) -> bool:
    return uid in fleet.living and fleet.living[uid][0] == name


def _said_again(fleet: Fleet, journey: Journey) -> None:
    for sent in [sent for sent in fleet.bag if sent.journey is journey]:
        fleet.send(sent, again=True)


def _late(fleet: Fleet, journey: Journey, kind: type) -> Sent:
    (sent,) = (step for step in fleet.next_steps(journey) if type(step.command) is kind)
    fleet.send(sent, how="late")
    return sent


def _arrives(fleet: Fleet, sent: Sent | None) -> None:
    if sent is not None:
        fleet.send(sent)


def a_move_is_forgotten_and_said_again(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `xfer_floor`."""
    journey = _moved(fleet, uid, giver, taker)
    _runs(fleet, uid, taker)
    fleet.follow(journey, m.Settled)
    for name in NAMES:
        fleet.forget(name)
    _said_again(fleet, journey)
    _runs(fleet, uid, taker)


def an_abort_overtakes_its_escrow(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `unseen_abort_recorded`."""
    journey = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    fleet.follow(journey, m.Abort, m.Escrow, m.Hold, m.Commit, m.Drop)


def an_escrow_comes_after_the_task_was_changed(
    fleet: Fleet, uid: str, giver: str, taker: str
) -> None:
    """Missed without `escrow_names_its_epoch`."""
    journey = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    late = _late(fleet, journey, m.Escrow)
    fleet.send(Sent(giver, c.SetFields(uid, {"priority": 9}), None))
    fleet.send(late, again=True)


def a_hold_overtakes_an_older_one(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `held_gives_way_to_newer`."""
    older = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    fleet.follow(older, m.Escrow)
    if older.task is None:
        return
    late = _late(fleet, older, m.Hold)
    fleet.follow(older, m.Abort)
    newer = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    fleet.follow(newer, m.Escrow, m.Hold, m.Commit)
    fleet.send(late, again=True)
    fleet.follow(older, m.Drop)
    fleet.follow(newer, m.Activate)


def a_commit_comes_after_a_long_while(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `no_drop_by_a_clock`: only the giver's clock ends a lease."""
    journey = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    fleet.follow(journey, m.Escrow, m.Hold)
    fleet.nodes[taker].wake(after=700)
    fleet.follow(journey, m.Commit, m.Activate)


ORDINARY: tuple[Course, ...] = (
    a_move_is_forgotten_and_said_again,
    an_abort_overtakes_its_escrow,
    an_escrow_comes_after_the_task_was_changed,
    a_hold_overtakes_an_older_one,
    a_commit_comes_after_a_long_while,
)


def two_nodes_are_to_own_it(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `bar_recorded`: the word to the first is late, and the second one is told."""
    fleet.back_up(giver)
    journey = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    fleet.follow(journey, m.Escrow, m.Hold)
    fleet.restore(giver)
    late = fleet.barred_for(uid, giver)
    fleet.reown(uid, taker)
    _arrives(fleet, late)
    fleet.set_right(giver)
    _runs(fleet, uid, taker, ends=False)
    _runs(fleet, uid, giver)


def a_copy_gives_way_and_was_the_last(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `bar_keeps_the_copy`."""
    fleet.back_up(giver)
    fleet.follow(fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker), m.Abort)
    fleet.restore(giver)
    fleet.bar_at(giver, uid)


def a_backup_is_from_before_the_task_came(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `disk_evidence` in bar, and without `other_incarnation`."""
    fleet.back_up(taker)
    journey = _moved(fleet, uid, giver, taker)
    _runs(fleet, uid, taker)
    fleet.restore(taker)
    fleet.reown(uid, giver)
    _runs(fleet, uid, giver)
    fleet.set_right(taker)
    _said_again(fleet, journey)
    _runs(fleet, uid, taker)


def a_backup_is_from_before_the_attempt(fleet: Fleet, uid: str, giver: str, _: str) -> None:
    """Missed without `disk_evidence`, when it opens and in reown."""
    fleet.back_up(giver)
    _runs(fleet, uid, giver)
    fleet.restore(giver)
    _runs(fleet, uid, giver)
    fleet.reown(uid, giver)
    fleet.set_right(giver)
    _runs(fleet, uid, giver)


def a_backup_is_from_before_the_task_left(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `quarantine_on_restore`."""
    fleet.back_up(giver)
    _moved(fleet, uid, giver, taker)
    fleet.restore(giver)
    _runs(fleet, uid, taker, ends=False)
    _runs(fleet, uid, giver)


def a_won_task_is_forgotten(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `reown_recorded`."""
    fleet.back_up(giver)
    _moved(fleet, uid, giver, taker)
    fleet.restore(giver)
    fleet.release(giver)
    fleet.fence(taker)
    won = fleet.barred_for(uid, giver)
    _arrives(fleet, won)
    fleet.set_right(giver)
    _runs(fleet, uid, giver)
    fleet.set_right(taker)  # a copy that nobody decided upon within a month would be the last
    fleet.forget(giver)
    fleet.forget(giver)
    _arrives(fleet, won)
    _runs(fleet, uid, giver)


def a_machine_that_is_dead_comes_up(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `wait_for_hello`, and without `hello_tells_the_fence`."""
    _moved(fleet, uid, giver, taker)
    fleet.fence(taker)
    fleet.reown(uid, giver)
    _runs(fleet, uid, giver, ends=False)
    fleet.switch_on(taker)
    _runs(fleet, uid, taker)
    fleet.hello(taker)
    _runs(fleet, uid, taker)


def a_giver_that_is_dead_comes_up(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `wait_covers_the_offered`."""
    journey = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    fleet.follow(journey, m.Escrow, m.Hold)
    fleet.fence(giver)
    fleet.reown(uid, taker)
    _runs(fleet, uid, taker, ends=False)
    fleet.switch_on(giver)
    fleet.nodes[giver].wake()
    _runs(fleet, uid, giver)


def a_word_is_from_before_the_fence(fleet: Fleet, uid: str, giver: str, taker: str) -> None:
    """Missed without `new_incarnation_on_fence`."""
    journey = fleet.begin_move(fleet.nodes[giver].task(uid), giver, taker)
    fleet.follow(journey, m.Escrow)
    fleet.fence(taker)
    late = fleet.barred_for(uid, giver)
    fleet.set_right(taker)
    fleet.follow(journey, m.Hold, m.Commit, m.Activate)
    _arrives(fleet, late)
    _runs(fleet, uid, giver, ends=False)
    _runs(fleet, uid, taker)


IN_TROUBLE: tuple[Course, ...] = (
    two_nodes_are_to_own_it,
    a_copy_gives_way_and_was_the_last,
    a_backup_is_from_before_the_task_came,
    a_backup_is_from_before_the_attempt,
    a_backup_is_from_before_the_task_left,
    a_won_task_is_forgotten,
    a_machine_that_is_dead_comes_up,
    a_giver_that_is_dead_comes_up,
    a_word_is_from_before_the_fence,
)
