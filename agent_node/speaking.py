"""Lets another user's program speak to its node: at its attempt's socket, through its shim."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress

from .handing import hand_over
from .job import TASK_SOCK, TASKS_SOCKET, Job
from .watching import Watch

_TALKS_MAX = 3  # at a time; the oldest makes room, for a program may leave them all open
_BACKLOG = 16
_SHUT = (
    b'{"id":null,"ok":false,"error":{"code":"not_running",'
    b'"message":"no daemon runs here; nothing was asked"}}\n'
)


class Speaking:
    """The attempt's own socket. Whoever connects is handed to the daemon with the attempt's name.

    The daemon answers them itself; this process reads no byte of theirs. What it holds of a talk
    is the daemon's word that it has ended.
    """

    def __init__(self, job: Job, door: int) -> None:
        self._door = door
        opening = {"session": "task", "uid": job.uid, "attempt": job.n}
        self._opening = json.dumps(opening).encode() + b"\n"
        self._talks: list[socket.socket] = []
        self._listener = _listen(job.place)

    def begin(self, watch: Watch) -> None:
        """From now on the watch calls us when somebody wants to speak."""
        self._watch = watch
        watch.call(self._listener.fileno(), self._admit)

    def _admit(self) -> None:
        try:
            caller, _ = self._listener.accept()
        except OSError:
            return  # gone again, or no descriptor is left: it may try again
        with caller:
            if len(self._talks) >= _TALKS_MAX:
                self._end(self._talks[0])
            try:
                self._hand_on(caller)
            except OSError:
                with suppress(OSError):
                    caller.send(_SHUT, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _hand_on(self, caller: socket.socket) -> None:
        """The daemon gets the caller's own connection, twice: to read from, and to write to."""
        talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            talk.settimeout(0)
            talk.connect(f"/proc/self/fd/{self._door}/{TASKS_SOCKET}")
            hand_over(talk, self._opening, [caller.fileno(), caller.fileno()])
        except OSError:
            talk.close()
            raise
        self._talks.append(talk)
        self._watch.call(talk.fileno(), lambda: self._end(talk))

    def _end(self, talk: socket.socket) -> None:
        self._watch.forget(talk.fileno())
        self._talks.remove(talk)
        talk.close()


def _listen(place: str) -> socket.socket:
    """At a path of the other user's, reached by a descriptor: 107 bytes are few for a path."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    folder = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{TASK_SOCK}")
        listener.listen(_BACKLOG)
        listener.settimeout(0)
    finally:
        os.close(folder)
    return listener
