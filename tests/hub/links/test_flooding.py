"""What a server sends beside its sessions, or after one that lied, is not read for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from arc.demo.sshd import DemoSshd
from arc.errors import LinkError
from arc.links.metering import BESIDES_MAX, BESIDES_S, WINDOW, Meter
from arc.links.standing import StandingLink
from tests.hub.links.places import a_home
from tests.hub.links.test_pipes import GREETING, HELLO
from tests.hub.links.test_ssh import Hub, behind_ssh, hub, server

__all__ = ["hub", "server"]

FLOOD, PIECE, AT_ONCE = 64 * 1024 * 1024, 1000, 300
CHUNK = 256 * 1024  # that a transport reads at once
IGNORE = 2
GREETS = f"say('{GREETING}'); sys.stdin.readline(); say('{HELLO}'); "


class Bytes:
    """How many bytes clients of this process were given by their transports."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        plain = asyncssh.SSHClientConnection.data_received

        def counted(one: asyncssh.SSHClientConnection, data: bytes, kind: Any = None) -> None:
            self.count += len(data)
            plain(one, data, kind)

        patch.setattr(asyncssh.SSHClientConnection, "data_received", counted)


async def flood(connection: asyncssh.SSHServerConnection, kind: str) -> None:
    """Packets without end, or nearly so, as fast as the other end reads them."""
    sent = 0
    with suppress(asyncssh.Error, OSError):
        while sent < FLOOD and not connection.is_closed():
            for _ in range(AT_ONCE):
                if kind == "debug":
                    connection.send_debug("x" * PIECE)
                else:
                    connection.send_packet(IGNORE, PIECE.to_bytes(4, "big") + b"x" * PIECE)
            sent += AT_ONCE * PIECE
            await asyncio.sleep(0)


async def its_talk_ends(link: StandingLink) -> str:
    assert link._session is not None
    talk = link._session.talk
    async with asyncio.timeout(20):
        await talk.closed.wait()
    assert talk.over is not None
    return talk.over


@pytest.mark.parametrize("kind", ["debug", "ignore"])
async def test_a_server_that_floods_beside_its_sessions_is_cut_and_the_others_are_asked(
    hub: Hub, server: DemoSshd, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the meter the hub reads all of it, and keeps the connection."""
    other = await DemoSshd.serve(a_home(tmp_path, "loom"), authorized=hub.public)
    hub.trust(other, "loom")
    link, beside = hub.link(server.port), hub.link(other.port, name="loom")
    beside._way._node = hub.entry(other.port, "loom")  # type: ignore[attr-defined]
    await link.meet()
    await beside.meet()
    (connection,) = server._connections
    seen = Bytes(monkeypatch)
    flooding = asyncio.create_task(flood(connection, kind))
    assert (await beside.ask("status", timeout_s=5))["node"] == "loom"
    assert "belong to no session" in await its_talk_ends(link)
    assert seen.count < BESIDES_MAX + 2 * CHUNK
    await flooding
    await link.close()
    await beside.close()
    await other.close()


@pytest.mark.parametrize("lie", [
    "[say('x' * 1000000) for _ in range(99)]",
    "[sys.stderr.write('x' * 1000000) for _ in range(99)]",
    "[out.write('x' * 1000000) for _ in range(99)]",
])  # fmt: skip
async def test_a_session_that_lied_takes_its_connection_with_it(hub: Hub, lie: str) -> None:
    """With the channel closed alone what comes after it would be read all the same."""
    async with behind_ssh(hub, f"{GREETS}{lie}; time.sleep(60)") as link:
        with suppress(LinkError):
            await link.meet()
            await its_talk_ends(link)
        connection = link._way._connection  # type: ignore[attr-defined]
        async with asyncio.timeout(10):
            await connection.wait_closed()


# --- What counts ----------------------------------------------------------------------------------


def metered(now: Callable[[], float] = lambda: 0.0) -> tuple[Meter, Any, list[str]]:
    cut: list[str] = []
    meter = Meter(now)
    meter.cut = cut.append
    return meter, meter.metered(lambda data, kind: None), cut


def test_so_much_beside_its_sessions_is_borne_and_not_a_byte_more() -> None:
    _, received, cut = metered()
    received(b"x" * BESIDES_MAX)
    assert cut == []
    received(b"x")
    received(b"x")
    assert len(cut) == 1


def test_what_a_session_is_told_and_what_came_long_ago_do_not_count() -> None:
    clock = [0.0]
    meter, received, cut = metered(lambda: clock[0])
    for _ in range(9):
        received(b"x" * BESIDES_MAX)
        meter.told(BESIDES_MAX)
    received(b"x" * BESIDES_MAX)
    clock[0] = BESIDES_S
    received(b"x" * BESIDES_MAX)
    assert cut == []


def test_what_is_under_way_as_we_close_a_session_is_borne_once() -> None:
    meter, received, cut = metered()
    meter.leave()
    meter.leave()
    received(b"x" * (WINDOW + BESIDES_MAX))
    assert cut == []
    received(b"x")
    assert len(cut) == 1
