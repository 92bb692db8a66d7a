"""Each guard of a queue that only shows when everything else has already gone wrong."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import BrokenRule, StoreUnusable
from agent_node.store import claims, taking
from agent_node.store.sqlite import SqliteStore
from agent_node.task import State
from tests.builders import DAY, NodeAtHand, a_task, an_agent, refusal, rule_of, uid, xfer
from tests.node.store.fleet import Fleet
from tests.node.store.test_sqlite import Sqlite
from tests.store_contract import StoreContract

S = 1 + 2**20
EARLIER, LATER = "01LQQM00000000000000000000", "01LQQN00000000000000000000"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    yield node
    node.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path)
    yield fleet
    fleet.close()


def force(node: NodeAtHand, state: State) -> None:
    """Write a state past all rules, as no command of ours does."""
    node.close()
    node.backend.force_state(node.place, uid(), state)
    node.open()


def bar(node: NodeAtHand, epoch: int = S, **more: Any) -> m.Reowned:
    answer: m.Reowned = node.say(m.Bar((m.Target(uid(), epoch),), **more))[0]
    return answer


def reown(node: NodeAtHand, epoch: int = S, **more: Any) -> m.Reowned:
    answer: m.Reowned = node.say(m.Reown((m.Target(uid(), epoch),), **more))[0]
    return answer


# Claiming.


def no_power(node: NodeAtHand) -> None:
    node.say(c.SetAgents((an_agent("iris", slots=8),)))


def no_slot(node: NodeAtHand) -> None:
    node.say(c.SetAgents((an_agent("iris", "tape", slots=1),)))
    node.has(a_task(7, priority=1))
    assert node.claimed().task.uid == uid(7)


NOBODY_MAY: dict[str, Callable[[NodeAtHand], object]] = {
    "the node is paused": lambda node: node.say(c.SetNode("paused", "no")),
    "the agent is paused": lambda node: node.say(c.SetNode("paused", "no", agent="iris")),
    "it cannot do this": no_power,
    "it has no slot": no_slot,
    "the hub was not heard": lambda node: node.reboot(),
}


@pytest.mark.parametrize("why", NOBODY_MAY)
def test_a_task_that_was_looked_up_is_taken_by_nobody_who_may_not(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Where boosts differ, one statement looks for the first task and the next one takes it.
    Fails where that one leans on what the first has looked at.
    """
    node.say(c.SetAgents((an_agent("iris", "tape", slots=8),)))
    node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id()))
    node.takes(xfer(9), a_task(9, needs=["tape"], boost_per_minute=1.0))
    found = node.task(uid(9)).seq
    NOBODY_MAY[why](node)
    monkeypatch.setattr(claims, "_first_of_all", lambda *_: found)
    assert isinstance(node.claim(), c.NothingToClaim)
    assert node.state(uid(9)) == "READY"


# Moving.


@pytest.mark.parametrize("says", [{}, {"heat": 1}], ids=["plain", "particular"])
@pytest.mark.parametrize("state", ["paused", "draining"])
def test_a_copy_is_written_by_a_node_that_is_active_in_that_very_statement(
    node: NodeAtHand,
    monkeypatch: pytest.MonkeyPatch,
    state: Literal["paused", "draining"],
    says: dict[str, Any],
) -> None:
    """Fails when the statement leaves that to who asked before."""
    node.say(c.SetNode(state, "upgrade"))
    with monkeypatch.context() as blind:
        blind.setattr(taking, "_node_objects", lambda *_, **__: None)
        with pytest.raises(BrokenRule, match=state):
            node.hold(xfer(), a_task(**says))
    assert node.state(uid()) is None
    assert rule_of(node.hold(xfer(), a_task(**says))) == state, "nothing was recorded before"


def test_a_node_below_the_floor_of_free_disk_takes_nothing(node: NodeAtHand) -> None:
    """What it holds it takes in: its giver has let go. Fails without the look at the disk."""
    node.hold(xfer(1), a_task(1))
    assert isinstance(node.store, SqliteStore)
    node.store.live.disk_low = True
    assert rule_of(node.hold(xfer(2), a_task(2))) == "disk_floor"
    assert node.state(uid(2)) is None
    assert node.activate(xfer(1), uid(1)).outcome == "activated"
    node.store.live.disk_low = False
    assert node.hold(xfer(3), a_task(2)).outcome == "held"


