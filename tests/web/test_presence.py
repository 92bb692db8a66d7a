"""A page that is up is told from a stranger in its place: to people, to machines, to a hub."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from arc.web import child
from arc.web.child import PageBeside
from arc.web.presence import Presence, pages_of, present
from tests.hub.cli.desk import Desk
from tests.web.serving_stage import PATIENCE_S, a_fleet, a_page, address_told
from tests.web.stage import Stage


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    a_fleet(tmp_path)
    yield made
    made.close()


@asynccontextmanager
async def running(fleet: Path, *words: str) -> AsyncIterator[tuple[str, int]]:
    """The page as a process of its own, until it is killed: its address, and its pid."""
    page = await a_page(fleet, *words)
    try:
        yield await address_told(page), page.pid
    finally:
        page.kill()
        async with asyncio.timeout(PATIENCE_S):
            await page.communicate()


def port_of(address: str) -> str:
    return address.rsplit(":", 1)[1].strip("/")


def a_stranger(port: str) -> socket.socket:
    """Another program that listens there."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("127.0.0.1", int(port)))
    door.listen()
    return door


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
async def test_beside_the_fleets_own_page_it_says_where_that_is_and_ends_well(
    desk: Desk, dry: tuple[str, ...]
) -> None:
    """It said that another program has the port, with 1. Without a look at who holds the record,
    a page that was killed would stand for the stranger that came after it.
    """
    async with running(desk.place / "fleet.yaml") as (address, _):
        port = port_of(address)
        words = ("web", "--port", port, *dry)
        # In a thread: what it starts is a loop of its own.
        text, data = await asyncio.to_thread(desk.both, *words)
        assert (text.code, text.out) == (0, f"this fleet's page is up already: {address}\n")
        assert data == {"address": address, "already": True, **({"dry_run": True} if dry else {})}
    with a_stranger(port):
        text, error = await asyncio.to_thread(desk.both, *words)
        assert (text.code, error["code"]) == (1, "ARC-WEB-LISTEN")
        assert error["message"] == f"127.0.0.1:{port} is taken by another program"


async def test_at_a_socket_too(desk: Desk) -> None:
    place = str(desk.place / "page.sock")
    async with running(desk.place / "fleet.yaml", "--socket", place) as (address, _):
        assert address == f"unix:{place}"
        text, data = await asyncio.to_thread(desk.both, "web", "--socket", place)
        assert (text.code, data) == (0, {"address": address, "already": True})


async def test_the_page_of_another_fleet_is_another_program(desk: Desk, tmp_path: Path) -> None:
    async with running(a_fleet(tmp_path / "other")) as (address, _):
        said = await asyncio.to_thread(desk.arc, "web", "--port", port_of(address))
        assert (said.code, "is taken by another program" in said.err) == (1, True)


async def test_who_wants_others_to_reach_it_is_told_that_the_page_is_up_here_alone(
    desk: Desk
) -> None:
    async with running(desk.place / "fleet.yaml") as (address, _):
        assert desk.arc("web", "--make-token").code == 0
        words = ("web", "--host", "0.0.0.0", "--port", port_of(address))
        text, error = await asyncio.to_thread(desk.both, *words)
        assert text.code == 1
        assert f"by this fleet's own page, which is up at {address} alone" in error["message"]
        assert error["hint"].startswith("end that one first, or another port")


async def test_a_page_leaves_no_record_and_takes_away_those_of_the_dead(desk: Desk) -> None:
    fleet, state = desk.place / "fleet.yaml", desk.place / ".arc"
    async with running(fleet) as (address, pid):
        assert [page.address for page in pages_of(state)] == [address]
        assert [path.name for path in state.glob("page-*")] == [f"page-{pid}"]
    assert pages_of(state) == ()  # killed: its record is still there, and nobody's
    assert len([*state.glob("page-*")]) == 1
    page = await a_page(fleet)
    await address_told(page)
    assert [path.name for path in state.glob("page-*")] == [f"page-{page.pid}"]
    page.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_S):
        await page.communicate()
    assert [*state.glob("*page-*")] == []


def test_a_folder_that_cannot_be_written_is_no_reason_to_have_no_page(tmp_path: Path) -> None:
    here = Presence("127.0.0.1", 8420, "http://127.0.0.1:8420/")
    with present(tmp_path / "none", here):
        assert pages_of(tmp_path / "none") == ()
    with present(tmp_path, here):
        assert pages_of(tmp_path) == (here,)
        (tmp_path / "page-1").write_text("what nobody holds")
        assert pages_of(tmp_path) == (here,)


@pytest.mark.parametrize(("host", "wanted", "serves", "in_the_way"), [
    ("127.0.0.1", "127.0.0.1", True, True), ("127.0.0.1", "192.0.2.1", False, False),
    ("0.0.0.0", "127.0.0.1", True, True), ("127.0.0.1", "0.0.0.0", False, True),
    ("0.0.0.0", "::1", False, False), ("::", "127.0.0.1", True, True),
    ("::1", "::", False, True), ("0.0.0.0", "::", False, True),
])  # fmt: skip
def test_which_place_a_page_answers_for(
    host: str, wanted: str, *, serves: bool, in_the_way: bool
) -> None:
    page = Presence(host, 8420, "")
    assert (page.serves(wanted, 8420), page.is_in_the_way(wanted, 8420)) == (serves, in_the_way)
    assert (page.serves(wanted, 1), page.is_in_the_way(wanted, 1)) == (False, False)


# As `arc web --json` beside a page that is up, at first; later it serves itself.
BESIDE = """
import os, sys, time
with open(sys.argv[-1] + ".runs", "a+") as file:
    file.write("x")
    file.seek(0)
    runs = len(file.read())
if runs < 4:
    print('{"ok":true,"data":{"address":"there","already":true}}')
    raise SystemExit(0)
print('{"ok":true,"data":{"address":"here"}}', flush=True)
time.sleep(99)
"""


async def test_a_hub_beside_such_a_page_says_so_once_and_has_its_own_when_that_has_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gave up after twenty tries, each of which was told as a page that had ended."""
    monkeypatch.setattr(child, "AGAIN_S", (0.0,))
    monkeypatch.setattr(child, "STARTS_MAX", 2)
    stage.knows(file=stage.settings.fleet)
    said: list[str] = []
    heard = asyncio.Event()

    def hear(text: str) -> None:
        said.append(text)
        if text == "the page: here":
            heard.set()

    page = PageBeside(stage.desk.hub, hear, (sys.executable, "-c", BESIDE))
    keeping = asyncio.create_task(page.keep())
    async with asyncio.timeout(PATIENCE_S):
        await heard.wait()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    up = "this fleet's page is up already: there; the hub starts one of its own once that has ended"
    assert said == [up, "the page: here"]
