"""Carries bytes between a hub and the daemon where the daemon cannot be given the descriptors."""

from __future__ import annotations

import os
import select
import socket
import stat

CHUNK = 64 * 1024
HELD_MAX = 256 * 1024  # in each direction; beyond it the sender has to wait
_NEWS = b'\n{"event":'
_GONE = select.POLLERR | select.POLLNVAL | select.POLLHUP  # of a pipe, of a socket


class Relay:
    """Both directions at once, with bounded memory, and a count of what was left unanswered."""

    def __init__(self, daemon: socket.socket, first: bytes, *, stdin: int, stdout: int) -> None:
        self._daemon, self._stdin, self._stdout = daemon, stdin, stdout
        self._up, self._down = bytearray(first), bytearray()
        self._asked = first.count(b"\n") - 1  # the first line is the opening, no request
        greeted = b'"greeted":true' in first.partition(b"\n")[0]
        self._answered = 0 if greeted else -1  # a greeting is a line, and answers nothing
        self._tail = b""
        self._hub_done = self._daemon_done = self._told = False
        daemon.settimeout(0)

    def run(self) -> bool:
        """Until the daemon has closed and all it said is passed on; whether all was answered."""
        before = [(fd, _unblocked(fd)) for fd in (self._stdin, self._stdout)]
        try:
            while not self._daemon_done or self._down:
                self._step()
        finally:
            for descriptor, blocking in before:
                os.set_blocking(descriptor, blocking)
        return self._hub_done and self._answered >= self._asked

    def _step(self) -> None:
        ready = dict(self._poll().poll())
        if ready.get(self._stdout, 0) & _GONE:
            raise BrokenPipeError("nobody reads our answers any more")
        if self._stdin in ready and self._hears:
            self._take_from_hub()
        if not self._daemon_done:
            self._trade_with_daemon()
        if self._stdout in ready and self._down:
            self._give_to_hub()

    @property
    def _hears(self) -> bool:
        return not self._hub_done and not self._daemon_done and len(self._up) < HELD_MAX

    def _poll(self) -> select.poll:
        waits = select.poll()
        masks: dict[int, int] = {self._stdout: select.POLLOUT if self._down else 0}
        if self._hears:
            masks[self._stdin] = masks.get(self._stdin, 0) | select.POLLIN
        if not self._daemon_done:
            hears = select.POLLIN if len(self._down) < HELD_MAX else 0
            masks[self._daemon.fileno()] = hears | (select.POLLOUT if self._up else 0)
        for descriptor, mask in masks.items():
            waits.register(descriptor, mask)
        return waits

    def _take_from_hub(self) -> None:
        try:
            data = os.read(self._stdin, CHUNK)
        except BlockingIOError:
            return
        self._up += data
        self._asked += data.count(b"\n")
        self._hub_done = not data

    def _trade_with_daemon(self) -> None:
        try:
            if self._up:
                del self._up[: self._daemon.send(self._up)]
            if self._hub_done and not self._up and not self._told:
                self._daemon.shutdown(socket.SHUT_WR)
                self._told = True
        except BlockingIOError:
            pass
        except OSError:
            self._up.clear()
        self._take_from_daemon()

    def _take_from_daemon(self) -> None:
        if len(self._down) >= HELD_MAX:
            return
        try:
            data = self._daemon.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._daemon_done = not data
        self._down += data
        self._count(data)

    def _count(self, data: bytes) -> None:
        """Lines that are no news; a newline stands nowhere but at the end of a line."""
        seen = self._tail + data
        self._answered += data.count(b"\n") - seen.count(_NEWS)
        self._tail = seen[-(len(_NEWS) - 1) :]

    def _give_to_hub(self) -> None:
        try:
            del self._down[: os.write(self._stdout, self._down)]
        except BlockingIOError:
            return


def _unblocked(descriptor: int) -> bool:
    """Make a pipe or a socket answer at once; how it was before. Files are quick, terminals too."""
    before = os.get_blocking(descriptor)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        os.set_blocking(descriptor, False)
    return before
