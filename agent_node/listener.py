"""Lets peers in through the home's socket and carries their bytes, waiting for none of them."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress

from .conversation import Conversation
from .desk import FOR_ALL, SessionKind
from .handing import take_over
from .handover import WELL_ENDED
from .replies import Answers
from .wire import error_line

CHUNK = 64 * 1024  # what a pipe holds; a buffer beyond 128 KiB is mapped anew for each read
PEERS_MAX = 64
LINES_A_TURN = 8  # of one peer, before the others and the dispatcher have their turn
ENDED = b"over\n"
UNREAD_S = 30.0  # for who had its time to read what it is still owed

CROWDED = f"{PEERS_MAX} are connected already; nothing was asked, try again"

Ready = Callable[[int], None]


class Doorway:
    """All connected peers. Its selector's keys carry what to call: `key.data(mask)`.

    A `serve` process may hand over its own stdin and stdout (SCM_RIGHTS) instead of carrying
    every byte itself; its connection then only says when the talk ended, and how.
    """

    def __init__(
        self,
        door: socket.socket,
        answers: Answers,
        selector: selectors.BaseSelector,
        *,
        kinds: tuple[SessionKind, ...] = FOR_ALL,
    ) -> None:
        self._door, self._answers, self.selector, self._kinds = door, answers, selector, kinds
        self._peers: set[Peer] = set()
        self._is_shut = False
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        door.settimeout(0)
        selector.register(door, selectors.EVENT_READ, self._admit)
        selector.register(self._bell, selectors.EVENT_READ, self._next_round)

    def publish(self, events: Sequence[str], seq: int, at: str) -> None:
        """Tell every session that wants to know, all of it in one piece: who is woken by the first
        of several is kept from the others by us, who write them on the processor that it runs on.
        """
        for peer in list(self._peers):
            if peer.wants_news:
                peer.push(events, seq, at)

    def end_old(self) -> None:
        """Whoever has had its time is answered what it asked, and then has to log in again."""
        now = self._answers.desk.clock.boottime()
        for peer in list(self._peers):
            peer.end_if_old(now)

    @property
    def listening(self) -> bool:
        """Whether anybody wants news at all."""
        return any(peer.wants_news for peer in self._peers)

    def close(self) -> None:
        """End every talk where it stands: who was not answered asks again."""
        for peer in list(self._peers):
            peer.close()
        for file in (self._bell,) if self._is_shut else (self._door, self._bell):
            self.selector.unregister(file)
        self._door.close()
        os.close(self._bell)

    def ring(self) -> None:
        """Some peer has lines left: come back soon, after everybody else had a turn."""
        os.eventfd_write(self._bell, 1)

    def forget(self, peer: Peer) -> None:
        """This peer has closed."""
        self._peers.discard(peer)
        if self._is_shut:
            self._is_shut = False
            self.selector.register(self._door, selectors.EVENT_READ, self._admit)

    def _admit(self, mask: int) -> None:
        try:
            connection, _ = self._door.accept()
        except OSError as error:  # gone again, or no descriptor is left: the others go on
            if error.errno in (errno.EMFILE, errno.ENFILE) and not self._drop_a_silent_one():
                self._shut()
            return
        connection.settimeout(0)
        if len(self._peers) >= PEERS_MAX and not self._drop_a_silent_one():
            with connection, suppress(OSError):
                connection.send(error_line(None, "crowded", CROWDED))
            return
        self._peers.add(Peer(connection, Conversation(self._answers, kinds=self._kinds), self))

    def _shut(self) -> None:
        """Whoever knocks waits until somebody has left: a door that stays ready would spin us."""
        if not self._is_shut:
            self._is_shut = True
            self.selector.unregister(self._door)

    def _drop_a_silent_one(self) -> bool:
        """Somebody who connected and never said a word makes room for who does."""
        silent = next((peer for peer in self._peers if not peer.has_spoken), None)
        if silent is not None:
            silent.close()
        return silent is not None

    def _next_round(self, mask: int) -> None:
        os.eventfd_read(self._bell)
        for peer in list(self._peers):
            peer.go_on()


class Peer:
    """One connection, and the descriptors its bytes really travel on."""

    def __init__(self, connection: socket.socket, talk: Conversation, doorway: Doorway) -> None:
        self._connection, self._talk, self._doorway = connection, talk, doorway
        self._in = self._out = connection.fileno()
        self._handed: tuple[int, ...] = ()
        self._opened = False
        self._ends_at: float | None = None
        self._masks: dict[int, int] = {}
        self._closed = False
        self._watch()

    def push(self, events: Sequence[str], seq: int, at: str) -> None:
        """Send news, where it is wanted."""
        for event in events:
            self._talk.push(event, seq, at)
        self.go_on()

    def end_if_old(self, now: float) -> None:
        """Hear no more once its time is over; who then does not read is not waited for."""
        session = self._talk.session
        if session is None or session.left_s is None:
            return
        if self._ends_at is None:  # the first look since it said who it is
            self._ends_at = now + session.left_s
        if now >= self._ends_at + UNREAD_S:
            self._break()
        elif now >= self._ends_at and not self._talk.retired:
            self._talk.retire()
            self.go_on()

    @property
    def has_spoken(self) -> bool:
        """Whether its opening line has come."""
        return self._talk.session is not None

    @property
    def wants_news(self) -> bool:
        """Whether this peer subscribed to anything."""
        session = self._talk.session
        return session is not None and bool(session.wants)

    def go_on(self) -> None:
        """Answer some lines, send what can be sent, and see what to wait for next."""
        if self._closed:
            return
        for _ in range(LINES_A_TURN):
            if not self._talk.turn():
                break
        self._send()
        if self._talk.finished:
            self.close()
            return
        if self._talk.may_turn:
            self._doorway.ring()
        self._watch()

    def close(self) -> None:
        """Let go of everything; a `serve` that handed its descriptors over is told how it ended."""
        if self._closed:
            return
        self._closed = True
        for descriptor in self._masks:
            self._doorway.selector.unregister(descriptor)
        if self._handed and self._talk.finished and not self._talk.cut:
            self._say_end()
        for descriptor in self._handed:
            os.close(descriptor)
        self._connection.close()
        self._doorway.forget(self)

    def _say_end(self) -> None:
        try:
            self._connection.send(WELL_ENDED if self._talk.well_ended else ENDED)
        except OSError:
            return  # it has gone already, and needs no telling

    def _read(self, mask: int) -> None:
        try:
            data = self._first() if not self._opened else os.read(self._in, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._break()
            return
        self._talk.feed(data)
        self.go_on()

    def _first(self) -> bytes:
        """The first bytes may bring the descriptors that all others will travel on."""
        data, handed = take_over(self._connection, CHUNK, 2, wait=False)
        self._opened = True
        self._handed = tuple(handed)
        if any(not _can_wait(one) for one in handed):
            raise OSError(errno.EPERM, "only pipes and sockets can be handed over")
        if handed:
            if len(handed) != 2:  # noqa: PLR2004 - stdin and stdout
                raise OSError(errno.EINVAL, "stdin and stdout are handed over together")
            self._in, self._out = handed
            os.set_blocking(self._in, False)
            os.set_blocking(self._out, False)
        return data

    def _send(self) -> None:
        owed = self._talk.owed
        try:
            while owed:
                with memoryview(owed)[:CHUNK] as some:
                    count = os.write(self._out, some)
                self._talk.sent(count)
        except BlockingIOError:
            return
        except OSError:
            self._talk.cut = True

    def _break(self) -> None:
        self._talk.cut = True
        self.close()

    def _watch(self) -> None:
        """Wait for exactly what can be used: nothing is read that has no room, or no reader."""
        wanted: dict[int, int] = {}
        if self._talk.reads:
            wanted[self._in] = selectors.EVENT_READ
        if self._talk.owed:
            wanted[self._out] = wanted.get(self._out, 0) | selectors.EVENT_WRITE
        if self._handed:
            wanted[self._connection.fileno()] = selectors.EVENT_READ
        if wanted == self._masks:
            return
        for descriptor in self._masks.keys() - wanted.keys():
            self._doorway.selector.unregister(descriptor)
        for descriptor, mask in wanted.items():
            self._wait_for(descriptor, mask)
        self._masks = wanted

    def _wait_for(self, descriptor: int, mask: int) -> None:
        before = self._masks.get(descriptor)
        if before is None:
            self._doorway.selector.register(descriptor, mask, self._ready_of(descriptor))
        elif before != mask:
            self._doorway.selector.modify(descriptor, mask, self._ready_of(descriptor))

    def _ready_of(self, descriptor: int) -> Ready:
        return lambda mask: self._ready(descriptor, mask)

    def _ready(self, descriptor: int, mask: int) -> None:
        """What a descriptor is for is asked now: it may have been registered before the others
        were handed over, and its callback stays as long as it is waited for in the same way.
        """
        if self._closed:
            return
        if self._handed and descriptor == self._connection.fileno():
            self._break()  # the `serve` that handed over has ended, or says what it may not
        elif mask & selectors.EVENT_READ and descriptor == self._in and self._talk.reads:
            self._read(mask)
        else:
            self.go_on()


def _can_wait(descriptor: int) -> bool:
    """Whether a selector can wait for it: a plain file is always ready, and so never is."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
