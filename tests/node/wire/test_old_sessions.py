"""A session that came by SSH ends before a key that was taken away can have counted for long."""

from __future__ import annotations

import fcntl
import json
import os
import posix
import select
import selectors
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agent_node.handing import hand_over as hand_over_to
from agent_node.handover import LIFE_S, opening, time_left
from agent_node.home import Home, HomeLock, connect, listen
from agent_node.listener import UNREAD_S, Doorway
from agent_node.serve import _Alone
from arc.links.lifetime import LIFE_S as HUBS_LIFE_S
from tests.builders import uid
from tests.node.wire.processes import IMPATIENT, RELAYED, a_daemon, a_serve
from tests.node.wire.talking import Talk, a_home
from tests.node.wire.test_door import turns_until_still

TICKS = os.sysconf("SC_CLK_TCK")
ADD = json.dumps({"id": 7, "do": "add", "tasks": [{"uid": uid(1), "subject": "a"}]}).encode()
BYE = b"over\n"


def test_a_hub_of_ours_retires_first() -> None:
    """By a minute, so that no clock of a machine makes the difference."""
    assert HUBS_LIFE_S + 60 <= LIFE_S <= 660


# --- How old a connection is ----------------------------------------------------------------------


@pytest.fixture
def by_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(posix.environ, b"SSH_CONNECTION", b"10.0.0.5 4 10.0.0.7 22")


def processes(place: Path, *chain: tuple[str, float]) -> bytes:
    """A /proc in which each is the child of the next: its name, and when it began, in seconds."""
    for n, (name, began) in enumerate(chain):
        folder = place / ("self" if n == 0 else str(n))
        folder.mkdir(parents=True)
        numbers = ["S", str(n + 1), *["0"] * 17, str(int(began * TICKS)), "0"]
        (folder / "stat").write_text(f"{n} ({name}) {' '.join(numbers)}\n")
    return os.fsencode(place)


@pytest.mark.parametrize("name", ["sshd", "sshd-session"])
@pytest.mark.parametrize("between", [(), ("sh",), ("a ) b", "sh")])
@pytest.mark.usefixtures("by_ssh")
def test_it_is_the_age_of_the_connection_that_counts(
    tmp_path: Path, name: str, between: tuple[str, ...]
) -> None:
    """Guard: without it one connection gives a session after the other for ever; seen."""
    chain = [("python3", 1000.0), *((one, 999.0) for one in between)]
    assert time_left(processes(tmp_path / "a", *chain, (name, 990.0))) == LIFE_S - 10
    assert time_left(processes(tmp_path / "b", *chain, (name, 1000.0 - LIFE_S))) == 0
    assert time_left(processes(tmp_path / "c", *chain, (name, 10.0))) == 0


@pytest.mark.usefixtures("by_ssh")
def test_a_connection_that_cannot_be_seen_begins_with_its_session(tmp_path: Path) -> None:
    assert time_left(processes(tmp_path / "a", ("python3", 1000.0), ("sh", 10.0))) == LIFE_S
    far = [("python3", 1000.0), *[("sh", 999.0)] * 3, ("sshd", 10.0)]
    assert time_left(processes(tmp_path / "b", *far)) == LIFE_S
    assert time_left(os.fsencode(tmp_path / "none")) == LIFE_S


def test_who_did_not_come_by_ssh_may_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(posix.environ, b"SSH_CONNECTION", raising=False)
    assert time_left(processes(tmp_path, ("python3", 1000.0), ("sshd", 10.0))) is None


# --- The daemon, to which a session was handed over -----------------------------------------------


