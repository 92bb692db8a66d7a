"""What was heard of other nodes lies beside the database before any answer leaves."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import moves as m
from agent_node.errors import DiskBroken, DiskTrouble, Refused
from agent_node.failpoints import failpoint
from agent_node.store import sqlite
from tests.builders import NodeAtHand, a_task, uid, xfer
from tests.node.store.test_sqlite import Sqlite

EARLIER, LATER = "01LQQM00000000000000000000", "01LQQN00000000000000000000"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAtHand]:
    node = NodeAtHand(Sqlite(), tmp_path / "iris")
    yield node
    node.close()


def heard(node: NodeAtHand) -> dict[str, str]:
    """What the file beside the database says; empty where there is none."""
    file = node.place / "heard.json"
    return dict(json.loads(file.read_text())["incarnations"]) if file.exists() else {}


def refuse(monkeypatch: pytest.MonkeyPatch, code: int, call: str) -> None:
    """The disk says this of whatever is done to hearsay's own new file."""
    real_open, real_fsync = os.open, os.fsync
    fresh: set[int] = set()

    def opened(path: object, *words: int, **more: int) -> int:
        ours = Path(str(path)).name.startswith(".heard.json.")
        if ours and call == "open":
            raise OSError(code, os.strerror(code))
        fd = real_open(path, *words, **more)  # type: ignore[arg-type]
        if ours:
            fresh.add(fd)
        return fd

    def synced(fd: int) -> None:
        if fd in fresh and call == "fsync":
            fresh.discard(fd)
            raise OSError(code, os.strerror(code))
        real_fsync(fd)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", synced)


@pytest.mark.parametrize("call", ["open", "fsync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_refuses_the_first_word_of_a_node_and_breaks_nothing(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch, code: int, call: str
) -> None:
    """Seen to fail: it was a broken disk, which ends the daemon, and left its temporary file."""
    with monkeypatch.context() as disk:
        refuse(disk, code, call)
        with pytest.raises(DiskTrouble, match="did not happen") as said:
            node.hold(xfer(), a_task(), giver="loom", peer_incarnation=LATER)
    assert not isinstance(said.value, DiskBroken)
    assert list(node.place.glob(".heard.json.*")) == []
    assert node.state(uid()) is None
    assert heard(node) == {}

    node.hold(xfer(), a_task(), giver="loom", peer_incarnation=LATER)
    assert node.state(uid()) == "HELD"
    assert heard(node) == {"loom": LATER}


def test_a_disk_that_cannot_sync_it_is_broken(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as disk:
        refuse(disk, errno.EIO, "fsync")
        with pytest.raises(DiskBroken):
            node.hold(xfer(), a_task(), giver="loom", peer_incarnation=LATER)
    with pytest.raises(DiskBroken, match="opened anew"):
        node.has(a_task(2))


def test_what_a_killed_writer_left_is_swept(node: NodeAtHand) -> None:
    (node.place / ".heard.json.1").write_text("{")
    node.hold(xfer(), a_task(), giver="loom", peer_incarnation=LATER)
    assert list(node.place.glob(".heard.json.*")) == []


def bar(node: NodeAtHand) -> str:
    """The outcome of a bar that names loom's later life."""
    target = m.Target(uid(9), 1 + 2**20)
    answers = node.say(m.Bar((target,), nodes=(m.Fenced("loom", LATER),)))
    return str(answers[0].outcome)


@pytest.mark.parametrize("lay", [None, {}, {"loom": EARLIER}], ids=["none", "empty", "earlier"])
def test_a_file_that_knows_less_is_written_before_the_next_answer(
    node: NodeAtHand, lay: dict[str, str] | None
) -> None:
    """Seen to fail: a daemon that was killed between the COMMIT and the file left it so, the hub
    said its word again, and it was answered without the file.
    """
    assert bar(node) == "barred"
    node.close()
    (node.place / "heard.json").unlink()
    if lay is not None:
        (node.place / "heard.json").write_text(json.dumps({"incarnations": lay}))
    node.open()
    assert bar(node) == "barred"
    assert heard(node) == {"loom": LATER}


def test_a_file_that_stays_owed_refuses_every_word(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when what could not be written is given up: the next answer would leave without it."""
    assert bar(node) == "barred"
    node.close()
    (node.place / "heard.json").unlink()
    with monkeypatch.context() as disk:
        refuse(disk, errno.ENOSPC, "open")
        with pytest.raises(DiskTrouble):
            node.open()  # its first word is about agents
        with pytest.raises(DiskTrouble):
            bar(node)
    assert bar(node) == "barred"
    assert heard(node) == {"loom": LATER}


def test_one_killed_before_the_commit_left_a_file_that_knows_more(
    node: NodeAtHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the file is written after the COMMIT, or is not taken back: a life that was named
    here would be unknown.
    """

    class KilledError(Exception):
        pass

    def kill(name: str) -> None:
        failpoint(name)
        if name == "store.before_commit":
            raise KilledError

    with monkeypatch.context() as dying:
        dying.setattr(sqlite, "failpoint", kill)
        with pytest.raises(KilledError):
            bar(node)
    assert heard(node) == {"loom": LATER}
    node.close()
    node.open()
    with pytest.raises(Refused, match="later than"):
        node.say(m.Bar((m.Target(uid(9), 1 + 2**20),), nodes=(m.Fenced("loom", EARLIER),)))
    assert bar(node) == "barred"
