"""The page behind a real server on loopback, in the loop of the test."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arc.web.serving import bound, serve
from tests.web.stage import Stage

PATIENCE_S = 20.0
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Served:
    """A page that listens, and a way to end it."""

    port: int
    stop: asyncio.Event
    running: asyncio.Task[None]

    async def connect(self, request: bytes = b"") -> tuple[asyncio.StreamReader, Any]:
        """A connection of one's own, with this said on it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        writer.write(request)
        return reader, writer

    def get(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()


@asynccontextmanager
async def served(stage: Stage) -> AsyncIterator[Served]:
    stage.open(port=0)
    door = bound(stage.settings)
    stop = asyncio.Event()
    running = asyncio.create_task(serve(stage.page, door, stop))
    try:
        yield Served(door.getsockname()[1], stop, running)
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await running


class Listener:
    """One open page, as far as its stream goes."""

    def __init__(self, reader: asyncio.StreamReader, writer: Any) -> None:
        self.reader, self.writer = reader, writer

    async def next(self) -> tuple[str, Any]:
        """The next event and its data; comments are no events."""
        kind, data = "", ""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                line = (await self.reader.readline()).decode().strip()
                if line.startswith("event:"):
                    kind = line.removeprefix("event:").strip()
                elif line.startswith("data:"):
                    data = line.removeprefix("data:").strip()
                elif not line and kind:
                    return kind, json.loads(data)
                elif not line and self.reader.at_eof():
                    raise EOFError

    def close(self) -> None:
        self.writer.close()


async def listening(page: Served) -> Listener:
    return Listener(*await page.connect(page.get("/live")))


def a_fleet(place: Path, more: str = "") -> Path:
    """A fleet.yaml without a node, and its state folder."""
    place.mkdir(mode=0o700, exist_ok=True)
    (place / "fleet.yaml").write_text(f"version: 1\nnodes: []\n{more}")
    (place / ".arc").mkdir(mode=0o700, exist_ok=True)
    return place / "fleet.yaml"


async def a_page(fleet: Path, *words: str) -> asyncio.subprocess.Process:
    """`arc web` as a process of its own; on any port, unless the words say where."""
    where = () if "--socket" in words else ("--port", "0")
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "arc", "web", "--json", *where, "--fleet", str(fleet), *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


async def address_told(page: asyncio.subprocess.Process) -> str:
    """The first line that such a process says."""
    assert page.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        line = await page.stdout.readline()
    return str(json.loads(line)["data"]["address"])
