"""Answers a hub on stdin and stdout, through the running daemon or, without one, by itself."""

from __future__ import annotations

import os
import select
import socket
import sys

from .desk import Session
from .errors import NodeError
from .handover import DONE, FAILED, GONE, OPENING, can_be_waited_for, hand_over
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


def serve_stdio(home: Home, *, stdin: int = 0, stdout: int = 1) -> int:
    """Talk until stdin ends; the exit code. Who was left without an answer gets 1 and is told."""
    try:
        return _serve(home, stdin, stdout)
    except BrokenPipeError:
        return READER_LEFT
    except NodeError as error:
        _write(stdout, trouble_line(None, error))
        _talk(f"{error.code}: {error}")
        return error.exit_code


def _serve(home: Home, stdin: int, stdout: int, *, carried: bool = False) -> int:
    """`carried`: each byte by ourselves, for the descriptors could not be handed over."""
    found = daemon_or_lock(home, patience_s=PATIENCE_S)
    if isinstance(found, HomeLock):
        with opened(home, found) as answers:
            greeting = answers.greeting()
        _write(stdout, greeting)
        return _Alone(home, stdin, stdout).run()
    if carried or not all(map(can_be_waited_for, (stdin, stdout))):
        return _relay(found, OPENING, stdin, stdout)
    code = hand_over(found, stdin, stdout)
    return _serve(home, stdin, stdout, carried=True) if code is None else code


def _relay(daemon: socket.socket, first: bytes, stdin: int, stdout: int) -> int:
    with daemon:
        whole = Relay(daemon, first, stdin=stdin, stdout=stdout).run()
    if not whole:
        _talk(GONE)
    return DONE if whole else FAILED


class _Alone:
    """The talk while no daemon runs: the lock is taken, and given back, for every request."""

    def __init__(self, home: Home, stdin: int, stdout: int) -> None:
        self._home, self._stdin, self._stdout = home, stdin, stdout
        self._session = Session("hub")
        self._lines = Lines()

    def run(self) -> int:
        """Until stdin ends, or a daemon has started and takes over in the middle of the talk."""
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
        return DONE

    def _hear(self) -> bool:
        """Wait for a whole line, or for one that is too long; False: stdin ended."""
        while not self._lines.waiting and not self._lines.too_long:
            select.select([self._stdin], [], [])
            data = os.read(self._stdin, CHUNK)
            if not data:
                return False
            self._lines.add(data)
        return True

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
        opening: JsonObject = {"session": "hub", "greeted": True, "term": self._session.term}
        if self._session.hub:
            opening["hub"] = self._session.hub
        if self._session.instance:
            opening["instance"] = self._session.instance
        return line_of(opening) + self._lines.rest()


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
