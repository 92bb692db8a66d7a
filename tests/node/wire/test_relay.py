"""What is relayed is passed on whole, in bounded memory, and what stays unanswered is known."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from agent_node.relay import Relay

OPENING, GREETING = b'{"session":"hub"}\n', b'{"agent-node":"0.1.0"}\n'
GREETED = b'{"session":"hub","greeted":true}\n'
NEWS = b'{"event":"idle","seq":1,"at":"-"}\n'
PATIENCE_S = 20.0
MEGABYTE = 1024 * 1024


class Wires:
    """A relay in a thread between a hub, played on two pipes, and a daemon, played on a socket."""

    def __init__(self) -> None:
        self.daemon, theirs = socket.socketpair()
        self.daemon.settimeout(PATIENCE_S)
        self._theirs = theirs
        self.stdin, self.hub_says = os.pipe()
        self.hub_hears, self.stdout = os.pipe()
        self.outcome: list[bool | BaseException] = []

    def start(self, first: bytes) -> None:
        relay = Relay(self._theirs, first, stdin=self.stdin, stdout=self.stdout)

        def run() -> None:
            try:
                self.outcome.append(relay.run())
            except BrokenPipeError as error:
                self.outcome.append(error)

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def hub_ends(self) -> None:
        os.close(self.hub_says)
        self.hub_says = -1

    def ended(self) -> bool | BaseException:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.outcome[0]

    def heard_by_daemon(self, count: int) -> bytes:
        """So many bytes; fewer only when the relay has passed on that the hub has ended."""
        heard = b""
        while len(heard) < count:
            data = self.daemon.recv(count - len(heard))
            if not data:
                break
            heard += data
        return heard

    def close(self) -> None:
        self.daemon.close()
        self._theirs.close()
        for descriptor in (self.stdin, self.stdout, self.hub_says, self.hub_hears):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def wires() -> Iterator[Wires]:
    made = Wires()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("first", "said", "asked", "whole"),
    [
        (OPENING, GREETING, 0, True),
        (OPENING, GREETING + b"{}\n", 1, True),
        (OPENING, GREETING, 1, False),
        (OPENING, b"", 0, False),
        (OPENING, GREETING + NEWS * 3, 1, False),
        (OPENING, GREETING + NEWS + b"{}\n" + NEWS, 1, True),
        (GREETED, b"", 0, True),
        (GREETED, b"{}\n", 1, True),
        (GREETED + b"{}\n", b"", 0, False),
        (GREETED + b"{}\n", b"{}\n", 0, True),
    ],
)
@pytest.mark.parametrize("piece", [1, 10_000])
def test_a_talk_is_whole_when_every_request_was_answered(
    wires: Wires, first: bytes, said: bytes, asked: int, whole: bool, piece: int
) -> None:
    """Guard: the count. Without it a daemon that dies behind the last request looks fine; seen."""
    wires.start(first)
    os.write(wires.hub_says, b"{}\n" * asked)
    wires.hub_ends()
    assert wires.heard_by_daemon(1 << 20) == first + b"{}\n" * asked
    for place in range(0, len(said), piece):
        wires.daemon.sendall(said[place : place + piece])
    wires.daemon.close()
    assert wires.ended() is whole
    assert os.read(wires.hub_hears, 1 << 20) == said if said else True


def test_a_daemon_that_hangs_up_first_leaves_the_talk_unfinished(wires: Wires) -> None:
    wires.start(OPENING)
    wires.daemon.sendall(GREETING)
    assert os.read(wires.hub_hears, 100) == GREETING
    wires.daemon.close()
    assert wires.ended() is False


def test_a_hub_that_does_not_read_stops_the_daemon_and_not_the_memory(wires: Wires) -> None:
    """Guard: HELD_MAX. With one that is never reached the relay takes everything; seen."""
    wires.start(OPENING)
    wires.daemon.setblocking(False)
    sent, refusals = 0, 0
    while refusals < 1000:
        try:
            sent += wires.daemon.send(b"x" * 65_536)
            refusals = 0
        except BlockingIOError:
            refusals += 1
            os.sched_yield()
        assert sent < 4 * MEGABYTE
    os.close(wires.hub_hears)
    wires.hub_hears = -1
    assert isinstance(wires.ended(), BrokenPipeError)


def test_a_large_request_arrives_while_nobody_reads_the_answers(wires: Wires) -> None:
    wires.start(OPENING)
    wires.daemon.sendall(b"y" * 100_000)
    request = b"z" * 3_000_000
    writer = threading.Thread(target=lambda: os.write(wires.hub_says, request))
    writer.start()
    assert wires.heard_by_daemon(len(OPENING) + len(request)) == OPENING + request
    writer.join(PATIENCE_S)
    wires.hub_ends()
    wires.daemon.close()
    hears = b""
    while data := os.read(wires.hub_hears, 1 << 20):
        hears += data
        if len(hears) == 100_000:
            break
    assert hears == b"y" * 100_000
    assert wires.ended() is False


def test_a_hub_that_left_its_socket_is_not_waited_for() -> None:
    """Guard: POLLHUP in `_GONE`. Without it the relay of a stopped daemon spins for ever."""
    daemon, theirs = socket.socketpair()
    hub, ours = socket.socketpair()
    told: list[BaseException] = []

    def run() -> None:
        relay = Relay(theirs, OPENING, stdin=ours.fileno(), stdout=ours.fileno())
        try:
            relay.run()
        except BrokenPipeError as error:
            told.append(error)

    thread = threading.Thread(target=run)
    with daemon, theirs, ours:
        thread.start()
        hub.close()
        thread.join(5)
        stayed = thread.is_alive()
        daemon.shutdown(socket.SHUT_RDWR)  # whatever came of it, it ends here
        thread.join(PATIENCE_S)
    assert (stayed, len(told)) == (False, 1)
