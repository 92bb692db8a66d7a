"""Faults that were found in a finished store: each has its test, so that it does not come back."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_node import commands as c
from agent_node import moves as m
from agent_node import queries as q
from agent_node.errors import BadSettings, Refused, StoreCorrupt, StoreUnusable
from agent_node.store import database
from agent_node.store.schema import STEPS
from agent_node.store.sqlite import open_store
from agent_node.task import Task
from agent_node.ulid import new_ulid
from tests.builders import DAY, Ending, NodeAtHand, a_clock, a_task, refusal, rule_of, uid, xfer
from tests.node.store.test_sqlite import Sqlite

EARLIER = "01LQQM00000000000000000000"
FOR_EVER = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
ELSEWHERE = {"n": 1, "node": "forge", "incarnation": EARLIER, "agent": "forge"}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    yield node
    node.close()


def settle_task_as(node: NodeAtHand, state: str) -> None:
    """The one task of this node fails and waits for its next try, or ends unproved."""
    got = node.running(a_task())
    kinds: dict[str, Ending] = {"RETRYING": "failed", "PARKED": "unproved"}
    node.finish(got, kinds[state])
    assert node.state(uid()) == state


# Time.


def test_a_lease_of_an_earlier_boot_is_due_at_once(node: NodeAtHand) -> None:
    """Fails when `next_lease` compares seconds of two boots: the new one counts from nothing."""
    node.escrow(xfer(), node.has(a_task()))
    lease = node.ask(q.NextDue()).lease
    assert lease is not None
    assert lease > node.clock.boottime()
    node.reboot()
    assert node.ask(q.NextDue()).lease == 0
    assert node.wake().readied == 1
    assert node.state(uid()) == "READY"


def drain(node: NodeAtHand, deadline_s: float | None) -> str | None:
    """The deadline that holds after this word."""
    node.say(c.SetNode("draining", "move house", deadline_s=deadline_s, then="requeue"))
    until: str | None = node.facts().drain_until
    return until


def test_a_drain_said_again_with_a_new_deadline_counts_from_now(node: NodeAtHand) -> None:
    """Fails when a drain of a draining node with the same reason is taken for a repeat."""
    first = drain(node, 60)
    later = drain(node, 600)
    assert first is not None
    assert later is not None
    assert later > first
    assert drain(node, None) is None, "and without one it waits"


@pytest.mark.parametrize("state", ["RETRYING", "PARKED"])
def test_not_before_is_refused_where_it_would_mean_nothing(node: NodeAtHand, state: str) -> None:
    """Fails when `set` writes it, answers `changed`, and nothing ever waits for it."""
    settle_task_as(node, state)
    later = c.SetFields(uid(), {"not_before": "2026-03-11T00:00:00.000Z"})
    assert refusal(node, later) == "not_waiting"
    assert node.task(uid()).not_before is None
    assert node.say(c.SetFields(uid(), {"priority": 2})).outcome == "changed"


def test_a_transfer_from_the_future_never_raises_the_floor(node: NodeAtHand) -> None:
    """Fails when forgetting it refuses every transfer that is ever made from today on."""
    node.escrow(FOR_EVER, node.has(a_task()))
    node.abort(FOR_EVER, uid())
    node.settled(FOR_EVER, uid())
    node.clock.advance(100 * DAY)
    node.say(c.Forget())
    assert node.facts().xfer_floor < FOR_EVER
    today = new_ulid(int(node.clock.now().timestamp() * 1000), bytes(10))
    assert node.escrow(today, node.task(uid())).outcome == "escrowed"


# The disk beside the database.


@pytest.mark.parametrize("stray", ["README", "lost+found/", "{uid}/x", "{uid}/lost+found/"])
def test_what_is_no_attempt_says_nothing_about_the_database(node: NodeAtHand, stray: str) -> None:
    """Fails when every name under tasks/ counts as an attempt that the database forgot."""
    node.finish(node.running(a_task()))
    place = node.place / "tasks" / stray.format(uid=uid())
    place.parent.mkdir(parents=True, exist_ok=True)
    place.mkdir() if stray.endswith("/") else place.touch()
    node.reopen()
    assert node.facts().state == "active"


def test_an_attempt_that_the_database_never_heard_of_still_quarantines(node: NodeAtHand) -> None:
    """The guard that the strays above must not weaken."""
    (node.place / "tasks" / uid(9) / "1").mkdir(parents=True)
    node.reopen()
    assert node.facts().state == "quarantined"


def test_a_queue_that_is_a_link_is_refused_by_name(tmp_path: Path) -> None:
    """Fails when the system's own error leaves the store: it would end as a traceback."""
    (tmp_path / "queue.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(StoreUnusable, match=r"queue\.db"):
        open_store(tmp_path, name="iris", clock=a_clock())
    assert not (tmp_path / "elsewhere.db").exists()


def test_hearsay_in_a_link_is_refused_unread(node: NodeAtHand) -> None:
    """Fails when the file is read through whatever stands in its place, a FIFO included."""
    node.close()
    hearsay = node.place / "heard.json"
    hearsay.unlink(missing_ok=True)
    hearsay.symlink_to("/dev/zero")
    with pytest.raises(StoreCorrupt, match=r"heard\.json"):
        node.open()


def test_a_node_keeps_the_name_that_its_queue_knows(node: NodeAtHand) -> None:
    """Fails when a new name in node.toml is taken silently, or the old one goes on unsaid."""
    node.close()
    with pytest.raises(BadSettings, match=r"loom.*iris"):
        open_store(node.place, name="loom", clock=node.clock)


def test_a_second_copy_before_a_step_does_not_replace_the_first(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a database put back and stepped again is not copied, or copied over the first."""
    queue, backups = node.place / "queue.db", node.place / "backups"
    old = node.place / "old.db"
    node.close()
    shutil.copy(queue, old)
    step = "ALTER TABLE node ADD COLUMN colour TEXT"
    monkeypatch.setattr(database, "STEPS", (*STEPS, step))
    monkeypatch.setattr(database, "VERSION", len(STEPS) + 1)
    node.open()
    node.close()
    first = (backups / f"queue-v{len(STEPS)}.db").read_bytes()
    shutil.copy(old, queue)
    with sqlite3.connect(queue) as db:  # not the state of which there is a copy
        db.execute("UPDATE node SET reason = 'put back'")
    db.close()
    node.open()
    assert (backups / f"queue-v{len(STEPS)}.db").read_bytes() == first
    assert (backups / f"queue-v{len(STEPS)}-2.db").is_file()


# What is told.


def parts(whole: str) -> list[str]:
    """A beginning, an end, and all of it."""
    return [whole[:22], whole[-4:], whole]


def listed(node: NodeAtHand, **how: Any) -> list[tuple[str, str]]:
    return [(task.uid, str(task.state)) for task in node.ask(q.ListTasks(**how)).tasks]


def test_a_task_that_moved_away_is_found_by_a_part_of_its_uid(node: NodeAtHand) -> None:
    """Fails when only rows are looked through: the copy that was kept is no row any more."""
    node.gives_away(xfer(), node.has(a_task(7)))
    moved = [(uid(7), "MOVED")]
    for part in parts(uid(7)):
        assert listed(node, match=part) == moved
        assert listed(node, match=part, states=("MOVED",)) == moved
    assert listed(node, states=("MOVED",)) == moved
    assert listed(node, match="QQQQ") == []
    assert listed(node) == []


def attempts_told(tasks: tuple[Task, ...]) -> list[int]:
    return [len(task.attempts) for task in tasks]


def test_a_list_tells_the_attempts_of_those_that_have_some(node: NodeAtHand) -> None:
    """Fails when `list` and `candidates` answer from the row alone."""
    node.takes(xfer(), a_task(1, attempts=[{**ELSEWHERE, "ended_at": "2026-03-10T03:00:00.000Z"}]))
    node.has(a_task(2))
    assert attempts_told(node.ask(q.ListTasks()).tasks) == [1, 0]
    chosen = node.ask(q.Candidates("moved", (q.Wanting("loom"),), order="most_urgent"))
    assert sorted(attempts_told(chosen.tasks)) == [0, 1]


def test_a_fence_that_means_an_earlier_life_is_void(node: NodeAtHand) -> None:
    """Fails when hello does not ask whom the hub means: a late word would quarantine again."""
    late = m.Hello("arc0", "arc", 5, node.clock.boot_id(), fenced=True, incarnation=EARLIER)
    with pytest.raises(Refused) as refused:
        node.say(late)
    assert refused.value.code == "other_incarnation"
    assert (node.facts().state, node.facts().term) == ("active", 0)
    meant = node.facts().incarnation
    node.say(m.Hello("arc0", "arc", 5, node.clock.boot_id(), fenced=True, incarnation=meant))
    assert node.facts().state == "quarantined"


def test_a_record_whose_copy_is_gone_does_not_spoil_the_drops_beside_it(node: NodeAtHand) -> None:
    """Guard: `let_go` looks before it drops. Without it the whole request is a fault; seen."""
    for number in (1, 2):
        assert node.hold(xfer(number), a_task(number)).outcome == "held"
    with closing(sqlite3.connect(node.place / "queue.db")) as db, db:
        db.execute("DELETE FROM task WHERE uid = ?", (uid(1),))
    node.reopen()
    moves = tuple(m.Settle(xfer(number), uid(number), "forge") for number in (1, 2))
    gone, dropped = node.say(m.Drop(moves))
    assert (rule_of(gone), dropped.outcome) == ("not_held", "dropped")
