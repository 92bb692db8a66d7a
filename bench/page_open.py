"""Starts the page beside a hub that runs, asks it over HTTP, and keeps pages of it open."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from .nodes import ANSWER_WITHIN_S

ROOT = Path(__file__).resolve().parent.parent
OPEN = 3  # pages
TASKS = "/api/v1/tasks?limit=100"
SPAN = "24h"
# How often a page brings each panel anew by itself, s; and 1 s after it heard that one is stale.
EVERY = {"heat": 15.0, "funnel": 10.0, "feeds": 20.0, "depth": 15.0, "money": 20.0,
         "sensors": 10.0}  # fmt: skip
TASKS_EVERY_S, SOON_S, TURN_S = 15.0, 1.0, 0.1


@dataclass(frozen=True)
class Served:
    """A page that listens."""

    pid: int
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/"

    def get(self, path: str) -> bytes:
        """One answer, whole; anything but success ends the bench."""
        talk = HTTPConnection(self.host, self.port, timeout=ANSWER_WITHIN_S)
        try:
            talk.request("GET", path)
            answer = talk.getresponse()
            body = answer.read()
        finally:
            talk.close()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
        return body

    def panel(self, name: str, **asked: str) -> bytes:
        """What a panel shows of a day."""
        return self.get(panel_path(name, **asked))

    def first_news(self) -> bytes:
        """The first event of the stream: everything that the hub knows."""
        talk = HTTPConnection(self.host, self.port, timeout=ANSWER_WITHIN_S)
        try:
            talk.request("GET", "/live")
            lines = []
            with talk.getresponse() as answer:
                while True:
                    lines.append(line := answer.readline())
                    if line.startswith(b"data:") and b'"full":true' in line:
                        return b"".join(lines)
        finally:
            talk.close()


def panel_path(name: str, **asked: str) -> str:
    return f"/api/v1/panels/{name}?{urlencode({'span': SPAN, **asked})}"


@contextmanager
def page_process(fleet: Path) -> Iterator[Served]:
    """`arc web` in a process of its own, from when it listens."""
    with (fleet.parent / "page.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "arc", "--fleet", str(fleet), "--json", "web", "--port", "0"],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"no page: {(fleet.parent / 'page.log').read_text()}")
        where = urlsplit(str(json.loads(line)["data"]["address"]))
        assert where.hostname is not None
        assert where.port is not None
        yield Served(process.pid, where.hostname, where.port)
    finally:
        process.terminate()
        process.wait(ANSWER_WITHIN_S)
        process.stdout.close()


@dataclass(eq=False)
class Watching:
    """One open page: it follows the stream, and brings what that says is stale, as a browser does.

    More than a browser: every panel counts as seen.
    """

    page: Served
    received: int = 0  # bytes
    asked: int = 0  # questions beside the stream
    trouble: str = ""
    _due: dict[str, float] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _stream: socket.socket | None = None

    def __post_init__(self) -> None:
        now = time.monotonic()
        self._every: Mapping[str, float] = {
            **{panel_path(name): every for name, every in EVERY.items()},
            TASKS: TASKS_EVERY_S,
        }
        self._due = dict.fromkeys(self._every, now)
        self._threads = [threading.Thread(target=self._guarded, args=(work,), daemon=True)
                         for work in (self._follow, self._bring)]  # fmt: skip
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Gone as a closed tab is; what went wrong meanwhile ends the bench."""
        self._over.set()
        if self._stream is not None:
            with suppress(OSError):
                self._stream.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(ANSWER_WITHIN_S)
        if self.trouble:
            raise RuntimeError(f"an open page: {self.trouble}")

    def _guarded(self, work: object) -> None:
        assert callable(work)
        try:
            work()
        except (OSError, HTTPException, RuntimeError, ValueError) as error:
            if not self._over.is_set():
                self.trouble = repr(error)

    def _follow(self) -> None:
        talk = HTTPConnection(self.page.host, self.page.port, timeout=ANSWER_WITHIN_S)
        try:
            talk.request("GET", "/live")
            self._stream = talk.sock  # an answer without length keeps it from here on
            with talk.getresponse() as answer:
                self._hear(answer)
        finally:
            talk.close()

    def _hear(self, answer: HTTPResponse) -> None:
        kind = b""
        while line := answer.readline():
            self.received += len(line)
            if line.startswith(b"event:"):
                kind = line[6:].strip()
            elif line.startswith(b"data:") and kind == b"stale":
                for name in json.loads(line[5:])["panels"]:
                    self._soon(panel_path(name))

    def _soon(self, path: str) -> None:
        if path in self._due:
            self._due[path] = min(self._due[path], time.monotonic() + SOON_S)

    def _bring(self) -> None:
        while not self._over.wait(TURN_S):
            for path, every in self._every.items():
                if self._due[path] <= time.monotonic() and not self._over.is_set():
                    self._due[path] = time.monotonic() + every
                    self.received += len(self.page.get(path))
                    self.asked += 1


@contextmanager
def open_pages(page: Served, count: int = OPEN) -> Iterator[list[Watching]]:
    """So many pages look on."""
    pages = [Watching(page) for _ in range(count)]
    try:
        yield pages
    finally:
        for one in pages:
            one.close()
