"""The page listens where it was told to, for whom it was told to, and says clearly why not."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arc.hub import Hub
from arc.settings import WebEntry
from arc.web import child
from arc.web.child import PageBeside
from arc.web.serving import CannotListen, address_of, bound
from arc.web.surroundings import WebSettings
from tests.hub.cli.desk import Desk, Ran
from tests.web.serving_stage import PATIENCE_S, ROOT, a_fleet, a_page, address_told, served
from tests.web.stage import Stage


def settings(place: Path, **fields: Any) -> WebSettings:
    return WebSettings(fleet=place / "fleet.yaml", state=place / ".arc", **fields)


def arc(desk: Desk, *words: str) -> Ran:
    return desk.arc(*words)


def test_a_port_that_is_taken_is_one_clear_line(tmp_path: Path) -> None:
    with bound(settings(tmp_path, port=0)) as door:
        port = door.getsockname()[1]
        assert address_of(settings(tmp_path, port=0), door) == f"http://127.0.0.1:{port}/"
        with pytest.raises(CannotListen, match=f"127.0.0.1:{port} is taken by another program"):
            bound(settings(tmp_path, port=port))


def test_a_socket_is_for_its_owner_and_takes_the_place_of_a_dead_one_alone(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 40)  # longer than the kernel takes
    folder.mkdir()
    path = folder / "page.sock"
    with bound(settings(tmp_path, unix=path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(CannotListen, match="another program that answers there"):
            bound(settings(tmp_path, unix=path))
    with bound(settings(tmp_path, unix=path)):  # what the first one left behind is in nobody's way
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(CannotListen, match="cannot listen on"):
        bound(settings(tmp_path, unix=tmp_path / "none" / "page.sock"))


def test_a_dry_run_is_refused_where_the_page_could_not_listen_and_leaves_nothing(
    desk: Desk
) -> None:
    """It ended with 0 in each of these places."""
    (desk.place / "folder").mkdir()
    places = [("--socket", str(desk.place / "none" / "page.sock")),
              ("--socket", str(desk.place / "folder")), ("--socket", str(desk.place / ("x" * 200))),
              ("--host", "192.0.2.1")]  # fmt: skip
    with bound(settings(desk.place, port=0)) as door, bound(
        settings(desk.place, unix=desk.place / "taken")
    ):
        places += [("--port", str(door.getsockname()[1])),
                   ("--socket", str(desk.place / "taken"))]  # fmt: skip
        assert arc(desk, "web", "--make-token").code == 0
        before = sorted(desk.place.rglob("*"))
        for words in places:
            dry, real = arc(desk, "web", *words, "--dry-run"), arc(desk, "web", *words)
            assert (dry.code, dry.err) == (1, real.err), words
            assert dry.err.startswith("error[ARC-WEB-LISTEN]"), dry.err
        assert sorted(desk.place.rglob("*")) == before


def test_a_dry_run_takes_no_port_and_no_socket(desk: Desk) -> None:
    dead = settings(desk.place, unix=desk.place / "page.sock")
    bound(dead).close()
    seen = (desk.place / "page.sock").stat()
    assert arc(desk, "web", "--socket", str(desk.place / "page.sock"), "--dry-run").code == 0
    assert (desk.place / "page.sock").stat() == seen
    with bound(settings(desk.place, port=0)) as door:
        port = door.getsockname()[1]
    assert arc(desk, "web", "--port", str(port), "--dry-run").code == 0
    bound(settings(desk.place, port=port)).close()


async def test_two_pages_of_one_fleet_may_listen_side_by_side(stage: Stage) -> None:
    async with served(stage) as one:
        first = one.port
        reader, writer = await one.connect(one.get("/api/v1/now"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
    async with served(stage) as two:
        assert two.port != first or two.port


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    a_fleet(tmp_path)
    yield made
    made.close()


def test_where_others_reach_the_page_it_wants_a_token_and_says_how_to_make_one(desk: Desk) -> None:
    """Without the check it would listen for everybody."""
    said = arc(desk, "web", "--host", "0.0.0.0", "--dry-run")
    assert (said.code, "arc web --make-token" in said.err) == (7, True)
    made = arc(desk, "web", "--make-token", "--dry-run")
    token = desk.place / ".arc" / "web-token"
    assert (made.code, token.exists()) == (0, False)
    assert arc(desk, "web", "--make-token").code == 0
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    first = token.read_bytes()
    assert len(first.strip()) >= 40
    assert first.strip().decode() not in arc(desk, "web", "--make-token").out
    assert token.read_bytes() != first
    _, data = desk.both("web", "--host", "0.0.0.0", "--port", "0", "--dry-run")
    assert data["token"] is True
    token.chmod(0o640)
    said = arc(desk, "web", "--host", "0.0.0.0", "--dry-run")
    assert (said.code, "others can read this secret" in said.err) == (2, True)
    _, data = desk.both("web", "--port", "0", "--dry-run")
    assert data == {"address": "127.0.0.1:0", "token": False, "actions": False, "dry_run": True}
    said = arc(desk, "web", "--dry-run")  # where another program has that port, that is told
    assert "127.0.0.1:8420" in said.out + said.err


@pytest.mark.parametrize("words", [("--port", "65536"), ("--socket", "x", "--port", "1"),
                                   ("--port", "-7"), ("--socket", "x", "--host", "::1")])
def test_words_that_make_no_sense_are_refused(desk: Desk, words: tuple[str, ...]) -> None:
    assert arc(desk, "web", *words, "--dry-run").code == 2


def test_without_its_packages_the_page_says_how_to_get_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from arc.cli import web_words

    monkeypatch.setattr(web_words, "find_spec", lambda name: None if name == "uvicorn" else name)
    said = arc(desk, "web")
    assert said.code == 2
    assert said.err.startswith("error[ARC-WEB-MISSING]: the page needs packages")
    assert "pip install 'arc-fleet[web]'" in said.err


@pytest.mark.parametrize("words", [("--help",), ("status",), ("tasks", "add", "x", "--help")])
def test_no_other_command_pays_for_the_page(tmp_path: Path, words: tuple[str, ...]) -> None:
    code = (
        "import sys; from arc.cli.running import run_here\n"
        f"run_here({list(words)!r})\n"
        "print([m for m in ('starlette', 'uvicorn', 'jinja2', 'sse_starlette', 'anyio', "
        "'prometheus_client', 'arc.web.app') if m in sys.modules], file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True,
                           text=True, timeout=60, check=False,
                           env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert found.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_a_signal_ends_it_in_order(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    page = await a_page(a_fleet(tmp_path / "f"))
    port = int((await address_told(page)).rsplit(":", 1)[1].strip("/"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /live HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")  # without any hub, too
    page.send_signal(number)
    async with asyncio.timeout(PATIENCE_S):
        assert await page.wait() == code
        assert page.stderr is not None
        assert await page.stderr.read() == b""
    writer.close()


async def test_beside_a_hub_it_ends_with_the_hub_however_that_ends(tmp_path: Path) -> None:
    page = await a_page(a_fleet(tmp_path / "f"), "--beside-hub")
    await address_told(page)
    assert page.stdin is not None
    page.stdin.close()  # as the kernel does it for a hub that was killed
    async with asyncio.timeout(PATIENCE_S):
        assert await page.wait() == 0


# Writes its pid beside fleet.yaml, says where it is, and stays.
SLEEPER = """
import os, sys, time
open(sys.argv[-1] + ".pid", "a").write(f"{os.getpid()} ")
print('{"ok":true,"data":{"address":"here"}}', flush=True)
time.sleep(99)
"""


class Beside:
    """A hub's page in the place of which a test puts some other program."""

    def __init__(self, hub: Hub, *command: str) -> None:
        self.said: list[str] = []
        self.page = PageBeside(hub, self.said.append, command)


