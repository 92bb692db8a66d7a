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
from agent_node.wreck import _LEFT
from tests.builders import NodeAtHand, a_task
from tests.node.store.test_sqlite import Sqlite


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    yield node
    node.close()


def test_after_a_sync_that_failed_nothing_is_written_or_read(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the file beside the database could not be written, and the next task was
    taken as if that had passed.
    """

    def refuse(mark: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = node.store
    node.clock.advance(2)  # so that the file is due
    with monkeypatch.context() as disk:
        disk.setattr(store._file, "write", refuse)
        with pytest.raises(DiskBroken, match="may have happened"):
            store.apply(c.Add((a_task(1),)))
    for again in (lambda: store.apply(c.Add((a_task(2),))), lambda: store.read(Facts())):
        with pytest.raises(DiskBroken, match="opened anew"):
            again()
    store.close()
    assert store._db in _LEFT
    node.open()
    assert [one.outcome for one in node.store.apply(c.Add((a_task(1), a_task(2))))] == [
        "exists", "added"]  # fmt: skip


def test_a_read_that_fails_breaks_it_as_a_sync_does(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the daemon stayed, and wrote on over what it could not read."""

    def unreadable(queries: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_READ"
        raise error

    with monkeypatch.context() as disk:
        disk.setattr(node.store, "_read", unreadable)
        with pytest.raises(DiskBroken, match="SQLITE_IOERR_READ"):
            node.store.read(Facts())
    with pytest.raises(DiskBroken, match="opened anew"):
        node.store.apply(c.Add((a_task(1),)))
