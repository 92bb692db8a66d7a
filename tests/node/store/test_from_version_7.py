"""A database of version 7, where moves had indexes of their own, goes on as it was."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_node import queries as q
from agent_node.store.rows import life_of
from agent_node.task import DEFAULTS, Task
from tests.builders import NodeAtHand, a_task, uid, xfer
from tests.node.store.older import an_empty_home, take_over
from tests.node.store.test_sqlite import Sqlite, read_only

OLD = 7
ASIDE, GONE, BACK, HELD, CAME, DROPPED = map(uid, range(1, 7))


def moved_about(place: Path) -> NodeAtHand:
    """A node with a move in each of its states, at both sides."""
    node = NodeAtHand(Sqlite(), place)
    for number, task in enumerate((ASIDE, GONE, BACK), 1):
        node.has(a_task(number, body="do it", tags=["t"]))
        node.escrow(xfer(number), node.task(task))
    node.commit(xfer(2), GONE)
    node.abort(xfer(3), BACK)
    for number, task in enumerate((HELD, CAME, DROPPED), 4):
        assert node.hold(xfer(number), a_task(number)).outcome == "held", task
    node.activate(xfer(5), CAME)
    node.drop(xfer(6), DROPPED)
    return node


def whole_life(life: str) -> str:
    """As it was kept before: with every field, also with those that say nothing."""
    every = {name: DEFAULTS[name] for name in DEFAULTS if f"'{name}'" in life_of()}
    return json.dumps({**every, "pinned": 0, **json.loads(life)})


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[NodeAtHand, Path]]:
    """What the node says today, and a home of version 7 in which the same is written down."""
    today, home = moved_about(tmp_path / "today"), tmp_path / "old"
    an_empty_home(home, OLD, monkeypatch)
    with closing(sqlite3.connect(home / "queue.db")) as db, db:
        db.create_function("whole", 1, whole_life)
        take_over(db, tmp_path / "today", ("node", "agent", "need_set", "agent_can", "task",
                                           "transfer", "tombstone", "event"))  # fmt: skip
        db.execute("UPDATE main.event SET n = NULL WHERE n = 0")
        db.execute("UPDATE main.tombstone SET life = whole(life)")
    yield today, home
    today.close()


def test_what_happened_is_told_as_before(old: tuple[NodeAtHand, Path]) -> None:
    """Fails when the step does not name the events of each move, or names one that is none."""
    today, home = old
    again = NodeAtHand(Sqlite(), home)
    for task in (ASIDE, GONE, BACK, HELD, CAME, DROPPED):
        assert again.events(task) == today.events(task)
    assert again.ask(q.Events(after_seq=0)) == today.ask(q.Events(after_seq=0))
    with closing(read_only(home)) as db:
        (named,) = db.execute("SELECT count(*) FROM event WHERE n = 0").fetchone()
        (moves,) = db.execute(
            "SELECT count(begun_event) + count(ended_event) FROM transfer"
        ).fetchone()
    assert named == moves > 0
    again.close()


def test_doubts_and_copies_are_the_same(old: tuple[NodeAtHand, Path]) -> None:
    """Fails when a copy that was kept with every field is not read any more."""
    today, home = old
    again = NodeAtHand(Sqlite(), home)
    assert again.ask(q.Doubts()) == today.ask(q.Doubts())
    assert len(again.ask(q.Doubts())) == 4
    assert again.task(GONE) == today.task(GONE)
    assert again.task(GONE).body == "do it"
    assert again.ask(q.Moved()) == today.ask(q.Moved())
    again.close()


def test_moves_go_on_where_they_were(old: tuple[NodeAtHand, Path]) -> None:
    _, home = old
    again = NodeAtHand(Sqlite(), home)
    assert again.commit(xfer(1), ASIDE).outcome == "committed"
    assert again.activate(xfer(4), HELD).outcome == "activated"
    assert again.settled(xfer(2), GONE).outcome == "settled"
    assert [doubt.xfer for doubt in again.ask(q.Doubts())] == [xfer(1), xfer(3)]
    again.close()


def test_a_lease_from_before_still_ends(old: tuple[NodeAtHand, Path]) -> None:
    _, home = old
    again = NodeAtHand(Sqlite(), home)
    assert again.ask(q.NextDue()).lease is not None
    again.wake(61)
    assert again.state(ASIDE) == "READY"
    again.close()


def test_a_copy_that_was_changed_in_nothing_is_kept_in_few_words(tmp_path: Path) -> None:
    """Fails when a kept copy names fields that say nothing, or loses one that says something."""
    node = NodeAtHand(Sqlite(), tmp_path)
    plain = a_task(1, tags=["t"], priority=7, domain="d", skills=["s"], models=["m"], max_s=5)
    rich = a_task(2, heat=2, not_before=None, fallback_models=["f"], pinned=False, deadline=None)
    for number, task in enumerate((plain, rich), 1):
        node.has(task)
        was = node.task(task.uid)
        node.gives_away(xfer(number), was)
        assert same_life(node.task(task.uid), was)
    with closing(read_only(tmp_path)) as db:
        lives = [len(json.loads(life)) for (life,) in
                 db.execute("SELECT life FROM tombstone ORDER BY uid")]  # fmt: skip
    assert lives[0] < 15 < lives[1]
    node.close()


def same_life(kept: Task, was: Task) -> bool:
    """But for where it stands and how far it has come."""
    mine, other = dict(kept.__dict__), dict(was.__dict__)
    for name in ("state", "epoch", "seq"):
        del mine[name], other[name]
    assert mine == other
    return True
