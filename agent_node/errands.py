"""Sends wardens on errands as the user that tasks run as, and hears what came of each."""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from .becoming import start_as
from .errors import BadInput, NodeError
from .job import REPLY_MAX
from .log import log
from .other_user import OtherUser
from .processes import send_signal
from .strict import JsonObject, decode_object

AT_ONCE = 4
PATIENCE_S = 10.0  # longer than any warden's own; sudo may have to wake a directory service
WORDS_S = 300.0  # of a warden that carries files; 320 MiB take a few seconds
_WARDEN = "warden"

Asked = Callable[[], JsonObject]
Told = Callable[[JsonObject | None], None]
Hear = Callable[[socket.socket], bool]


class Errand(NamedTuple):
    """As whom, what to do as of the moment it starts, and who wants to know what came of it."""

    user: OtherUser
    asked: Asked
    told: Told
    hear: Hear | None = None  # whether more is to come; None: one reply is all


@dataclass
class _Sent:
    """A warden under way: its process, or sudo's, and how many words it has said."""

    pid: int
    words: int = 0


class Errands:
    """A few at a time; the loop never waits for one. A warden that is killed is no answer.

    Of a daemon that is root's, one at a time: its wardens are children of its own, as is what a
    dead shim left to it, and one that clears would end those that were started after it.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._selector, self._later = selector, later
        self._waiting: deque[Errand] = deque()
        self._under_way: dict[socket.socket, _Sent] = {}

    @property
    def pids(self) -> list[int]:
        """The children of this process that are wardens, or sudo on its way to one."""
        return [sent.pid for sent in self._under_way.values()]

    def send(self, user: OtherUser, asked: Asked, told: Told) -> None:
        """`told` is called from the loop, once, never before this returns; None: no answer came."""
        self._waiting.append(Errand(user, asked, told))
        self._later(0.0, self._start_some)

    def talk(self, user: OtherUser, asked: Asked, hear: Hear, told: Told) -> None:
        """The same, with as many words each way as it takes: `hear` takes one in, and says so.

        Each word gives it time for the next, up to `WORDS_S` in all. `told` hears nothing new.
        """
        self._waiting.append(Errand(user, asked, told, hear))
        self._later(0.0, self._start_some)

    def _start_some(self) -> None:
        while self._waiting and len(self._under_way) < (AT_ONCE if os.geteuid() else 1):
            self._start(self._waiting.popleft())

    def _start(self, errand: Errand) -> None:
        try:
            pid, warden = start_as(errand.user, _WARDEN)
        except (OSError, NodeError) as error:
            log("errand_failed", because=str(error))
            errand.told(None)
            return
        self._under_way[warden] = _Sent(pid)
        self._selector.register(warden, selectors.EVENT_READ, lambda _: self._hear(errand, warden))
        self._wait(errand, warden, words=0, left_s=WORDS_S)
        try:
            warden.send(_written(errand.asked(), self.pids), socket.MSG_DONTWAIT)
        except OSError:
            return  # it ended already; its socket is readable, and says so

    def _wait(self, errand: Errand, warden: socket.socket, *, words: int, left_s: float) -> None:
        self._later(PATIENCE_S, lambda: self._look_again(errand, warden, words, left_s))

    def _look_again(
        self, errand: Errand, warden: socket.socket, words: int, left_s: float
    ) -> None:
        sent = self._under_way.get(warden)
        if sent is None:
            return
        if sent.words > words and left_s > 0:
            self._wait(errand, warden, words=sent.words, left_s=left_s - PATIENCE_S)
            return
        self._end(warden, kill=True)
        errand.told(None)

    def _hear(self, errand: Errand, warden: socket.socket) -> None:
        if errand.hear is not None:
            self._under_way[warden].words += 1
            if errand.hear(warden):
                return
        reply = _read(warden) if errand.hear is None else None
        self._end(warden, kill=False)
        errand.told(reply)

    def _end(self, warden: socket.socket, *, kill: bool) -> None:
        """It is buried by whoever hears that a child has ended."""
        pid = self._under_way.pop(warden).pid
        self._selector.unregister(warden)
        warden.close()
        if kill:
            _kill(pid)
        self._later(0.0, self._start_some)


def ask_now(user: OtherUser, request: JsonObject) -> JsonObject | None:
    """The same, for a caller who has nothing else to do; bounded, and None without an answer."""
    try:
        pid, warden = start_as(user, _WARDEN)
    except (OSError, NodeError):
        return None
    reply = None
    with warden:
        try:
            warden.send(_written(request, [pid]), socket.MSG_DONTWAIT)
            if select.select([warden], [], [], PATIENCE_S)[0]:
                reply = _read(warden)
        except OSError:
            reply = None
    if reply is None:
        _kill(pid)
    else:
        os.waitpid(pid, 0)
    return reply


def _written(request: JsonObject, starters: list[int]) -> bytes:
    known = request.get("starters", [])
    more: JsonObject = {"starters": [*(known if isinstance(known, list) else []), *starters]}
    return json.dumps({**request, **more}).encode()


def _read(warden: socket.socket) -> JsonObject | None:
    """Its one word; whoever may kill it may also speak for it, and it is read as such."""
    try:
        raw = warden.recv(REPLY_MAX, socket.MSG_DONTWAIT)
        return decode_object(raw, REPLY_MAX) if raw else None
    except (OSError, BadInput):
        return None


def _kill(pid: int) -> None:
    """Sudo is root's and cannot be killed by us: without its socket its warden ends it."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)