def test_a_commit_takes_a_row_only_out_of_its_own_escrow(node: NodeAtHand) -> None:
    """Fails when the statements of commit ask neither for ESCROW nor for the transfer."""
    node.escrow(xfer(), node.has(a_task()))
    force(node, State.READY)
    assert rule_of(node.commit(xfer(), uid())) == "not_escrow"
    assert node.state(uid()) == "READY"


def test_an_activation_wakes_a_row_only_out_of_its_own_hold(node: NodeAtHand) -> None:
    """Fails when the statement of activate asks neither for HELD nor for the transfer."""
    node.hold(xfer(), a_task())
    force(node, State.COMPLETED)
    assert rule_of(node.activate(xfer(), uid())) == "not_held"
    assert node.state(uid()) == "COMPLETED"


def test_a_task_that_its_taker_refuses_stays_with_its_giver(fleet: Fleet) -> None:
    """Fails when the hub commits before the taker has said `held`: the task would be lost."""
    fleet.add("iris", 1, None)
    fleet.nodes["forge"].say(c.SetNode("paused", "upgrade"))
    journey = fleet.begin_move(fleet.nodes["iris"].task(uid()), "iris", "forge")
    fleet.follow(journey, m.Escrow, m.Hold, m.Commit, m.Activate, m.Abort, m.Settled)
    fleet.check()
    fleet.claim("iris")
    assert fleet.living[uid()][0] == "iris"


def test_an_older_copy_does_not_push_out_a_held_one(node: NodeAtHand) -> None:
    """Fails when a hold replaces what is held without comparing the epochs."""
    node.hold(xfer(2), a_task(epoch=5))
    assert rule_of(node.hold(xfer(1), a_task(epoch=3))) == "already_here"
    assert node.activate(xfer(2), uid()).outcome == "activated"
    assert node.task(uid()).epoch == 6


def test_an_abort_that_came_first_keeps_its_escrow_from_happening(node: NodeAtHand) -> None:
    """Fails when an abort of an unseen transfer is answered and not written down."""
    given = node.has(a_task())
    assert node.abort(xfer(), uid()).outcome == "aborted"
    assert node.escrow(xfer(), given).outcome == "aborted"
    assert node.state(uid()) == "READY"


def test_a_drop_that_came_first_keeps_its_hold_from_happening(node: NodeAtHand) -> None:
    """Fails when a drop of an unseen transfer is answered and not written down."""
    assert node.drop(xfer(), uid()).outcome == "dropped"
    assert node.hold(xfer(), a_task()).outcome == "dropped"
    assert node.state(uid()) is None


def test_every_move_that_was_forgotten_together_is_too_old(node: NodeAtHand) -> None:
    """Fails when the floor rises to the oldest of what is forgotten, not to the newest."""
    for number in (1, 2, 3):
        node.hold(xfer(number), a_task(number))
        node.drop(xfer(number), uid(number))
    node.clock.advance(31 * DAY)
    node.say(c.Forget())
    answers = [node.hold(xfer(number), a_task(number)).outcome for number in (1, 2, 3)]
    assert answers == ["too_old"] * 3


# Owning again.


def test_a_winner_is_not_barred_at_the_epoch_it_won(node: NodeAtHand) -> None:
    """Fails when bar takes the record of a win for its own: two nodes would own the task."""
    node.gives_away(xfer(), node.has(a_task()), peer_incarnation=EARLIER)
    assert reown(node, fenced=(m.Fenced("loom", EARLIER),)).outcome == "reowned"
    answer = bar(node)
    assert (answer.outcome, rule_of(answer)) == ("refused", "newer_known")
    assert node.state(uid()) == "READY"


