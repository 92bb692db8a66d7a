"""Holds the write-ahead log to its length: laid out at once, and no obstacle to anybody."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node import queries as q
from agent_node.errors import DiskBroken
from agent_node.store.database import LOG_LENGTH, lengthen_log
from agent_node.store.sqlite import SqliteStore, open_store
from tests.builders import a_clock, a_task, uid


def a_store(home: Path, *, journal: str = "wal", check: bool = True) -> SqliteStore:
    return open_store(home, name="iris", clock=a_clock(), journal=journal, check=check)


def length(home: Path) -> int:
    return (home / "queue.db-wal").stat().st_size


def test_commits_do_not_lengthen_the_log_of_who_stays(tmp_path: Path) -> None:
    """Fails when open_store no longer calls lengthen_log."""
    store = a_store(tmp_path)
    assert length(tmp_path) == LOG_LENGTH
    for number in range(1, 300):
        store.apply(c.Add((a_task(number),)))
    assert length(tmp_path) == LOG_LENGTH
    store.close()


def test_what_was_committed_outlives_a_crash_with_zeros_behind_it(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    home.mkdir()
    store = a_store(home)
    store.apply(c.Add((a_task(1),)))
    shutil.copytree(home, copy)  # what lies on the disk when the process dies here
    store.close()

    again = a_store(copy)
    assert again.read(q.ShowTask(uid(1))) is not None
    again.close()


def test_an_outside_reader_sees_what_was_committed(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.apply(c.Add((a_task(1), a_task(2))))
    reader = sqlite3.connect(f"file:{tmp_path}/queue.db?mode=ro", uri=True)
    assert reader.execute("SELECT count(*) FROM task").fetchone() == (2,)
    reader.close()
    store.close()


def test_who_opens_for_one_request_writes_no_zeros(tmp_path: Path) -> None:
    store = a_store(tmp_path, check=False)
    assert length(tmp_path) < LOG_LENGTH
    store.close()


def test_the_other_journal_has_no_such_log(tmp_path: Path) -> None:
    a_store(tmp_path, journal="truncate").close()
    assert not (tmp_path / "queue.db-wal").exists()


def test_a_full_disk_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, content: bytes, place: int) -> int:
        os.ftruncate(descriptor, place + 4096)  # a part of it still found room
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = a_store(tmp_path, check=False)
    before = length(tmp_path)
    with monkeypatch.context() as disk:
        disk.setattr("os.pwrite", full)
        lengthen_log(tmp_path / "queue.db")
    assert length(tmp_path) == before
    store.apply(c.Add((a_task(1),)))
    store.close()


def test_a_disk_that_fails_under_the_log_is_told_as_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when an error beside the database leaves `open_store` as a fault of ours."""
    a_store(tmp_path, check=False).close()

    def broken(_log: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("os.fsync", broken)
    with pytest.raises(DiskBroken):
        a_store(tmp_path, check=True)
