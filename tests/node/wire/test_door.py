"""The one door for local commands: the daemon, or the queue itself; refusals come as errors."""

from __future__ import annotations

import errno
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_node import opening
from agent_node.binding import connect_at
from agent_node.door import StrangeReply, ask
from agent_node.errors import (
    BadInput,
    DoorTimeout,
    HomeRefused,
    NotRunning,
    Refused,
    Starting,
    StoreCorrupt,
)
from agent_node.handing import hand_over
from agent_node.home import Home, HomeLock, listen
from agent_node.listener import Doorway
from agent_node.opening import daemon_of, daemon_or_lock
from agent_node.strict import LINE_MAX
from tests.builders import uid
from tests.node.wire.golden import NEW
from tests.node.wire.processes import a_daemon, door_socket
from tests.node.wire.talking import Talk, a_home

AT = "2026-03-10T03:45:00.000Z"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path / "iris")


@pytest.fixture(params=["daemon", "alone"])
def any_home(request: pytest.FixtureRequest, home: Home) -> Iterator[Home]:
    """A home with a daemon, and one without."""
    if request.param == "alone":
        yield home
        return
    with a_daemon(home.root):
        yield home


def test_a_request_is_answered_with_and_without_a_daemon(any_home: Home) -> None:
    added = ask(any_home, {"do": "add", "tasks": [{"uid": uid(1), "subject": "a"}]})
    assert added["results"] == [{"uid": uid(1), "outcome": "added"}]
    running = ask(any_home, {"do": "status"})["dispatcher"]
    assert running in {"running", "stopped"}


def test_the_owner_is_bound_by_no_term(any_home: Home) -> None:
    ask(any_home, {"do": "hello", "fleet": "arc0", "hub": "arc", "term": 9})
    assert ask(any_home, {"do": "pause", "by": "human:ada"})["state"] == "paused"


@pytest.mark.parametrize(
    ("request_", "code", "exit_code"),
    [
        ({"do": "show", "uid": uid(1)}, "not_found", 5),
        ({"do": "dance"}, "unknown_request", 1),
        ({"do": "release", "uid": uid(1)}, "needs_alone", 7),
        ({"do": "upgrade", "sha256": "0" * 64, "statement": NEW, "signature": "-"},
         "upgrade_not_ours", 1),
    ],
)
def test_a_refusal_comes_as_an_error_with_its_code_and_exit_code(
    any_home: Home, request_: dict[str, object], code: str, exit_code: int
) -> None:
    with pytest.raises(Refused) as caught:
        ask(any_home, request_)
    assert (caught.value.code, caught.value.exit_code) == (code, exit_code)


def test_a_bad_field_comes_back_by_its_name(any_home: Home) -> None:
    with pytest.raises(BadInput, match=r"^uid: ") as caught:
        ask(any_home, {"do": "show", "uid": "x"})
    assert caught.value.field == "uid"


def test_there_is_no_news_without_a_daemon(home: Home) -> None:
    with pytest.raises(NotRunning):
        ask(home, {"do": "subscribe"})


def test_a_request_beyond_a_line_is_not_even_sent(home: Home) -> None:
    with pytest.raises(BadInput, match="send it in parts"):
        ask(home, {"do": "add", "tasks": [{"subject": "x" * LINE_MAX}]})


def test_a_held_lock_without_a_socket_is_starting(home: Home) -> None:
    lock = HomeLock.try_take(home)
    assert lock is not None
    with lock, pytest.raises(Starting, match="process"):
        ask(home, {"do": "doubts"}, timeout_s=0.05)


def test_the_lock_is_free_again_whatever_happened(home: Home) -> None:
    home.database.write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreCorrupt):
        ask(home, {"do": "doubts"})
    lock = HomeLock.try_take(home)
    assert lock is not None
    lock.release()


def test_a_home_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises((HomeRefused, FileNotFoundError)):
        ask(Home(tmp_path / "nowhere"), {"do": "doubts"})


@contextmanager
def a_peer(home: Home, does: Callable[[socket.socket], None]) -> Iterator[None]:
    """Somebody who listens at the home and does only this with whoever connects."""
    lock = HomeLock.try_take(home)
    assert lock is not None
    with lock, listen(home, lock) as ear:

        def serve_one() -> None:
            connection, _ = ear.accept()
            with connection:
                does(connection)

        thread = threading.Thread(target=serve_one)
        thread.start()
        yield
        thread.join(20)
        assert not thread.is_alive()


@contextmanager
def a_crowd(home: Home) -> Iterator[socket.socket]:
    """So many wait at the home's socket that the kernel lets nobody in; who listens lets none."""
    lock = HomeLock.try_take(home)
    assert lock is not None
    with lock, listen(home, lock) as ear, ExitStack() as crowd:
        ear.listen(0)
        for _ in range(10):
            try:
                crowd.enter_context(connect_at(home.socket, timeout_s=0))
            except OSError:
                break
        yield ear