def test_a_row_that_gave_way_to_a_bar_can_be_owned_again(node: NodeAtHand) -> None:
    """Fails when bar throws the row away without keeping a copy: it may be the last."""
    node.has(a_task(body="do it"))
    node.say(m.Quarantine("an older copy was put back"))
    assert bar(node).outcome == "barred"
    assert node.state(uid()) != "READY"
    assert reown(node, 2 * S, alone=True).outcome == "reowned"
    assert (node.state(uid()), node.task(uid()).body) == ("READY", "do it")


def test_an_attempt_that_a_quarantine_stopped_stays_in_the_history(node: NodeAtHand) -> None:
    """Fails when quarantine leaves it in the task's row, where the next claim writes its own."""
    node.running(a_task())
    node.say(m.Quarantine("an older copy was put back"))
    assert reown(node, S, evidence={uid(): (1,)}, alone=True).outcome == "reowned"
    node.say(m.Release("decided"))
    later = node.claimed()
    shown = node.shown(uid())
    assert shown is not None
    assert [one["n"] for one in shown.attempts] == [1, later.n]


def test_an_attempt_elsewhere_without_an_end_has_to_be_fenced(node: NodeAtHand) -> None:
    """Fails when reown asks only for attempts of this node."""
    runs_on = {"n": 1, "node": "forge", "incarnation": EARLIER, "agent": "forge"}
    node.takes(xfer(), a_task(attempts=[runs_on]))
    node.gives_away(xfer(2), node.task(uid()), peer_incarnation=EARLIER)
    loom, forge = m.Fenced("loom", EARLIER), m.Fenced("forge", EARLIER)
    assert rule_of(reown(node, fenced=(loom,))) == "attempt_not_fenced"
    assert reown(node, fenced=(loom, forge)).outcome == "reowned"


def test_what_moved_to_a_living_node_is_not_owned_again(node: NodeAtHand) -> None:
    """Fails when reown takes a kept copy without asking who has the task."""
    node.gives_away(xfer(), node.has(a_task()), peer_incarnation=EARLIER)
    assert rule_of(reown(node)) == "not_fenced"
    assert rule_of(reown(node, fenced=(m.Fenced("forge", EARLIER),))) == "not_fenced"
    assert node.state(uid()) == "MOVED"


def test_who_knows_a_later_life_refuses_the_fence_of_an_earlier_one(node: NodeAtHand) -> None:
    """Fails when bar and reown do not compare with what was heard of the fenced node."""
    node.gives_away(xfer(), node.has(a_task()), peer_incarnation=EARLIER)
    node.hold(xfer(2), a_task(2), giver="loom", peer_incarnation=LATER)
    targets, fenced = (m.Target(uid(), S),), (m.Fenced("loom", EARLIER),)
    for command in (m.Bar(targets, fenced=fenced), m.Reown(targets, fenced=fenced)):
        assert refusal(node, command) == "later_incarnation"
    assert node.state(uid()) == "MOVED"


def test_what_was_heard_of_others_outlives_a_restored_database(node: NodeAtHand) -> None:
    """Fails when it lies in the database alone: the older copy would accept an old fence."""
    node.gives_away(xfer(), node.has(a_task()), peer_incarnation=EARLIER)
    node.close()
    shutil.copy(node.place / "queue.db", node.place / "copy.db")
    node.open()
    node.hold(xfer(2), a_task(2), giver="loom", peer_incarnation=LATER)
    node.close()
    (node.place / "copy.db").replace(node.place / "queue.db")
    node.open()
    fenced = (m.Fenced("loom", EARLIER),)
    assert refusal(node, m.Reown((m.Target(uid(), S),), fenced=fenced)) == "later_incarnation"


def test_a_fenced_node_comes_back_under_a_later_name(node: NodeAtHand) -> None:
    """Fails when a quarantine keeps the incarnation: words from before the fence would fit."""
    node.hold(xfer(), a_task())
    before = node.facts().incarnation
    node.clock.advance(1)
    node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id(), fenced=True))
    assert node.facts().incarnation > before
    late = m.Activate((m.Settle(xfer(), uid(), "forge"),), c.Sender("hub", 1, before))
    assert refusal(node, late) == "other_incarnation"


