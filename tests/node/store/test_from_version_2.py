"""A database of version 2, where every attempt lay in a table of its own, goes on as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.store import database
from agent_node.store.schema import STEPS
from agent_node.store.sqlite import SqliteStore, open_store
from tests.builders import FakeClock, a_task, uid

DONE, RUNNING, CLAIMED = uid(1), uid(2), uid(3)
TOKENS = {RUNNING: "a" * 32, CLAIMED: "b" * 32}
_ROW = """
INSERT INTO task (uid, epoch, state, subject, priority, need_set, source, sha256, spec, attempt,
                  agent, claimed_at, heartbeat_at, completed_at, started_at)
SELECT :uid, 1, :state, 'old', 5, 1, 'owner', sha256, spec, 1, 'iris', :at, :at, :done, :at
  FROM kept WHERE uid = :uid
"""
_ATTEMPT = """
INSERT INTO attempt (uid, n, node, incarnation, agent, token, machine, boot_id, pid, start_ticks,
                     claimed_at, started_at, ended_at, outcome, claim_event, start_event, end_event)
SELECT :uid, 1, name, incarnation, 'iris', :token, machine, :boot, :pid, :pid, :at, :begun, :done,
       :outcome, :event, NULL, NULL FROM node
"""
_NODE = """
INSERT INTO main.node (id, name, incarnation, generation, machine, state, created_at)
SELECT id, name, incarnation, 0, machine, state, created_at FROM today.node
"""
AT = "2026-03-10T03:44:00.000Z"


def opened(home: Path) -> SqliteStore:
    return open_store(home, name="iris", clock=FakeClock(), machine="here")


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of version 2 with one task done, one running, one just claimed."""
    clock = FakeClock()
    (tmp_path / "today").mkdir()
    store = opened(tmp_path / "today")
    store.apply(c.Add(tuple(a_task(number) for number in (1, 2, 3))))
    store.close()
    with monkeypatch.context() as patched:
        patched.setattr(database, "STEPS", STEPS[:2])
        patched.setattr(database, "VERSION", 2)
        database.open_database(tmp_path / "queue.db", journal="wal").close()
    with closing(sqlite3.connect(tmp_path / "queue.db")) as db, db:
        db.execute("ATTACH ? AS today", (str(tmp_path / "today" / "queue.db"),))
        db.execute("CREATE TEMP TABLE kept AS SELECT uid, sha256, spec FROM today.task")
        db.execute("INSERT INTO main.need_set SELECT * FROM today.need_set")
        db.execute(_NODE)
        for task, state in ((DONE, "COMPLETED"), (RUNNING, "RUNNING"), (CLAIMED, "CLAIMED")):
            done = AT if state == "COMPLETED" else None
            values = {
                "uid": task, "state": state, "at": AT, "done": done, "token": TOKENS.get(task),
                "boot": clock.boot_id(), "pid": None if state == "CLAIMED" else 4242,
                "begun": None if state == "CLAIMED" else AT, "event": 1,
                "outcome": done and "completed",
            }  # fmt: skip
            db.execute(_ROW, values)
            db.execute(_ATTEMPT, values)
    return tmp_path


def test_what_ran_is_still_known_with_its_token_and_its_process(old: Path) -> None:
    """Fails when the step does not bring an attempt under way into its task's row."""
    store = opened(old)
    found = {one.uid: one for one in store.read(q.OpenAttempts())}
    assert {task: one.token for task, one in found.items()} == TOKENS
    assert (found[RUNNING].pid, found[RUNNING].start_ticks) == (4242, 4242)
    assert found[RUNNING].boot_id == FakeClock().boot_id()
    assert found[CLAIMED].pid is None
    store.close()


@pytest.mark.parametrize("task", [DONE, RUNNING, CLAIMED])
def test_every_attempt_is_shown_once(old: Path, task: str) -> None:
    """Fails when an attempt that moved into a row stays in the table as well."""
    store = opened(old)
    shown = store.read(q.ShowTask(task))
    assert shown is not None
    assert [one["n"] for one in shown.attempts] == [1]
    assert shown.attempts[0]["node"] == "iris"
    store.close()


@pytest.mark.parametrize("kind", ["completed", "interrupted"])
def test_what_ran_ends_once(old: Path, kind: str) -> None:
    store = opened(old)
    result = c.Result(kind)  # type: ignore[arg-type]
    assert store.apply(c.Finish(RUNNING, 1, result)).accepted
    assert not store.apply(c.Finish(RUNNING, 1, result)).accepted
    shown = store.read(q.ShowTask(RUNNING))
    assert shown is not None
    assert [(one["n"], one["outcome"]) for one in shown.attempts] == [(1, kind)]
    store.close()


def test_the_last_task_is_the_one_that_ended_last(old: Path) -> None:
    """Fails when only one of the two places is looked into."""
    store = opened(old)
    for task in (DONE, RUNNING):
        if task == RUNNING:
            store.apply(c.Finish(task, 1, c.Result("completed")))
        last = store.read(q.Facts()).last_task
        assert last is not None
        assert list(last) == ["uid", "n", "agent", "outcome", "ended_at", "duration_s"]
        assert (last["uid"], last["outcome"]) == (task, "completed")
    store.close()
