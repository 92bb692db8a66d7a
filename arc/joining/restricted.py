"""Tries with the hub's own key what it must not be able to do on a node; each for real."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncssh
from asyncssh.channel import SSHClientChannel
from asyncssh.packet import Boolean, String, UInt32

from arc.errors import NodeSilent, NodeUnreachable

PROBE_S = 10.0
AGAIN_S = 0.05  # until a server that takes one session at a time has ended the one before
HEARD_MAX = 64 * 1024
WINDOW = 64 * 1024
SFTP_HELLO = b"\0\0\0\5\1\0\0\0\3"
SFTP_VERSION = b"\2\0\0\0\3"
GREETING = b'{"agent-node"'
Connection = asyncssh.SSHClientConnection


async def what_is_granted(node: str, connection: Connection, *, sock: str) -> tuple[str, ...]:
    """What the hub's key may do beside speaking to agent-node; empty: nothing, as it should be.

    `sock` is the path of a socket there at which somebody listens: of a forbidden one and of one
    that is not there sshd tells the same. A probe without an answer is an error: what could not be
    tried is not taken for refused.
    """
    granted: list[str] = []
    for name, probe in PROBES.items():
        try:
            async with asyncio.timeout(PROBE_S):
                if await probe(connection, sock):
                    granted.append(name)
        except TimeoutError as error:
            raise NodeSilent(node, f"trying {name}: no answer within {PROBE_S:g}s") from error
        except (OSError, asyncssh.Error) as error:
            raise NodeUnreachable(node, f"trying {name}: it could not be tried: {error}") from error
    return tuple(granted)


async def _a_shell(connection: Connection, sock: str) -> bool:
    """A shell would reckon: the sum stands nowhere in what we send."""
    return await _reckons(connection, asked=False)


async def _a_command(connection: Connection, sock: str) -> bool:
    return await _reckons(connection, asked=True)


async def _reckons(connection: Connection, *, asked: bool) -> bool:
    """By a program, in words that mean the same to csh and fish: `$((` is known to some shells."""
    one, two = (random.SystemRandom().randrange(10**6, 10**7) for _ in range(2))
    words, total = f"expr {one} + {two}", str(one + two).encode()
    process = await _started(connection, words if asked else None)
    if process is None:
        return False
    _say(process, f"{words}\n".encode(), ends=True)
    heard = await _heard(process.stdout, total)
    process.close()
    return total in heard


async def _sftp(connection: Connection, sock: str) -> bool:
    process = await _started(connection, None, subsystem="sftp")
    if process is None:
        return False
    _say(process, SFTP_HELLO, ends=False)
    heard = await _heard(process.stdout, SFTP_VERSION, GREETING)
    process.close()
    return SFTP_VERSION in heard


async def _started(
    connection: Connection, command: str | None, *, subsystem: str | None = None
) -> asyncssh.SSHClientProcess[bytes] | None:
    """What the server lets us start; None: it said no. No room for a session now is no answer."""
    while True:
        try:
            return await connection.create_process(
                command, subsystem=subsystem, encoding=None, request_pty=False
            )
        except asyncssh.ChannelOpenError as error:
            if error.code != asyncssh.OPEN_CONNECT_FAILED:
                return None
        await asyncio.sleep(AGAIN_S)


def _say(process: asyncssh.SSHClientProcess[bytes], words: bytes, *, ends: bool) -> None:
    """To what was started; it may have ended before it could hear, and what it printed counts."""
    with suppress(OSError, asyncssh.ProtocolError):
        process.stdin.write(words)
        if ends:
            process.stdin.write_eof()


async def _heard(source: asyncssh.SSHReader[bytes], *marks: bytes) -> bytes:
    """What came until one of these marks, the end, or more than anybody would say."""
    heard = b""
    while len(heard) < HEARD_MAX and not any(mark in heard for mark in marks):
        data = await source.read(HEARD_MAX)
        if not data:
            break
        heard += data
    return heard


async def _request(connection: Connection, name: bytes, *fields: bytes) -> bool:
    """Whether the server grants one request on a session in which nothing was started.

    asyncssh asks for agent forwarding without waiting for the answer, so this asks by itself.
    """
    channel = await _session(connection)
    granted = await channel._make_request(name, *fields)  # noqa: SLF001
    channel.abort()
    return bool(granted)


async def _session(connection: Connection) -> SSHClientChannel[bytes]:
    """A session in which nothing was started yet."""
    while True:
        channel: SSHClientChannel[bytes] = SSHClientChannel(
            connection, asyncio.get_running_loop(), "strict", None, "strict", WINDOW, WINDOW
        )
        try:
            await channel._open(b"session")  # noqa: SLF001
        except asyncssh.ChannelOpenError as error:
            if error.code != asyncssh.OPEN_CONNECT_FAILED:
                raise
        else:
            return channel
        await asyncio.sleep(AGAIN_S)


async def _pty(connection: Connection, sock: str) -> bool:
    sizes = (UInt32(80), UInt32(24), UInt32(0), UInt32(0))
    return await _request(connection, b"pty-req", String("dumb"), *sizes, String(b"\0"))


async def _agent_forwarding(connection: Connection, sock: str) -> bool:
    return await _request(connection, b"auth-agent-req@openssh.com")


async def _x11_forwarding(connection: Connection, sock: str) -> bool:
    only_one = Boolean(True)  # noqa: FBT003 - asyncssh's
    words = (only_one, String("MIT-MAGIC-COOKIE-1"), String("0" * 32), UInt32(0))
    return await _request(connection, b"x11-req", *words)


async def _port_forwarding(connection: Connection, sock: str) -> bool:
    """Of a port at which nobody listens sshd says so, unless the forwarding itself is forbidden."""
    try:
        await connection.open_connection("127.0.0.1", 9, encoding=None)
    except asyncssh.ChannelOpenError as error:
        return error.code != asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED
    return True


async def _socket_forwarding(connection: Connection, sock: str) -> bool:
    try:
        await connection.open_unix_connection(sock, encoding=None)
    except asyncssh.ChannelOpenError:
        return False
    return True


async def _listening(connection: Connection, sock: str) -> bool:
    try:
        listener = await connection.start_server(lambda *_: False, "127.0.0.1", 0)
    except asyncssh.ChannelListenError:
        return False
    listener.close()
    return True


async def _socket_listening(connection: Connection, sock: str) -> bool:
    path = f"/tmp/arc-{os.urandom(8).hex()}"  # noqa: S108 - 64 random bits
    try:
        listener = await connection.start_unix_server(lambda: False, path)
    except asyncssh.ChannelListenError:
        return False
    listener.close()
    return True


PROBES: dict[str, Callable[[Connection, str], Awaitable[bool]]] = {
    "a shell": _a_shell,
    "commands": _a_command,
    "SFTP": _sftp,
    "a pty": _pty,
    "agent forwarding": _agent_forwarding,
    "X11 forwarding": _x11_forwarding,
    "port forwarding": _port_forwarding,
    "socket forwarding": _socket_forwarding,
    "listening on a port": _listening,
    "listening on a socket": _socket_listening,
}