def test_a_daemon_that_lets_nobody_in_is_told_as_one(home: Home) -> None:
    """Guard: `_knock`. Without it that was a fault of ours, with an errno; seen."""
    with a_crowd(home), pytest.raises(Starting, match=r"listens and let nobody in for 0\.1 s"):
        ask(home, {"do": "doubts"}, timeout_s=0.1)


def test_a_crowd_at_the_door_is_waited_for(home: Home) -> None:
    """Guard: the loop in `_knock`. Without it who comes at a bad moment is sent away; seen."""
    with a_crowd(home) as ear, ThreadPoolExecutor() as threads:
        asking = threads.submit(daemon_of, home)
        assert wait([asking], timeout=0.2).not_done
        ear.accept()[0].close()
        found = asking.result(timeout=20)
    assert found is not None
    found.close()


def test_a_daemon_that_does_not_answer_is_given_up_in_time(home: Home) -> None:
    def silent(connection: socket.socket) -> None:
        while connection.recv(65_536):
            pass

    with a_peer(home, silent), pytest.raises(DoorTimeout, match="may have happened"):
        ask(home, {"do": "doubts"}, timeout_s=0.2)


def test_a_daemon_that_ends_before_it_answers_leaves_the_outcome_open(home: Home) -> None:
    def leaves(connection: socket.socket) -> None:
        connection.recv(65_536)

    with a_peer(home, leaves), pytest.raises(DoorTimeout, match="daemon"):
        ask(home, {"do": "doubts"})


def test_a_daemon_that_drips_without_end_is_given_up_in_bounded_memory(home: Home) -> None:
    def drips(connection: socket.socket) -> None:
        try:
            while True:
                connection.sendall(b"x" * 1_000_000)
        except OSError:
            return

    with a_peer(home, drips), pytest.raises(StrangeReply, match="bytes"):
        ask(home, {"do": "doubts"}, timeout_s=20)


def test_an_answer_that_is_no_answer_is_not_the_askers_fault(home: Home) -> None:
    def greets(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"hello\n")

    with a_peer(home, greets), pytest.raises(StrangeReply):
        ask(home, {"do": "doubts"})


def test_when_too_many_are_connected_the_next_is_told_so(home: Home) -> None:
    with a_daemon(home.root):
        crowd = [door_socket(home) for _ in range(64)]
        try:
            with pytest.raises(Starting, match="connected already"):
                ask(home, {"do": "doubts"})
        finally:
            for one in crowd:
                one.close()
        assert ask_until_heard(home) == {"doubts": []}


def ask_until_heard(home: Home) -> dict[str, object]:
    """The daemon notices that the others left only when its selector says so."""
    for _ in range(1000):
        try:
            return ask(home, {"do": "doubts"})
        except Starting:
            continue
    raise AssertionError("never heard")


def test_the_selector_is_left_as_it_was_found(home: Home) -> None:
    from agent_node.replies import Answers

    talk = Talk(home.root.parent / "loom", "loom")
    lock = HomeLock.try_take(talk.home)
    assert lock is not None
    answers: Answers = talk.answers
    with selectors.DefaultSelector() as selector, lock:
        doorway = Doorway(listen(talk.home, lock), answers, selector)
        peer = daemon_or_lock(talk.home)
        assert isinstance(peer, socket.socket)
        peer.sendall(b'{"session":"owner"}\n{"id":1,"do":"subscribe"}\n')
        for _ in range(2):  # once to be let in, once to be heard
            for key, mask in selector.select(timeout=1):
                key.data(mask)
        doorway.publish(["idle"], 4, AT)
        doorway.close()
        with peer, peer.makefile("rb") as lines:
            assert json.loads(lines.readline())["ok"]
            assert json.loads(lines.readline()) == {
                "event": "idle", "seq": 4, "at": AT,
            }  # fmt: skip
            assert lines.readline() == b""
        assert selector.get_map() == {}
    talk.close()


