"""However a daemon ends, no report stays that says it runs."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from agent_node import running
from agent_node.daemon import Daemon
from agent_node.errors import DiskBroken
from agent_node.home import Home
from agent_node.running import run
from agent_node.store.sqlite import SqliteStore
from agent_node.wreck import _LEFT
from tests.hub.links.places import a_home


class NoZygote:
    """Starts nothing."""

    def start(self) -> None:
        return

    def close(self) -> None:
        return


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(running, "_zygote", lambda *given: NoZygote())
    return Home(a_home(tmp_path))


def serving(monkeypatch: pytest.MonkeyPatch, home: Home, error: BaseException | None) -> None:
    """The daemon wrote that it runs, and then its disk failed; the error got out of it, or not."""

    def serve(daemon: Daemon, door: socket.socket, other: None) -> int:
        door.close()
        home.status.write_bytes(b'{"dispatcher":"running"}')
        if error is None or isinstance(error, DiskBroken):
            store: Any = daemon.store
            assert isinstance(store, SqliteStore)
            store.broken = True
        if error is not None:
            raise error
        return 0

    monkeypatch.setattr(Daemon, "serve", serve)


def test_where_its_disk_fails_at_the_end_it_withdraws_its_report(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the report said `running` for as long as nobody began another daemon."""
    serving(monkeypatch, home, DiskBroken("the sync failed"))
    before = len(_LEFT)
    with pytest.raises(DiskBroken):
        run(home)
    assert len(_LEFT) == before + 1
    assert not home.status.exists()


def test_where_it_has_a_fault_it_withdraws_its_report(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving(monkeypatch, home, RuntimeError("a fault of ours"))
    with pytest.raises(RuntimeError):
        run(home)
    assert not home.status.exists()


def test_where_the_disk_failed_unheard_it_withdraws_its_report(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is not closed over it, and what it wrote last is no word of a queue that can be
    read.
    """
    serving(monkeypatch, home, None)
    assert run(home).code == 0
    assert not home.status.exists()
