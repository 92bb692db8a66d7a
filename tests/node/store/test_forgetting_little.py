"""However much is old, one look for it reads a little: the daemon waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.store.sqlite import SqliteStore
from tests.builders import DAY, NodeAtHand, a_task, uid
from tests.node.store.test_sqlite import Sqlite

STEP = 100  # of SQLite's own, by which its work is counted


@pytest.mark.parametrize("completed", [True, False], ids=["tasks that completed", "only events"])
def test_a_look_does_not_read_all_that_is_old(tmp_path: Path, *, completed: bool) -> None:
    """Seen to fail where the first young event was looked for behind all the old ones."""
    work = [_work_of_a_look(tmp_path / str(size), size, completed) for size in (30, 300)]
    assert work[1] < 1.5 * work[0], work


def test_what_cannot_be_removed_keeps_nothing_else_and_is_named(tmp_path: Path) -> None:
    """Seen to fail: as many as one look takes lay in front, and were tried each second for ever;
    and nobody was told of them.
    """
    node, stuck, home = NodeAtHand(Sqlite(), tmp_path / "iris"), 5, tmp_path / "iris" / "tasks"
    home.mkdir()
    for number in range(1, 16):
        node.finish(node.running(a_task(number)))
        if number <= stuck:
            (home / uid(number)).write_text("no folder, so no folder is removed")
    node.clock.advance(31 * DAY)
    assert node.ask(q.FoldersKept()) is None, "nobody has tried yet"
    looks = 0
    while node.say(c.Forget(limit=stuck)) >= stuck:
        looks += 1
        assert looks < 40, node.facts().counts
    assert node.facts().counts == {"COMPLETED": stuck}
    assert len(node.dump()["event"]) == stuck + 1  # of each its end, and the newest
    assert node.ask(q.FoldersKept()) == {uid(n): "Not a directory" for n in range(1, stuck + 1)}
    node.close()


def _work_of_a_look(place: Path, size: int, completed: bool) -> int:
    node = NodeAtHand(Sqlite(), place)
    for number in range(1, size + 1):
        if completed:
            node.finish(node.running(a_task(number)))
        else:
            node.say(c.SetNode("active" if number % 2 else "paused", "again"))
    node.clock.advance(31 * DAY)
    node.say(c.SetNode("active", "go on"))
    steps: list[None] = []
    store = node.store
    assert isinstance(store, SqliteStore)
    store._db.set_progress_handler(lambda: steps.append(None), STEP)
    assert node.say(c.Forget(limit=5)) >= 5
    store._db.set_progress_handler(None, STEP)
    node.close()
    return len(steps)
