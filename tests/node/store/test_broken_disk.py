"""Upon a connection whose disk failed nothing is built any more, whatever it would answer."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node.errors import DiskBroken
from agent_node.queries import Facts
from agent_node.store.sqlite import SqliteStore
from agent_node.wreck import _LEFT
from tests.builders import NodeAtHand, a_task
from tests.node.store.test_sqlite import Sqlite


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    yield node
    node.close()


def the_store(node: NodeAtHand) -> SqliteStore:
    """Its store, which is open."""
    assert isinstance(node.store, SqliteStore)
    return node.store


def test_after_a_sync_that_failed_nothing_is_written_or_read(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the file beside the database could not be written, and the next task was
    taken as if that had passed.
    """

    def refuse(mark: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = the_store(node)
    node.clock.advance(2)  # so that the file is due
    with monkeypatch.context() as disk:
        disk.setattr(store._file, "write", refuse)
        with pytest.raises(DiskBroken, match="may have happened"):
            store.apply(c.Add((a_task(1),)))
    with pytest.raises(DiskBroken, match="opened anew"):
        store.apply(c.Add((a_task(2),)))
    with pytest.raises(DiskBroken, match="opened anew"):
        store.read(Facts())
    store.close()
    assert store._db in _LEFT
    node.open()
    assert [one.outcome for one in the_store(node).apply(c.Add((a_task(1), a_task(2))))] == [
        "exists", "added"]  # fmt: skip


def test_a_read_that_fails_breaks_it_as_a_sync_does(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the daemon stayed, and wrote on over what it could not read."""

    def unreadable(queries: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_READ"
        raise error

    store = the_store(node)
    with monkeypatch.context() as disk:
        disk.setattr(store, "_read", unreadable)
        with pytest.raises(DiskBroken, match="SQLITE_IOERR_READ"):
            store.read(Facts())
    with pytest.raises(DiskBroken, match="opened anew"):
        store.apply(c.Add((a_task(1),)))