async def until_said(beside: Beside, text: str, times: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if sum(text in one for one in beside.said) >= times:
                return
            await asyncio.sleep(0.01)


async def test_a_page_that_ends_is_started_again_within_bounds_and_the_hub_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the bound it is started for ever."""
    monkeypatch.setattr(child, "AGAIN_S", (0.0,))
    monkeypatch.setattr(child, "STARTS_MAX", 3)
    stage.knows(file=stage.settings.fleet)
    beside = Beside(stage.desk.hub, sys.executable, "-c", "raise SystemExit(1)")
    async with asyncio.timeout(PATIENCE_S):
        await beside.page.keep()
    assert sum("it is started again" in one for one in beside.said) == 3
    assert "not started again" in beside.said[-1]


# As `arc web --json` where its port is taken.
REFUSED = 'print(\'{"ok":false,"error":{"message":"8420 is taken"}}\'); raise SystemExit(%d)'


@pytest.mark.parametrize("code", [1, 2])
async def test_a_page_that_ends_tells_the_hub_why(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Seen to fail with the page's own line read as an address alone."""
    monkeypatch.setattr(child, "AGAIN_S", (0.0,))
    monkeypatch.setattr(child, "STARTS_MAX", 1)
    beside = Beside(stage.desk.hub, sys.executable, "-c", REFUSED % code)
    async with asyncio.timeout(PATIENCE_S):
        await beside.page.keep()
    assert beside.said[0].endswith(": 8420 is taken")


async def test_a_page_that_cannot_be_had_is_not_tried_again(stage: Stage) -> None:
    beside = Beside(stage.desk.hub, sys.executable, "-c", "raise SystemExit(2)")
    async with asyncio.timeout(PATIENCE_S):
        await beside.page.keep()
    assert beside.said == ["the page cannot be had so; the hub runs on without it"]


async def test_a_page_follows_what_fleet_yaml_says_of_it_and_ends_with_who_keeps_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LOOK_S", 0.01)
    beside = Beside(stage.desk.hub, sys.executable, "-c", SLEEPER)
    keeping = asyncio.create_task(beside.page.keep())
    await until_said(beside, "the page: here", 1)
    stage.knows(web=WebEntry(actions=True))
    await until_said(beside, "the page: here", 2)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    with open(f"{stage.desk.hub.settings.file}.pid", encoding="ascii") as file:  # noqa: ASYNC230
        pids = file.read().split()
    assert len(pids) == 2
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)  # noqa: ASYNC240
