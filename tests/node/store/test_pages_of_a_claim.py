"""Holds what ending one task and claiming the next writes, and that nothing is found by a scan."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node.store import claims, counting, dead, history, reading, transfers, waking
from tests.builders import NodeAtHand, a_task
from tests.node.store.test_pages_of_a_move import BODY, pages
from tests.node.store.test_sqlite import Sqlite, read_only

PAIRS, PAGES_MAX = 200, 4.95


def test_ending_one_task_and_claiming_the_next_writes_few_pages(tmp_path: Path) -> None:
    """5.07 while what completed stood in the index of states, which is appended to."""
    node = NodeAtHand(Sqlite(), tmp_path)
    node.has(*(a_task(number, body=BODY) for number in range(1, PAIRS + 2)))
    now = node.claimed()
    before = pages(node)
    for _ in range(PAIRS):
        result = c.Result("completed", output={"ok": True}, exit_code=0, duration_s=0.1)
        following = node.say(c.Finish(now.task.uid, now.n, result, "iris")).next
        assert isinstance(following, c.Claimed)
        now = following
    written = (pages(node) - before) / PAIRS
    assert written <= PAGES_MAX, f"{written} pages a pair"
    node.close()


QUERIES = {
    "under way": claims._UNDER_WAY.replace("?", "''"),
    "running": reading._RUNNING,
    "open attempts": reading._OPEN,
    "not proven dead": history.UNPROVED,
    "set aside": f"SELECT 1 FROM {transfers.IN_ESCROW}",
    "held": f"SELECT 1 FROM {transfers.HELD_HERE}",
    "counted": counting._INDEXED,
    "old": waking._OLD_TASKS,
    "dead letters": dead._PAGE,
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_what_is_looked_up_by_its_state_is_found_by_the_index(tmp_path: Path, query: str) -> None:
    """Fails when a query no longer says word for word what the index says of what it holds."""
    NodeAtHand(Sqlite(), tmp_path).close()
    with closing(read_only(tmp_path)) as db:
        plan = steps(db, query)
    assert any("task_by_state" in step for step in plan), plan
    assert not [step for step in plan if step in ("SCAN t", "SCAN task", "SCAN u")], plan


def steps(db: sqlite3.Connection, query: str) -> list[str]:
    values = dict.fromkeys(("after", "before", "stamp", "limit", "stuck", "resolved", "poison"))
    return [str(step) for *_, step in db.execute(f"EXPLAIN QUERY PLAN {query}", values)]
