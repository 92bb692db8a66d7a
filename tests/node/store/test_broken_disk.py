"""Upon a connection whose disk failed nothing is built any more, whatever it would answer."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_node import commands as c
from agent_node.budget import Money
from agent_node.errors import DiskBroken
from agent_node.home import Home, HomeLock
from agent_node.opening import opened
from agent_node.queries import Facts
from agent_node.store.sqlite import SqliteStore
from agent_node.wreck import _LEFT
from tests.builders import NodeAtHand, a_task
from tests.hub.links.places import a_home
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


class Unreadable:
    """A connection whose every statement fails as on a disk that is gone."""

    def execute(self, *words: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_READ"
        raise error


READS: dict[str, Callable[[SqliteStore], object]] = {
    "its state": lambda store: store.node_state(),
    "what money was spent": lambda store: store.spend_within(Money("1")),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_whatever_is_read_breaks_it(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch, read: Callable[[SqliteStore], object]
) -> None:
    """Seen to fail: what these two met was nobody's error, and the connection was closed over it,
    which syncs once more.
    """
    store = the_store(node)
    with monkeypatch.context() as disk:
        disk.setattr(store, "_db", Unreadable())
        with pytest.raises(DiskBroken, match="SQLITE_IOERR_READ"):
            read(store)
    with pytest.raises(DiskBroken, match="opened anew"):
        read(store)
    store.close()
    assert store._db in _LEFT


def test_a_command_that_cannot_read_what_was_spent_leaves_the_connection_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: it was opened and nobody let go of it, so its end closed it."""

    def unreadable(store: SqliteStore, money: object, **more: object) -> None:
        store.broken = True
        raise DiskBroken("no")

    home, before = Home(a_home(tmp_path)), len(_LEFT)
    home.status.write_bytes(b"{}")
    lock = HomeLock.try_take(home)
    assert lock is not None
    monkeypatch.setattr(SqliteStore, "spend_within", unreadable)
    with pytest.raises(DiskBroken), opened(home, lock):
        pytest.fail("it cannot answer")
    assert len(_LEFT) == before + 1
    assert not home.status.exists()