# Running.


def test_a_task_waits_for_the_last_of_its_needs(node: NodeAtHand) -> None:
    """Fails when meeting some of the needs is enough to claim."""
    node.set_agents(an_agent("iris", "cuda"))
    node.has(a_task(needs=["cuda", "git"]))
    assert rule_of(node.claim()) == "needs_unmet"
    node.set_agents(an_agent("iris", "git", "cuda"))
    assert node.claimed().task.uid == uid()


def test_a_cancelled_task_that_fails_is_not_tried_again(node: NodeAtHand) -> None:
    """Fails when a failure is judged before the request to stop."""
    got = node.running(a_task())
    node.say(c.Cancel(uid(), "wrong branch"))
    assert node.finish(got, "failed", error_kind="crash").state == "CANCELLED"


# After a boot.


def greeted_and_rebooted(node: NodeAtHand) -> None:
    node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id()))
    node.reboot()


def test_after_a_boot_a_task_that_was_ever_offered_waits_for_the_hub(node: NodeAtHand) -> None:
    """Fails when escrow does not mark the task: its taker may own it again by now."""
    given = node.has(a_task())
    node.escrow(xfer(), given)
    node.abort(xfer(), uid())
    greeted_and_rebooted(node)
    assert rule_of(node.claim()) == "waits_for_hub"
    node.say(m.Hello("arc0", "arc", 1, node.clock.boot_id()))
    assert node.claimed().task.uid == uid()


def test_after_a_boot_a_task_that_was_owned_again_waits_for_the_hub(node: NodeAtHand) -> None:
    """Fails when reown does not mark a row of its own that was never given to anybody."""
    node.has(a_task())
    node.say(m.Quarantine("an older copy was put back"))
    assert reown(node).outcome == "reowned"
    node.say(m.Release("decided"))
    greeted_and_rebooted(node)
    assert rule_of(node.claim()) == "waits_for_hub"


# The disk.


@pytest.mark.parametrize("journal", ["wal", "truncate"])
def test_what_is_acknowledged_was_synced_whichever_journal_keeps_it(
    tmp_path: Path, journal: str
) -> None:
    """Fails with synchronous=NORMAL, of which the next power cut may take the last commits."""
    node = NodeAtHand(Sqlite(), tmp_path / "iris", journal=journal)
    assert isinstance(node.store, SqliteStore)
    assert node.ask(q.InForce())["synchronous"] == "2"
    assert node.ask(q.InForce())["journal_mode"] == journal
    node.close()


# The contract itself.


def test_no_part_of_the_contract_hides_a_test_of_another() -> None:
    """Of two tests with one name only the first part's would ever run."""
    parts = {part for part in StoreContract.__mro__ if part is not object}
    names = Counter(name for part in parts for name in vars(part) if name.startswith("test_"))
    assert [name for name, times in names.items() if times > 1] == []


# Opening.


DEAF_TO = {
    "synchronous = FULL": "synchronous = OFF",
    "busy_timeout = 5000": "busy_timeout = 1",
    "foreign_keys = ON": "foreign_keys = OFF",
    "trusted_schema = OFF": "trusted_schema = ON",
    "cell_size_check = ON": "cell_size_check = OFF",
    "mmap_size = 0": "mmap_size = 4096",
    "journal_mode = wal": "journal_mode = memory",
}


@pytest.mark.parametrize("said", DEAF_TO)
def test_a_switch_that_sqlite_did_not_take_opens_no_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """It says nothing when it does not; fails where what is in force is not read again."""

    class Deaf(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute(sql.replace(said, DEAF_TO[said]), *values)

    connect = partial(sqlite3.connect, factory=Deaf)
    with monkeypatch.context() as deaf:
        deaf.setattr("agent_node.store.database.sqlite3.connect", connect)
        with pytest.raises(StoreUnusable, match=said.split(maxsplit=1)[0]):
            NodeAtHand(Sqlite(), tmp_path / "deaf")
    NodeAtHand(Sqlite(), tmp_path / "hearing").close()
