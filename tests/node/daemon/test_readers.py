"""Anybody may read queue.db while the node works: it disturbs nothing, and damages nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time

import pytest

from tests.node.daemon.conftest import MakeNode
from tests.node.daemon.living import Bell, Node, until

HAMMER = """
import sqlite3, sys
path, tables = sys.argv[1], ("task", "attempt", "life", "event")
while True:  # open, read, close: the last to close a WAL database would like to checkpoint it
    for table in tables:
        queue = sqlite3.connect(path, timeout=0.2)
        try:
            queue.execute(f"SELECT count(*), max(rowid) FROM {table}").fetchall()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        finally:
            queue.close()
"""


def test_sqlite_utils_reads_a_node_that_works(node: Node, bell: Bell, gate: Bell) -> None:
    node.start()
    uid = node.add(f"echo on > {bell.path}; read x < {gate.path}")
    bell.hear()
    node.until(uid, "RUNNING")
    (row,) = node.rows("task")
    assert (row["uid"], row["state"]) == (uid, "RUNNING")
    assert row["begun_at"] is not None
    assert (row["exit_code"], node.rows("life")[0]["id"]) == (None, row["life"])
    gate.ring()
    node.until(uid, "COMPLETED")
    (row,) = node.rows("task")
    assert (row["state"], row["exit_code"]) == ("COMPLETED", 0)


@pytest.mark.parametrize("journal", ["wal", "truncate"])
def test_readers_that_come_and_go_disturb_nothing(make_node: MakeNode, journal: str) -> None:
    """The daemon's connection alone writes and checkpoints, whatever readers do."""
    _hammer(make_node(journal=journal), tasks=150)


@pytest.mark.soak
@pytest.mark.parametrize("journal", ["wal", "truncate"])
def test_readers_that_come_and_go_for_long_disturb_nothing(
    make_node: MakeNode, journal: str
) -> None:
    _hammer(make_node(journal=journal), tasks=int(os.environ.get("ARC_HAMMER_TASKS", "5000")))


def _hammer(node: Node, tasks: int) -> None:
    daemon = node.start()
    readers = [subprocess.Popen([sys.executable, "-c", HAMMER, str(node.home / "queue.db")])
               for _ in range(2)]  # fmt: skip
    try:
        with node.one_talk() as talk:
            talk.ask("add", tasks=[{"subject": f"work {n}", "body": "true"} for n in range(tasks)])
            talk.ask("subscribe", events=["task_finished"])
            end = time.monotonic() + 60 + tasks
            while (counts := talk.ask("status")["counts"]) != {"COMPLETED": tasks}:
                assert time.monotonic() < end, counts
                talk.listen(0.05)
        assert [reader.poll() for reader in readers] == [None, None], "a reader met an error"
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    assert daemon.stop() == 0
    assert "disk_trouble" not in daemon.said
    queue = sqlite3.connect(f"file:{node.home / 'queue.db'}?mode=ro", uri=True)
    assert queue.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    queue.close()


def test_a_reader_that_holds_the_database_open_delays_nothing_in_wal(node: Node) -> None:
    node.start()
    path = f"file:{node.home / 'queue.db'}?mode=ro"
    queue = sqlite3.connect(path, uri=True, isolation_level=None)
    try:
        queue.execute("BEGIN")
        before = queue.execute("SELECT count(*) FROM task").fetchone()
        for _ in range(3):
            node.until(node.add("true"), "COMPLETED")
        assert queue.execute("SELECT count(*) FROM task").fetchone() == before
    finally:
        queue.close()


def test_the_journal_that_was_asked_for_is_the_one_in_force(make_node: MakeNode) -> None:
    node = make_node(journal="truncate")
    node.start()
    node.until(node.add("true"), "COMPLETED")
    assert not (node.home / "queue.db-wal").exists()
    daemon = node.daemons[0]
    daemon.stop()
    node.configure(journal="wal")
    node.start()
    node.until(node.add("true"), "COMPLETED")
    until((node.home / "queue.db-wal").exists, "a WAL")
