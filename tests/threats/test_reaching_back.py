"""A node cannot reach back: not through the hub's connection, and to no port of anybody's."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from arc.demo.sshd import DemoSshd
from tests.hub.cli.desk import RealFleet
from tests.hub.links.test_ssh import Hub, hub, server

__all__ = ["hub", "server"]

Reaching = Callable[[asyncssh.SSHServerConnection], Awaitable[Any]]
WAYS: dict[str, Reaching] = {
    "a port of the hub's machine": lambda conn: conn.open_connection("127.0.0.1", 22),
    "a port it forwarded": lambda conn: conn.open_connection("", 1),
    "a socket of the hub's machine": lambda conn: conn.open_unix_connection("/run/arc.sock"),
    "the operator's ssh agent": lambda conn: conn.create_agent_connection(
        asyncssh.SSHUNIXSession),
    "the operator's display": lambda conn: conn.create_x11_connection(
        asyncssh.SSHTCPSession, "127.0.0.1", 6000),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
async def test_a_server_that_opens_channels_towards_the_hub_gets_none(
    hub: Hub, server: DemoSshd, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the operator's own environment offers; and the talk goes on."""
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent.sock")
    monkeypatch.setenv("DISPLAY", ":0")
    link = hub.link(server.port)
    await link.ask("status")
    (connection,) = server._connections
    with pytest.raises(asyncssh.ChannelOpenError):
        await WAYS[way](connection)
    assert (await link.ask("status"))["node"] == "iris"
    await link.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RealFleet]:
    made = RealFleet(tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_a_hub_and_a_node_listen_on_no_network(fleet: RealFleet) -> None:
    """No port is open: what they answer at is a socket in a folder of their own."""
    pids = [fleet.up().pid, *fleet.iris.processes()]
    assert len(pids) > 2
    found = [f"{pid}: {line}" for pid in pids for line in listening(pid)]
    assert found == []


def listening(pid: int) -> list[str]:
    """What this process has open that hears a network."""
    inodes = set()
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{number}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    return [line for table in ("tcp", "tcp6", "udp", "udp6")
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
            if line.split()[9] in inodes]  # fmt: skip
