"""Is the floor below the hub: bare asyncssh sessions, and a bare cycle over pipes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import asyncssh

from arc.links.ssh import CIPHERS, KEX

from .nodes import Pipe, Talk

LIMIT_S = 120.0
# The request of ours, byte for byte; its answer is the same bytes too.
REQUEST = b'{"id":1,"do":"status"}\n'


class Bare(asyncssh.SSHClientSession[bytes]):
    """One open session: bytes go out, and a line comes back that nobody reads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._came: asyncio.Future[int] = self._loop.create_future()
        self._bytes = 0

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._bytes += len(data)
        if data.endswith(b"\n"):
            self._came.set_result(self._bytes)

    async def line(self) -> int:
        """How many bytes the next line has, once it is there."""
        return await self._came

    def echo(self) -> asyncio.Future[int]:
        """Send the request; the future is the length of what came back."""
        assert self._channel is not None, "a session that is open"
        self._came, self._bytes = self._loop.create_future(), 0
        self._channel.write(REQUEST)
        return self._came


@dataclass
class Sessions:
    """Bare connections, a session on each."""

    connections: list[asyncssh.SSHClientConnection]
    bare: list[Bare]

    async def echo(self) -> int:
        """Every session asked at once; how many bytes came."""
        async with asyncio.timeout(LIMIT_S):
            return sum(await asyncio.gather(*(one.echo() for one in self.bare)))

    async def close(self) -> None:
        """Let all of them go."""
        for connection in self.connections:
            connection.close()
        await asyncio.gather(*(one.wait_closed() for one in self.connections))


async def connect_all(logins: Sequence[tuple[str, int]], key: asyncssh.SSHKey) -> Sessions:
    """All at once: connect, log in, start a session, and wait for the line with which it greets."""
    async with asyncio.timeout(LIMIT_S):
        opened = await asyncio.gather(*(_connect(login, port, key) for login, port in logins))
    return Sessions([one for one, _ in opened], [one for _, one in opened])


async def _connect(
    login: str, port: int, key: asyncssh.SSHKey
) -> tuple[asyncssh.SSHClientConnection, Bare]:
    """As bare as asyncssh goes, with the ciphers of ours; no host key is even looked at."""
    connection = await asyncssh.connect(
        "127.0.0.1", port, username=login, client_keys=[key], known_hosts=None, config=None,
        agent_path=None, gss_host=None, encryption_algs=list(CIPHERS), kex_algs=list(KEX),
    )  # fmt: skip
    bare = Bare()
    await connection.create_session(lambda: bare, "agent-node serve --stdio", encoding=None)
    await bare.line()
    return connection, bare


class BareCycle:
    """Five children of the floor's making, and the messages of one rebalance: ten tasks move.

    No plan, no journal, no reason: which tasks go where stands there before anything is asked.
    """

    def __init__(self, busy: Pipe, idle: Sequence[Pipe], uids: Sequence[str]) -> None:
        self._busy, self._idle = busy, idle
        self._left = list(uids)
        self._numbers = iter(range(1, 10**9))

    def run(self, sizes: Sequence[int] = (3, 3, 3, 1)) -> None:
        """Statuses, candidates, then five steps; at each step all pairs are asked at once."""
        self._all([(pipe, {"do": "status"}) for pipe in (self._busy, *self._idle)])
        self._all([(self._busy, {"do": "candidates", "limit": sum(sizes)})])
        batches: list[list[Talk]] = []
        for size in sizes:
            taken, self._left = self._left[:size], self._left[size:]
            batches.append([{"xfer": f"x{next(self._numbers)}", "uid": uid} for uid in taken])
        pairs = list(zip(self._idle, batches, strict=True))
        said = self._all([(self._busy, {"do": "escrow", "moves": moves}) for _, moves in pairs])
        self._all([(idle, {"do": "hold", "moves": moves})
                   for (idle, _), moves in zip(pairs, said, strict=True)])  # fmt: skip
        self._all([(self._busy, {"do": "commit", "moves": moves}) for _, moves in pairs])
        self._all([(idle, {"do": "activate", "moves": moves}) for idle, moves in pairs])
        self._all([(self._busy, {"do": "settled", "moves": moves}) for _, moves in pairs])

    def _all(self, requests: Sequence[tuple[Pipe, Talk]]) -> list[list[Talk]]:
        for number, (pipe, request) in enumerate(requests):
            pipe.send({"id": number, **request})
        return [pipe.hear()["result"]["results"] for pipe, _ in requests]
