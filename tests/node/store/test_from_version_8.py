"""A database of version 8, where completed tasks were in the index of states, goes on as it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.clock import iso
from agent_node.store.generation import GenerationFile, Mark, machine_id
from tests.builders import DAY, NodeAtHand, a_task, uid
from tests.node.store.older import an_empty_home, columns, take_over
from tests.node.store.test_sqlite import Sqlite, read_only

OLD = 8
TOLD, UNTOLD, DEAD, RUNNING, WAITING = map(uid, range(1, 6))


def lived(place: Path) -> NodeAtHand:
    """A node with a task in every state that the index of states makes a difference for."""
    node = NodeAtHand(Sqlite(), place)
    for number in (1, 2):
        node.finish(node.running(a_task(number)), output={"n": number}, duration_s=2.5,
                    cost_usd="0.10")  # fmt: skip
    node.clock.advance(1)
    node.finish(node.running(a_task(3)), "failed", error_kind="auth_failure")
    node.running(a_task(4))
    node.has(a_task(5))
    return node


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[NodeAtHand, Path]]:
    """What the node says today, and a home of version 8 that has forgotten one end already."""
    today, home = lived(tmp_path / "today"), tmp_path / "old"
    an_empty_home(home, OLD, monkeypatch)
    with closing(sqlite3.connect(home / "queue.db")) as db, db:
        take_over(db, tmp_path / "today", ("node", "agent", "need_set", "agent_can", "task",
                                           "attempt", "life", "event"))  # fmt: skip
        gone = db.execute("DELETE FROM main.event WHERE uid = ? AND state = 'COMPLETED'", (UNTOLD,))
        assert gone.rowcount == 1
    yield today, home
    today.close()


def test_tasks_counts_and_attempts_are_the_same(old: tuple[NodeAtHand, Path]) -> None:
    """Fails when the step loses an attempt whose event is gone, or a count."""
    today, home = old
    again = NodeAtHand(Sqlite(), home)
    assert again.facts().counts == today.facts().counts
    assert again.facts().counts["COMPLETED"] == 2
    for task in (TOLD, UNTOLD, DEAD, RUNNING, WAITING):
        mine, theirs = again.shown(task), today.shown(task)
        assert mine is not None
        assert theirs is not None
        assert (mine.task, mine.attempts) == (theirs.task, theirs.attempts)
        assert mine.events == (theirs.events if task != UNTOLD else theirs.events[:-1])
    assert [one.uid for one in again.ask(q.OpenAttempts())] == [RUNNING]
    assert (again.facts().last_task or {})["uid"] == DEAD
    again.close()


def come_far(home: Path, *, database: int, file: int) -> None:
    """The generation of the database, and the one that the file beside it was told last."""
    with closing(sqlite3.connect(home / "queue.db")) as db, db:
        db.execute("UPDATE node SET generation = ?, machine = ?", (database, machine_id()))
        (life,) = db.execute("SELECT incarnation FROM node").fetchone()
    marks = GenerationFile(home / "generation")
    marks.write(Mark(file, life, machine_id()))
    marks.close()


def test_an_older_copy_is_noticed_at_the_first_start_of_the_new_version(
    old: tuple[NodeAtHand, Path],
) -> None:
    """Fails when events of before count: a copy that is older would seem to be further on."""
    _, home = old
    come_far(home, database=5, file=6)
    again = NodeAtHand(Sqlite(), home)
    assert again.facts().state == "quarantined"
    again.close()


def test_the_generation_goes_on_from_where_it_was(old: tuple[NodeAtHand, Path]) -> None:
    _, home = old
    come_far(home, database=5, file=5)
    again = NodeAtHand(Sqlite(), home)
    assert again.facts().state == "active"
    before = again.facts().generation
    assert before >= 5
    again.has(a_task(9))
    again.say(c.Raise())
    assert again.facts().generation > before
    again.close()


def test_what_is_found_by_no_event_is_forgotten_all_the_same(
    old: tuple[NodeAtHand, Path],
) -> None:
    """Fails when the step leaves a completed task neither in the index nor told of by an event."""
    _, home = old
    again = NodeAtHand(Sqlite(), home)
    again.clock.advance(30 * DAY + 1)
    again.say(c.Forget())
    assert [again.state(task) for task in (TOLD, UNTOLD)] == [None, None]
    left = [again.state(task) for task in (DEAD, RUNNING, WAITING)]
    assert left == ["DEAD_LETTERED", "RUNNING", "READY"]
    again.close()
    with closing(read_only(home)) as db:
        assert db.execute("SELECT uid FROM attempt WHERE uid = ?", (UNTOLD,)).fetchall() == []


def test_what_a_budget_had_let_go_is_no_first_comer(old: tuple[NodeAtHand, Path]) -> None:
    """Seen to fail: it was let go later than others came, and those were passed over behind it."""
    today, home = old
    today.clock.advance(60)
    since = iso(today.clock.now())
    with closing(sqlite3.connect(home / "queue.db")) as db, db:
        named = columns(db, "task").replace("uid,", "", 1).replace("seq,", "", 1)
        (first,) = db.execute("SELECT ready_at FROM task WHERE uid = ?", (WAITING,)).fetchone()
        others = ", ".join(f"{name}" for name in named.split(", ") if name not in ("uid", "seq"))
        db.execute(f"INSERT INTO task (uid, {others}) SELECT ?, {others} FROM task WHERE uid = ?",
                   (uid(6), WAITING))
        db.execute("UPDATE task SET ready_at = ? WHERE uid = ?", (since, WAITING))
    again = NodeAtHand(Sqlite(), home)
    assert again.facts().oldest_ready_at == first < since
    again.close()
