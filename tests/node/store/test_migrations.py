"""A new version of the tables: backed up before, whole or not at all, and never a newer one."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from agent_node.commands import Add
from agent_node.errors import DiskBroken, DiskTrouble, StoreNewer, StoreUnusable
from agent_node.queries import ListTasks
from agent_node.store import backups, database
from agent_node.store.schema import STEPS
from agent_node.store.sqlite import SqliteStore, open_store
from agent_node.task import task_from
from tests.builders import FakeClock, uid

NEXT = "ALTER TABLE node ADD COLUMN colour TEXT; CREATE INDEX node_colour ON node (colour)"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    store = open_again(home)
    store.apply(Add((task_from({"uid": uid(), "subject": "older than the step"}),)))
    store.close()
    return home


def open_again(home: Path) -> SqliteStore:
    return open_store(home, name="iris", clock=FakeClock(), machine="here")


def learn(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr(database, "STEPS", (*STEPS, step))
    monkeypatch.setattr(database, "VERSION", len(STEPS) + 1)


def version_of(path: Path) -> int:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_a_step_keeps_every_task_and_a_copy_from_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(monkeypatch, NEXT)
    store = open_again(home)
    assert [task.subject for task in store.read(ListTasks()).tasks] == ["older than the step"]
    store.close()

    backup = home / "backups" / f"queue-v{len(STEPS)}.db"
    assert (version_of(home / "queue.db"), version_of(backup)) == (len(STEPS) + 1, len(STEPS))
    with sqlite3.connect(f"file:{backup}?mode=ro", uri=True) as db:
        assert db.execute("SELECT count(*) FROM task").fetchone() == (1,)
    assert backup.stat().st_mode & 0o077 == 0


def test_a_step_that_fails_half_way_changes_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail with the ROLLBACK and the BEGIN of `_migrate` taken out."""
    broken = "ALTER TABLE node ADD COLUMN colour TEXT; CREATE INDEX broken ON nowhere (x)"
    learn(monkeypatch, broken)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        open_again(home)
    with sqlite3.connect(home / "queue.db") as db:
        assert version_of(home / "queue.db") == len(STEPS)
        columns = [row[1] for row in db.execute("PRAGMA table_info(node)")]
    assert "colour" not in columns
    learn(monkeypatch, NEXT)
    open_again(home).close()
    assert version_of(home / "queue.db") == len(STEPS) + 1


def test_a_new_home_needs_no_backup(tmp_path: Path) -> None:
    open_again(tmp_path).close()
    assert not (tmp_path / "backups").exists()


def test_a_database_of_a_newer_version_is_left_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(monkeypatch, NEXT)
    open_again(home).close()
    monkeypatch.undo()
    before = (home / "queue.db").read_bytes()
    with pytest.raises(StoreNewer, match="newer agent-node"):
        open_again(home)
    assert (home / "queue.db").read_bytes() == before


@pytest.mark.parametrize("kind", ["TRIGGER", "VIEW"])
def test_a_trigger_or_view_of_somebody_else_is_named_and_refused(home: Path, kind: str) -> None:
    made = {
        "TRIGGER": "CREATE TRIGGER planted AFTER INSERT ON task BEGIN DELETE FROM task; END",
        "VIEW": "CREATE VIEW planted AS SELECT * FROM task",
    }
    with sqlite3.connect(home / "queue.db") as db:
        db.execute(made[kind])
    with pytest.raises(StoreUnusable, match="planted"):
        open_again(home)


BROKEN = "ALTER TABLE node ADD COLUMN colour TEXT; CREATE INDEX broken ON nowhere (x)"


def copies(home: Path) -> list[str]:
    """Whatever lies in backups/, hidden or not."""
    return sorted(path.name for path in (home / "backups").iterdir())


def test_a_step_that_fails_at_each_start_leaves_one_copy(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: each attempt left a whole copy more, until the disk was full of them."""
    learn(monkeypatch, BROKEN)
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            open_again(home)
    assert copies(home) == [f"queue-v{len(STEPS)}.db"]
    learn(monkeypatch, NEXT)
    open_again(home).close()
    assert copies(home) == [f"queue-v{len(STEPS)}.db"]


def test_a_copy_of_another_state_or_a_damaged_one_does_not_stand_for_this_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = f"queue-v{len(STEPS)}.db", f"queue-v{len(STEPS)}-2.db"
    learn(monkeypatch, BROKEN)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        open_again(home)
    with sqlite3.connect(home / "queue.db") as db:
        db.execute("UPDATE node SET reason = 'one word'")
    db.close()
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        open_again(home)
    assert copies(home) == sorted((first, second))
    for name in (first, second):
        (home / "backups" / name).write_bytes(b"no database")
    learn(monkeypatch, NEXT)
    open_again(home).close()
    assert copies(home) == sorted((first, second, f"queue-v{len(STEPS)}-3.db"))


class Disk:
    """What statvfs says of a disk with so many bytes free."""

    f_blocks, f_frsize = 1000, 1

    def __init__(self, free: int) -> None:
        self.f_bavail = free


def test_a_copy_that_does_not_fit_is_not_begun(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to fail: it filled the disk first, and the error named queue.db alone."""
    needed = (home / "queue.db").stat().st_size + backups.SPARE
    learn(monkeypatch, NEXT)
    with monkeypatch.context() as disk:
        disk.setattr(os, "statvfs", lambda path: Disk(needed - 1))
        told = rf"{home / 'backups'}: .* {needed} bytes free, and {needed - 1} are.* ls -l"
        with pytest.raises(DiskTrouble, match=told):
            open_again(home)
    assert copies(home) == []
    assert version_of(home / "queue.db") == len(STEPS)
    monkeypatch.setattr(os, "statvfs", lambda path: Disk(needed))
    open_again(home).close()
    assert copies(home) == [f"queue-v{len(STEPS)}.db"]


def test_a_disk_that_does_not_say_what_is_free_is_tried(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = Disk(0)
    silent.f_blocks = 0
    learn(monkeypatch, NEXT)
    monkeypatch.setattr(os, "statvfs", lambda path: silent)
    open_again(home).close()
    assert copies(home) == [f"queue-v{len(STEPS)}.db"]


def test_a_copy_that_was_cut_off_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: what was unfinished stayed, and what a killed one left was never swept."""
    (home / "backups").mkdir()
    for left in (".queue-v1.db.7", ".queue-v1.db.7-journal"):
        (home / "backups" / left).write_bytes(b"x")
    learn(monkeypatch, NEXT)
    with monkeypatch.context() as disk:
        disk.setattr(backups, "_copy", cut_off)
        with pytest.raises(DiskTrouble, match=r"backups: .*No space left") as said:
            open_again(home)
    assert not isinstance(said.value, DiskBroken)
    assert copies(home) == []
    open_again(home).close()
    assert copies(home) == [f"queue-v{len(STEPS)}.db"]


def cut_off(db: sqlite3.Connection, folder: Path, version: int) -> None:
    """The copy as a disk that is full in its midst leaves it."""
    assert list(folder.iterdir()) == []
    for left in (f".queue-v{version}.db.9", f".queue-v{version}.db.9-journal"):
        (folder / left).write_bytes(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
