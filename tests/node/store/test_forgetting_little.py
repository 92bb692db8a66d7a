"""However much is old, one look for it reads a little: the daemon waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node.store.sqlite import SqliteStore
from tests.builders import DAY, NodeAtHand, a_task
from tests.node.store.test_sqlite import Sqlite

STEP = 100  # of SQLite's own, by which its work is counted


@pytest.mark.parametrize("completed", [True, False], ids=["tasks that completed", "only events"])
def test_a_look_does_not_read_all_that_is_old(tmp_path: Path, *, completed: bool) -> None:
    """Seen to fail where the first young event was looked for behind all the old ones."""
    work = [_work_of_a_look(tmp_path / str(size), size, completed) for size in (30, 300)]
    assert work[1] < 1.5 * work[0], work


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
