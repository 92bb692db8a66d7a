"""Slips and damage: a pause is a rule of the queue, and a damaged queue is refused, not used."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from agent_node import commands as c
from agent_node.errors import NodeError
from agent_node.store.sqlite import open_store
from tests.builders import a_clock, a_task
from tests.node.daemon.living import PATIENCE_S, ROOT, Node


def test_a_paused_node_hands_out_nothing_however_often_it_is_asked(tmp_path: Path) -> None:
    """Ten thousand times: the pause stands in the statement that claims, and not before it."""
    store = open_store(tmp_path, name="iris", clock=a_clock(), rng=Random(7), machine="here")
    store.apply(c.SetAgents((c.AgentRow("iris", 8, ()),)))
    store.live.dispatching = True
    store.apply(c.Add(tuple(a_task(number) for number in range(1, 101))))
    store.apply(c.SetNode("paused", "a slip"))
    got = sum(isinstance(store.apply(c.Claim("iris")), c.Claimed) for _ in range(10_000))
    store.apply(c.SetNode("active", "better"))
    assert isinstance(store.apply(c.Claim("iris")), c.Claimed)
    store.close()
    assert got == 0


def test_a_task_whose_row_was_changed_behind_our_back_does_not_run(node: Node) -> None:
    """Whoever reaches the file can change what a task says; the hash of what was added is not."""
    node.start().stop()
    ran = subprocess.run(
        [sys.executable, "-m", "agent_node", "add", "work", "--body", "true"], env=node.env,
        cwd=ROOT, capture_output=True, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 0
    with closing(sqlite3.connect(node.home / "queue.db")) as db:
        db.execute("UPDATE task SET spec = replace(spec, '\"true\"', '\"id >&2\"')")
        db.commit()
    node.start("--until-idle", ready=False).ended()
    assert not [*(node.home / "tasks").glob("*/*/stdout.log")]


def test_a_damaged_queue_is_one_clear_error(tmp_path: Path) -> None:
    """A thousand copies with bytes turned, cut off or emptied: an error of ours, or still whole."""
    store = open_store(tmp_path, name="iris", clock=a_clock(), rng=Random(7), machine="here")
    store.apply(c.Add(tuple(a_task(number, body="x" * 500) for number in range(1, 60))))
    store.close()
    how: dict[str, Any] = {"name": "iris", "clock": a_clock(), "machine": "here"}
    whole, dice, refused = (tmp_path / "queue.db").read_bytes(), Random(3), list[str]()
    for number in range(1000):
        raw = bytearray(whole)
        start = dice.randrange(len(raw))
        if number % 3 == 0:
            raw[start:start + 64] = dice.randbytes(64)
        elif number % 3 == 1:
            raw = raw[:start]
        else:
            raw[start // 2048 * 2048:start // 2048 * 2048 + 2048] = bytes(2048)
        (tmp_path / "queue.db").write_bytes(raw)
        for name in ("queue.db-wal", "queue.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        try:
            with closing(open_store(tmp_path, rng=Random(7), **how)) as again:
                again.apply(c.Claim("iris"))
        except NodeError as error:
            refused.append(str(error))
    assert len(refused) > 300
    assert [one for one in refused if str(tmp_path) not in one and "task" not in one] == []
