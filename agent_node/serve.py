"""Answers a hub on stdin and stdout, through the running daemon or, without one, by itself."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Callable

from .desk import Session
from .errors import ConnectionOld, NodeError
from .handover import (
    DONE,
    FAILED,
    GONE,
    LIFE_S,
    can_be_waited_for,
    hand_over,
    opening,
    time_left,
)
from .home import Home, HomeLock
from .lines import Lines, line_of
from .opening import PATIENCE_S, daemon_of, daemon_or_lock, opened
from .relay import Relay
from .replies import too_long
from .strict import LINE_MAX, JsonObject
from .wire import trouble_line
from .wreck import any_left

CHUNK = 256 * 1024
READER_LEFT = 141
OLD = f"a hub's connection lives {LIFE_S} s at most, and this one has had its time; log in anew"


def serve_stdio(home: Home, *, stdin: int = 0, stdout: int = 1) -> int:
    """Talk until stdin ends; the exit code. Who was left without an answer gets 1 and is told."""
    try:
        return _serve(home, stdin, stdout, time_left())
    except BrokenPipeError:
        return READER_LEFT
    except NodeError as error:
        _write(stdout, trouble_line(None, error))
        _talk(f"{error.code}: {error}")
        return error.exit_code


def _serve(
    home: Home, stdin: int, stdout: int, left_s: int | None, *, carried: bool = False
) -> int:
    """`carried`: each byte by ourselves, for the descriptors could not be handed over."""
    if left_s == 0:
        raise ConnectionOld(f"{OLD}; nothing was asked")
    found = daemon_or_lock(home, patience_s=PATIENCE_S)
    if isinstance(found, HomeLock):
        with opened(home, found) as answers:
            greeting = answers.greeting()
        _write(stdout, greeting)
        return _Alone(home, stdin, stdout, left_s=left_s).run()
    if carried or not all(map(can_be_waited_for, (stdin, stdout))):
        return _relay(found, opening(left_s), stdin, stdout)
    code = hand_over(found, stdin, stdout, left_s)
    return _serve(home, stdin, stdout, left_s, carried=True) if code is None else code


def _relay(daemon: socket.socket, first: bytes, stdin: int, stdout: int) -> int:
    with daemon:
        whole = Relay(daemon, first, stdin=stdin, stdout=stdout).run()
    if not whole:
        _talk(GONE)
    return DONE if whole else FAILED


def boottime_now() -> float:
    """Seconds since boot, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class _Alone:
    """The talk while no daemon runs: the lock is taken, and given back, for every request."""

    def __init__(
        self, home: Home, stdin: int, stdout: int, *, left_s: int | None = None,
        boottime: Callable[[], float] = boottime_now,
    ) -> None:  # fmt: skip
        self._home, self._stdin, self._stdout = home, stdin, stdout
        self._boottime = boottime
        self._ends_at = None if left_s is None else boottime() + left_s
        self._session = Session("hub")
        self._lines = Lines()

    def run(self) -> int:
        """Until stdin ends, its time is over, or a daemon has started and takes over in the middle
        of the talk.
        """
        while self._hear():
            daemon = daemon_of(self._home)
            if daemon is not None:
                return _relay(daemon, self._so_far(), self._stdin, self._stdout)
            if self._lines.too_long:
                _write(self._stdout, too_long(LINE_MAX))
                return FAILED
            found = self._answer(self._lines.take())
            if found is not None:
                return _relay(found, self._so_far(), self._stdin, self._stdout)
            if self._session.over or any_left():  # who comes next reads what the disk kept
                return FAILED
        if self._left_s == 0:
            _talk(OLD)
            return FAILED
        return DONE

    def _hear(self) -> bool:
        """Wait for a whole line, or for one that is too long; False: stdin ended, or the time."""
        while not self._lines.waiting and not self._lines.too_long:
            if self._left_s == 0:
                return False
            if not select.select([self._stdin], [], [], self._left_s)[0]:
                continue
            data = os.read(self._stdin, CHUNK)
            if not data:
                return False
            self._lines.add(data)
        return True

    @property
    def _left_s(self) -> float | None:
        return None if self._ends_at is None else max(self._ends_at - self._boottime(), 0.0)

    def _answer(self, line: bytes) -> socket.socket | None:
        """Answer by ourselves; a daemon that is there first gets the line instead."""
        try:
            found = daemon_or_lock(self._home, patience_s=PATIENCE_S)
            if not isinstance(found, HomeLock):
                self._lines.put_back(line)
                return found
            with opened(self._home, found) as answers:
                reply = answers.answer(self._session, line)
        except NodeError as error:
            reply = trouble_line(_id_of(line), error)
        _write(self._stdout, reply)
        return None

    def _so_far(self) -> bytes:
        """What the daemon has to know of this talk, and what it has to answer."""
        first: JsonObject = {"session": "hub", "greeted": True, "term": self._session.term}
        if self._left_s is not None:
            first["left_s"] = int(self._left_s)
        if self._session.hub:
            first["hub"] = self._session.hub
        if self._session.instance:
            first["instance"] = self._session.instance
        return line_of(first) + self._lines.rest()


def _id_of(line: bytes) -> int | str | None:
    from .errors import BadInput
    from .requests import read_request

    try:
        return read_request(line).id
    except BadInput:
        return None


def _write(descriptor: int, line: bytes) -> None:
    left = memoryview(line)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def _talk(text: str) -> None:
    print(f"agent-node serve: {text}", file=sys.stderr)
