"""Starts real nodes for a measurement, talks to them as a hub or an owner, and ends them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from agent_node.home import Home, connect

from .measuring import Place

ANSWER_WITHIN_S = 120.0
Talk = dict[str, Any]


class Node:
    """One home with one agent, run from the zipapp as a node in the field would be."""

    def __init__(self, place: Place, name: str, run: Sequence[str], *, slots: int) -> None:
        root = place.folder / f"home-{name}"
        self.name, self.home = name, Home(root)
        self.environ: Mapping[str, str] = {**os.environ, "AGENT_NODE_HOME": str(root)}
        self._start = [place.python, "-I", "-S", str(place.zipapp)]
        self._command("init", "--name", name, "--slots", str(slots), "--run", " ".join(run))

    def _command(self, *words: str) -> None:
        subprocess.run(
            [*self._start, *words], env=self.environ, check=True, stdout=subprocess.DEVNULL
        )

    def daemon(self, *words: str) -> subprocess.Popen[bytes]:
        """`agent-node run`, its log kept in the home's folder."""
        with (self.home.root / "bench.log").open("ab") as log:
            return subprocess.Popen(
                [*self._start, "run", *words], env=self.environ, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip

    def serve(self) -> subprocess.Popen[bytes]:
        """`agent-node serve --stdio`, as a hub starts it."""
        return subprocess.Popen(
            [*self._start, "serve", "--stdio"], env=self.environ, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip

    @contextmanager
    def running(self) -> Iterator[int]:
        """The daemon's pid, from the moment it listens until it has been told to go."""
        process = self.daemon()
        try:
            self._wait_for_door(process)
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            end(process, ANSWER_WITHIN_S)

    def _wait_for_door(self, process: subprocess.Popen[bytes]) -> None:
        give_up = time.monotonic() + ANSWER_WITHIN_S
        while not self.home.socket.exists():
            if time.monotonic() > give_up:
                raise RuntimeError(f"{self.name}: the daemon does not listen: {self.log()}")
            try:
                process.wait(0.01)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError(f"{self.name}: the daemon ended: {self.log()}")

    def log(self) -> str:
        """What the daemon said."""
        return (self.home.root / "bench.log").read_text()

    @contextmanager
    def owner(self) -> Iterator[Pipe]:
        """A connection of the machine's owner to the running daemon."""
        with connect(self.home, timeout_s=ANSWER_WITHIN_S) as door:
            door.settimeout(ANSWER_WITHIN_S)
            pipe = Pipe(door.makefile("wb"), door.makefile("rb"))
            pipe.send({"session": "owner"})
            yield pipe
            door.shutdown(socket.SHUT_RDWR)


def end(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Wait for it to end by itself; one that does not is killed, and ends the measurement."""
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


class Pipe:
    """Lines there and back; one request at a time, and events on their own."""

    def __init__(self, write: IO[bytes], read: IO[bytes]) -> None:
        self._write, self._read = write, read
        self._asked = 0

    def send(self, document: Talk) -> None:
        """One line, now."""
        self._write.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")
        self._write.flush()

    def hear(self) -> Talk:
        """The next line."""
        line = self._read.readline()
        if not line:
            raise RuntimeError("the node ended the talk")
        heard: Talk = json.loads(line)
        return heard

    def ask(self, do: str, **fields: object) -> Talk:
        """The result of one request; anything but success ends the bench."""
        self._asked += 1
        self.send({"id": self._asked, "do": do, **fields})
        while True:
            heard = self.hear()
            if "event" not in heard:
                break
        if not heard["ok"]:
            raise RuntimeError(f"{do}: {heard}")
        result: Talk = heard["result"]
        return result

    def wait_for(self, event: str) -> None:
        """Until the node says so by itself."""
        while self.hear().get("event") != event:
            pass


def report_of(home: Home) -> Talk:
    """fleet-status.json as it lies there; empty before the first one."""
    try:
        found: Talk = json.loads(Path(home.status).read_bytes())
    except FileNotFoundError:
        return {}
    return found