def test_all_that_happened_at_once_is_told_in_one_piece(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is woken by the first of several events would wait for us, who write the others."""
    with a_doorway(home) as (selector, peer, doorway):
        peer.sendall(b'{"session":"owner"}\n{"id":1,"do":"subscribe","events":["busy","idle"]}\n')
        for _ in range(2):  # once to be let in, once to be heard
            for key, mask in selector.select(timeout=1):
                key.data(mask)
        assert json.loads(peer.recv(4096))["ok"]
        writes: list[bytes] = []
        write = os.write

        def written(to: int, data: bytes) -> int:
            writes.append(bytes(data))
            return write(to, data)

        monkeypatch.setattr(os, "write", written)
        doorway.publish(["task_finished", "idle", "free_slot", "busy"], 4, AT)
        monkeypatch.undo()
        assert [peer.recv(4096)] == writes
        assert [json.loads(line)["event"] for line in writes[0].splitlines()] == ["idle", "busy"]


@contextmanager
def a_doorway(home: Home) -> Iterator[tuple[selectors.BaseSelector, socket.socket, Doorway]]:
    """A door in this very process, one who is let in, and the selector that drives them."""
    talk = Talk(home.root.parent / "loom", "loom")
    lock = HomeLock.try_take(talk.home)
    assert lock is not None
    with selectors.DefaultSelector() as selector, lock:
        doorway = Doorway(listen(talk.home, lock), talk.answers, selector)
        peer = daemon_or_lock(talk.home)
        assert isinstance(peer, socket.socket)
        try:
            with peer:
                yield selector, peer, doorway
        finally:
            doorway.close()
            talk.close()


def turns_until_still(selector: selectors.BaseSelector) -> int:
    """How often something was called until nothing was ready any more; a spin never is still."""
    for turn in range(20):
        ready = selector.select(timeout=0)
        if not ready:
            return turn
        for key, mask in ready:
            key.data(mask)
    raise AssertionError("something stays ready for ever")


def test_a_serve_that_died_leaves_no_peer_though_its_pipes_stay_open(home: Home) -> None:
    """Guard: `_ready` asks what was handed over. Without it the daemon spins at full speed; seen.

    The hub's ends of both pipes stay open: nothing but the connection says that `serve` is gone.
    """
    with a_doorway(home) as (selector, serve, _), ExitStack() as pipes:
        (stdin, hub_says), (hub_hears, stdout) = os.pipe(), os.pipe()
        for descriptor in (hub_says, hub_hears):
            pipes.callback(os.close, descriptor)
        hand_over(serve, b'{"session":"hub"}\n', (stdin, stdout))
        os.close(stdin)
        os.close(stdout)
        turns_until_still(selector)
        assert json.loads(os.read(hub_hears, 65_536))["node"] == "loom"
        serve.close()
        turns_until_still(selector)
        assert os.read(hub_hears, 65_536) == b""
        assert len(selector.get_map()) == 2  # the door and the bell


@pytest.mark.parametrize("count", [1, 2])
def test_a_peer_that_hands_over_its_own_connection_is_let_go(home: Home, count: int) -> None:
    """What is said on it would come back as its own: a loop, and for one descriptor half a talk."""
    with a_doorway(home) as (selector, peer, _):
        hand_over(peer, b'{"session":"hub"}\n', [peer.fileno()] * count)
        turns_until_still(selector)
        assert len(selector.get_map()) == 2  # the door and the bell


def test_who_waits_for_the_lock_waits_where_a_shifted_clock_lets_nobody_sleep(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail under libfaketime, which answers EINVAL to each `time.sleep`: a daemon that met
    the lock for a moment ended with a fault of ours.
    """

    def sleep(_: float) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("time.sleep", sleep)
    other = Talk(home.root.parent / "loom", "loom").home
    lock = HomeLock.try_take(other)
    assert lock is not None
    with lock, pytest.raises(Starting, match="holds the lock and does not listen"):
        daemon_or_lock(other, patience_s=0.1)


class Crowd:
    """A lock that one after another holds for a second, by a clock that each look takes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, turns: int, each: int) -> None:
        self.now, self.turns, self.each = 0.0, turns, each
        monkeypatch.setattr(opening, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(opening, "select", SimpleNamespace(select=self.wait))
        monkeypatch.setattr(opening, "holder_of", lambda _: int(self.now) // each)
        monkeypatch.setattr(HomeLock, "try_take", self.try_take)

    def wait(self, *_: object) -> None:
        self.now += 1

    def try_take(self, home: Home) -> HomeLock | None:
        return None if self.now < self.turns * self.each else HomeLock(-1)


def test_who_waits_behind_others_like_it_waits_for_its_turn(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: of twelve that added a task at once without a daemon, four were refused."""
    crowd = Crowd(monkeypatch, turns=12, each=2)
    assert isinstance(daemon_or_lock(home, crowd_s=30), HomeLock)
    assert crowd.now == 24
    Crowd(monkeypatch, turns=40, each=1)
    with pytest.raises(Starting):
        daemon_or_lock(home, crowd_s=30)
    alone = Crowd(monkeypatch, turns=1, each=20)
    with pytest.raises(Starting):
        daemon_or_lock(home, crowd_s=30)
    assert alone.now == opening.PATIENCE_S, "one that starts or ends, and does not get on"


def test_nobody_is_kept_waiting_while_the_holder_reads_its_program_in(home: Home) -> None:
    """Seen to fail: most of the time that a short request held the lock went into imports."""
    text = """if True:
        import sys
        from agent_node.home import Home, HomeLock
        from agent_node.opening import daemon_or_lock
        from pathlib import Path
        take = HomeLock.try_take
        def took(home):
            global before
            before = set(sys.modules)
            return take(home)
        HomeLock.try_take = took
        from agent_node.opening import opened
        with opened(Home(Path(sys.argv[1])), daemon_or_lock(Home(Path(sys.argv[1])))):
            late = {name for name in sys.modules if name not in before}
        print(sorted(name for name in late if name.startswith(("agent_node", "sqlite3"))))
    """
    ran = subprocess.run([sys.executable, "-c", text, str(home.root)], capture_output=True,
                         text=True, check=True)  # fmt: skip
    assert ran.stdout.strip() == "[]"
