"""The demo's page is found where the demo said, whoever wants that port meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from arc.demo.page import open_door, page_beside, port_of
from arc.settings import WebEntry
from arc.web import child
from arc.web.presence import pages_of
from tests.hub.cli.desk import Desk
from tests.web.serving_stage import PATIENCE_S, a_fleet
from tests.web.stage import Stage


def a_fleet_of(stage: Stage, place: Path, port: int) -> Path:
    """What the demo writes of its page, and the hub beside it knows; its state folder."""
    file = a_fleet(place, f"web: {{port: {port}}}\n")
    stage.knows(file=file, web=WebEntry(port=port))
    return place / ".arc"


async def asked(port: int) -> bytes:
    """The first line of what answers there, as a browser meets it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE_S):
        line = await reader.readline()
    writer.close()
    return line


def taken_by_another(port: int) -> bool:
    """Whether another program that tries gets the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
        except OSError:
            return False
    return True


async def test_nobody_takes_the_port_before_the_page_is_up_or_while_it_is_started_again(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail with a port that is chosen and let go: the stranger had it, and the page never
    came. Who asks before the page is up is answered by it then.
    """
    monkeypatch.setattr(child, "AGAIN_S", (0.0,))
    said: list[str] = []
    with open_door() as door:
        port = port_of(door)
        state = a_fleet_of(stage, tmp_path / "f", port)
        assert not taken_by_another(port)
        async with page_beside(stage.desk.hub, said.append, door):
            assert (await asked(port)).startswith(b"HTTP/1.1 200")
            (record,) = state.glob("page-*")
            os.kill(int(record.name.removeprefix("page-")), signal.SIGKILL)
            assert not taken_by_another(port)
            assert (await asked(port)).startswith(b"HTTP/1.1 200")
            assert [page.port for page in pages_of(state)] == [port]
        assert said.count(f"the page: http://127.0.0.1:{port}/") == 2
        assert not taken_by_another(port)


async def test_a_page_that_fleet_yaml_puts_elsewhere_leaves_the_door(
    stage: Stage, tmp_path: Path
) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    path = tmp_path / "f" / "page.sock"
    with open_door() as door:
        stage.knows(file=a_fleet(path.parent, "web: {socket: page.sock}\n"),
                    web=WebEntry(socket=path))  # fmt: skip
        async with page_beside(stage.desk.hub, said.put_nowait, door):
            async with asyncio.timeout(PATIENCE_S):
                first = await said.get()
        assert first == f"the page: unix:{path}"


def test_the_second_demo_has_a_port_of_its_own() -> None:
    with open_door() as one, open_door() as other:
        assert port_of(one) != port_of(other)


def test_a_door_that_is_none_is_one_clear_line(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    a_fleet(tmp_path)
    with (tmp_path / "file").open("w") as file:
        for one in (file.fileno(), socket.socket().detach(), 2**31, 10**20):
            said = desk.arc("web", "--door", str(one))
            assert said.code == 1
            assert said.err.startswith("error[ARC-WEB-LISTEN]: descriptor ")
    desk.close()
