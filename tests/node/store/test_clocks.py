"""What a queue makes of a wall clock that somebody sets."""

from __future__ import annotations

from pathlib import Path

from agent_node import commands as c
from agent_node.clock import iso
from agent_node.store.sqlite import SqliteStore
from tests.builders import DAY, NodeAtHand
from tests.node.store.test_sqlite import Sqlite


def test_a_clock_that_is_put_back_makes_no_node_idle_since_a_time_to_come(tmp_path: Path) -> None:
    """Seen to fail: it counted as idle for no time at all until the clock had caught up."""
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    assert isinstance(node.store, SqliteStore)
    was, right = node.store.live.idle_since, iso(node.clock.now())
    assert was == right
    node.clock.advance(-2 * DAY)
    node.say(c.Wake())  # which the daemon does where it finds the clock put back
    assert node.store.live.idle_since == iso(node.clock.now())
    node.clock.advance(600)
    node.say(c.Wake())
    assert node.store.live.idle_since == iso(node.clock.now())[:14] + "45:00.000Z"
    node.close()