class AtTheDoor:
    """A hub whose pipes a daemon holds, and that daemon's clock."""

    def __init__(self, talk: Talk, doorway: Doorway, selector: selectors.BaseSelector) -> None:
        self.clock, self.doorway, self._selector = talk.clock, doorway, selector
        self.says, self.hears, self.serve = -1, -1, connect(talk.home, timeout_s=5)

    def let_in(self, first: bytes) -> dict[str, Any]:
        (stdin, self.says), (self.hears, stdout) = os.pipe(), os.pipe()
        os.set_blocking(self.hears, False)
        hand_over_to(self.serve, first, (stdin, stdout))
        os.close(stdin)
        os.close(stdout)
        self.turn()
        return self.heard()

    def turn(self, *, after_s: float = 0.0) -> None:
        self.clock.advance(after_s)
        turns_until_still(self._selector)
        self.doorway.end_old()
        turns_until_still(self._selector)

    def ask(self, line: bytes) -> dict[str, Any]:
        os.write(self.says, line + b"\n")
        self.turn()
        return self.heard()

    def heard(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(os.read(self.hears, 65_536))
        return said

    def is_over(self) -> bool:
        """Whether nobody holds the other end of what the hub hears."""
        poll = select.poll()
        poll.register(self.hears, 0)
        return bool(poll.poll(0))


@pytest.fixture
def door(tmp_path: Path) -> Iterator[AtTheDoor]:
    talk = Talk(tmp_path / "loom", "loom")
    lock = HomeLock.try_take(talk.home)
    assert lock is not None
    with selectors.DefaultSelector() as selector, lock:
        doorway = Doorway(listen(talk.home, lock), talk.answers, selector)
        hub = AtTheDoor(talk, doorway, selector)
        with hub.serve:
            yield hub
        doorway.close()
        for end in (hub.says, hub.hears):
            os.close(end)
        talk.close()


def test_a_daemon_ends_a_session_that_is_held_open(door: AtTheDoor) -> None:
    """Guard: `end_old`. Without it a stolen key's session answers for as long as it is open; seen.

    `serve` is told that it was not the hub who ended it.
    """
    assert door.let_in(opening(600))["node"] == "loom"
    door.turn(after_s=599)
    assert door.ask(b'{"id":1,"do":"doubts"}')["ok"]
    assert not door.is_over()
    door.turn(after_s=1)
    assert door.is_over()
    assert door.serve.recv(64) == BYE


def test_a_later_program_s_session_is_let_in_and_lives_as_long_as_ours(door: AtTheDoor) -> None:
    """While an upgrade is under way `serve` may be newer than the daemon. Seen to fail: it was
    told that its first line is none.
    """
    assert door.let_in(opening(LIFE_S * 100))["node"] == "loom"
    door.turn(after_s=LIFE_S - 1)
    assert not door.is_over()
    door.turn(after_s=1)
    assert door.is_over()


def test_what_was_asked_before_its_time_was_over_is_answered(door: AtTheDoor) -> None:
    door.let_in(opening(60))
    door.clock.advance(60)
    assert door.ask(ADD)["result"]["results"][0]["outcome"] == "added"
    assert door.is_over()


def test_who_does_not_read_what_it_is_owed_is_not_waited_for(door: AtTheDoor) -> None:
    """Guard: the cut. Without it an answer that nobody reads keeps a session for ever; seen."""
    door.let_in(opening(60))
    fcntl.fcntl(door.hears, fcntl.F_SETPIPE_SZ, 4096)
    os.write(door.says, b'{"id":1,"do":"status"}\n' * 40)  # more than that
    door.turn(after_s=60)
    assert not door.is_over()
    door.turn(after_s=UNREAD_S)
    assert door.is_over()


def test_a_session_without_a_limit_is_left_alone(door: AtTheDoor) -> None:
    door.let_in(opening(None))
    door.turn(after_s=100_000)
    assert door.ask(b'{"id":1,"do":"doubts"}')["ok"]


# --- The ways without being handed over -----------------------------------------------------------


@contextmanager
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """stdin, what the hub says, what it hears, stdout."""
    (stdin, says), (hears, stdout) = os.pipe(), os.pipe()
    with ExitStack() as stack:
        for end in (stdin, says, hears, stdout):
            stack.callback(os.close, end)
        yield stdin, says, hears, stdout


def test_without_a_daemon_a_session_ends_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guard: `_ends_at`. Without it this waits for ever; seen. The hub says nothing and stays."""
    home, at = a_home(tmp_path / "iris"), [1000.0]

    def boottime() -> float:
        at[0] += 0.02  # each look at the clock
        return at[0]

    with pipes() as (stdin, says, hears, stdout):
        os.write(says, ADD + b"\n")
        alone = _Alone(home, stdin, stdout, left_s=1, boottime=boottime)
        ends = list[int]()
        thread = Thread(target=lambda: ends.append(alone.run()), daemon=True)
        thread.start()
        thread.join(20)
        assert ends == [1]
        assert json.loads(os.read(hears, 65_536))["ok"], "what was asked was answered"
    assert "log in anew" in capsys.readouterr().err


OLD = "serve.time_left = lambda: {}"


@pytest.mark.parametrize("daemon", [True, False])
def test_a_connection_that_has_had_its_time_gets_no_session(
    tmp_path: Path, *, daemon: bool
) -> None:
    """Guard: `left_s == 0`. Without it a thief begins another session on it; seen."""
    home = a_home(tmp_path / "iris")
    with ExitStack() as stack:
        if daemon:
            stack.enter_context(a_daemon(home.root))
        serve = stack.enter_context(a_serve(home.root, before=OLD.format(0)))
        assert serve.hear()["error"]["code"] == "connection_old"
        assert serve.ended() == 1
        assert "log in anew" in serve.complaint()


def test_who_carries_each_byte_tells_the_daemon_how_long(home: Home) -> None:
    heard = list[bytes]()
    with listening(home) as door, a_serve(
        home.root, before=f"{RELAYED}; {IMPATIENT}; {OLD.format(37)}"
    ) as serve:
        peer, _ = door.accept()
        with peer:
            heard.append(peer.recv(4096))
        serve.no_more()
        serve.ended()
    assert json.loads(heard[0]) == {"session": "hub", "left_s": 37}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path / "iris")


@contextmanager
def listening(home: Home) -> Iterator[Any]:
    lock = HomeLock.try_take(home)
    assert lock is not None
    with lock, listen(home, lock) as door:
        door.settimeout(20)
        yield door
