"""Starts real serve processes and little daemons, and ends each of them by its own pid."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_node.home import Home, connect

ROOT = Path(__file__).parents[3]
PATIENCE_S = 20.0
SERVE = (
    "import sys; from pathlib import Path; from agent_node.home import Home;"
    "from agent_node import serve; {before}; sys.exit(serve.serve_stdio(Home(Path(sys.argv[1]))))"
)
RELAYED = "serve.can_be_waited_for = lambda descriptor: False"
IMPATIENT = "serve.PATIENCE_S = 0.05"


class TooSlow(AssertionError):
    """What has to come did not come in time."""


class Program:
    """A process with pipes on stdin and stdout, read line by line, never waited for too long."""

    def __init__(self, *argv: str, python: str = sys.executable, **more: Any) -> None:
        given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **more}
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [python, *argv], cwd=ROOT, stderr=subprocess.PIPE, bufsize=0, **given
        )
        self._held = b""

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def say(self, **request: Any) -> None:
        self.write(json.dumps(request, ensure_ascii=False).encode() + b"\n")

    def line(self) -> bytes:
        """The next line of its stdout; empty at its end."""
        assert self.process.stdout is not None
        while b"\n" not in self._held:
            data = read_some(self.process.stdout.fileno())
            if not data:
                return self._held
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        return line

    def hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(self.line())
        return heard

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        self.say(id=1, do=do, **fields)
        reply = self.hear()
        assert reply["ok"], reply
        result: dict[str, Any] = reply["result"]
        return result

    def no_more(self) -> None:
        """Its stdin ends here."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self) -> int:
        """Its exit code."""
        return self.process.wait(PATIENCE_S)

    def complaint(self) -> str:
        """What it wrote to stderr; it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def read_some(descriptor: int) -> bytes:
    """What is there, as soon as something is."""
    ready, _, _ = select.select([descriptor], [], [], PATIENCE_S)
    if not ready:
        raise TooSlow(f"nothing came on descriptor {descriptor}")
    return os.read(descriptor, 1 << 20)


@contextmanager
def a_program(*argv: str, **more: Any) -> Iterator[Program]:
    program = Program(*argv, **more)
    try:
        yield program
    finally:
        program.kill()


@contextmanager
def a_daemon(place: Path) -> Iterator[Program]:
    """A little daemon that listens already."""
    with a_program("-m", "tests.node.wire.little_daemon", str(place)) as daemon:
        assert daemon.line() == b"up", daemon.complaint()
        yield daemon


@contextmanager
def a_serve(place: Path, *, before: str = "pass", **more: Any) -> Iterator[Program]:
    """`agent-node serve --stdio` for this home, changed by what runs `before`."""
    code = SERVE.format(before=before)
    with a_program("-c", code, str(place), **more) as serve:
        yield serve


def door_socket(home: Home) -> socket.socket:
    """One that is surely admitted: it was answered."""
    one = connect(home, timeout_s=PATIENCE_S)
    one.sendall(b'{"session":"owner"}\n{"id":1,"do":"doubts"}\n')
    assert json.loads(one.recv(65_536))["ok"]
    return one
