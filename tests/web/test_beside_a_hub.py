"""The real page beside the real hub: it comes and goes with it, or outlives it as its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from arc.socket_paths import reached
from tests.web.serving_stage import PATIENCE_S, Listener

ROOT = Path(__file__).resolve().parents[2]
FLEET = """
version: 1
nodes: []
web: {socket: page.sock, actions: true}
webhooks:
  ci: {secret_file: secret, key: "{build}", task: {subject: "CI {build}"}}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    place = tmp_path / "f"
    place.mkdir(mode=0o700)
    (place / "fleet.yaml").write_text(FLEET)
    (place / "secret").write_text("hush")
    (place / "secret").chmod(0o600)
    return place


async def arc(place: Path, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "arc", *words, "--json", cwd=place, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@asynccontextmanager
async def running(place: Path, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await arc(place, *words)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(PATIENCE_S):
            await process.communicate()


async def said(place: Path, *words: str) -> Any:
    async with running(place, *words) as process:
        out, _ = await process.communicate()
        return json.loads(out)


def answers(path: Path) -> bool:
    """Whether somebody listens at this socket."""
    try:
        with socket.socket(socket.AF_UNIX) as caller, reached(path) as place:
            caller.connect(place)
    except OSError:
        return False
    return True


async def until(path: Path, *, there: bool) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if answers(path) is there:
                return
            await asyncio.sleep(0.02)


async def a_page(place: Path) -> Listener:
    with reached(place / "page.sock") as path:
        reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return Listener(reader, writer)


async def until_told(page: Listener, kind: str) -> Any:
    while True:
        found, data = await page.next()
        if found == kind:
            return data


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
async def test_a_page_that_a_hub_started_is_there_with_it_and_gone_after_it(
    fleet: Path, ending: signal.Signals
) -> None:
    """Without the end of its stdin, a page would outlive a hub that was killed."""
    async with running(fleet, "up", "--web") as hub:
        await until(fleet / "page.sock", there=True)
        page = await a_page(fleet)
        assert (await until_told(page, "now"))["full"] is True
        hub.send_signal(ending)
        async with asyncio.timeout(PATIENCE_S):
            await hub.communicate()
        await until(fleet / "page.sock", there=False)
        page.close()


async def test_a_page_of_its_own_lives_through_the_death_of_a_hub_and_finds_the_next_one(
    fleet: Path,
) -> None:
    async with running(fleet, "web"):
        await until(fleet / "page.sock", there=True)
        page = await a_page(fleet)
        assert (await until_told(page, "trouble"))["error"]["code"] == "ARC-NO-HUB"
        async with running(fleet, "up") as hub:
            first = await until_told(page, "now")
            assert first["full"] is True
            hub.kill()
            await hub.communicate()
            lost = await until_told(page, "trouble")
            while lost["error"] is None:  # that it is back from before
                lost = await until_told(page, "trouble")
            assert lost["seen_at"] >= first["seen_at"]
        async with running(fleet, "up"):
            assert (await until_told(page, "now"))["full"] is False
        page.close()


async def test_a_message_to_the_real_page_makes_one_task(fleet: Path) -> None:
    (fleet / "build.json").write_text('{"build": 7}')
    async with running(fleet, "up", "--web"):
        await until(fleet / "page.sock", there=True)
        sent = ("webhooks", "test", "ci", "--payload", "build.json")
        dry = await said(fleet, *sent, "--dry-run")
        assert dry["data"]["outcome"] == "added"
        first = await said(fleet, *sent)
        assert (first["ok"], first["data"]["task"]) == (True, {"subject": "CI 7"})
        again = await said(fleet, *sent)
        assert again["ok"] is False or again["data"]["outcome"] == "exists"
        listed = await said(fleet, "tasks", "list")
        assert [one["uid"] for one in listed["data"]["tasks"]] == [first["data"]["uid"]]
        assert (await said(fleet, "webhooks", "list"))["data"]["webhooks"][0]["taken_24h"] >= 1


async def acted(place: Path, verb: str, **body: Any) -> Any:
    """What the page answers to an order that comes through its socket."""
    raw = json.dumps({"by": "ada", "reason": "to see", **body}).encode()
    with reached(place / "page.sock") as path:
        reader, writer = await asyncio.open_unix_connection(path)
    head = ("POST /act/{} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
            "Connection: close", "Content-Length: {}", "", "")  # fmt: skip
    writer.write("\r\n".join(head).format(verb, len(raw)).encode() + raw)
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return json.loads(answer.partition(b"\r\n\r\n")[2])["data"]


async def test_who_acts_through_the_socket_stands_in_the_log_by_the_user_that_the_kernel_knows(
    fleet: Path,
) -> None:
    async with running(fleet, "up", "--web"):
        await until(fleet / "page.sock", there=True)
        plan = await acted(fleet, "pause-fleet", dry_run=True)
        await acted(fleet, "pause-fleet", plan=plan["plan_hash"])
        lines = (await said(fleet, "log"))["data"]["lines"]

    by = [line["fields"]["by"] for line in lines if line["event"] == "fleet_paused"]
    assert by == [f"web[uid {os.getuid()}]:ada"]
