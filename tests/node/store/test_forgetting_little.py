"""However much is old, one look for it reads a little: the daemon waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.removal import UNFINISHED
from agent_node.store.sqlite import SqliteStore
from agent_node.store.waking import LOOK_S
from agent_node.upkeep import FORGET_AT_ONCE
from tests.builders import DAY, FakeClock, NodeAtHand, a_task, uid
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


def test_a_look_that_takes_long_ends_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """Seen to fail: the daemon stood still until the folders of a thousand tasks were gone."""
    clock = Slow()
    node, home = NodeAtHand(Sqlite(), tmp_path / "iris", clock=clock), tmp_path / "iris" / "tasks"
    for number in range(1, 4):
        node.finish(node.running(a_task(number)))
        (home / uid(number)).mkdir(parents=True)
        for name in range(6 if number == 2 else 1):
            (home / uid(number) / f"{name}").touch()
    clock.advance(31 * DAY)
    clock.step_s = LOOK_S / 4
    assert node.say(c.Forget()) >= FORGET_AT_ONCE, "there is more to do, and soon"
    assert node.facts().counts == {"COMPLETED": 2}
    assert node.ask(q.FoldersKept()) == {}, "the second one had not all the time"
    assert node.say(c.Forget()) >= FORGET_AT_ONCE
    assert node.ask(q.FoldersKept()) == {uid(2): UNFINISHED}
    node.say(c.Forget())
    assert node.facts().counts == {"COMPLETED": 1}, "one that is too large keeps no other"
    clock.step_s = 0.0
    assert isinstance(node.store, SqliteStore)
    node.store.live.stuck = {}
    node.say(c.Forget())
    assert node.facts().counts == {}
    node.close()


class Slow(FakeClock):
    """Whoever asks how late it is has taken a while."""

    step_s = 0.0

    def boottime(self) -> float:
        self.since_boot += self.step_s
        return self.since_boot


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
