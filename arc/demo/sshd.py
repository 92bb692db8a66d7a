"""Serves one node's home over real SSH inside this process: no sshd, no root, loopback alone."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import asyncssh

from arc.links.doorstep import NOT_FOUND
from arc.links.hostkeys import HostKey, parse_host_key
from arc.links.pipes import ARGV, LEAVE_S, environment

HOST = "127.0.0.1"
CLOSE_S = 5.0


class DemoSshd:
    """One listening server for one node; every session starts the one command, whatever is asked.

    Only the given public key logs in. No shell, no SFTP, no terminal, no forwarding of any kind.
    """

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        self.argv, self.environ = tuple(argv), dict(environ)
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._sessions: set[asyncio.Task[None]] = set()
        self.host_key = HostKey("", "")
        self.port = 0

    @classmethod
    async def serve(
        cls,
        home: Path,
        *,
        authorized: str,
        host_key_type: str = "ssh-ed25519",
        host_key: asyncssh.SSHKey | None = None,
        argv: Sequence[str] = ARGV,
        environ: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> DemoSshd:
        """Listen for the owner of `authorized` (a public key's line); port 0: any free one.

        Without a host key a fresh one is made: pin `host_key` of what is returned.
        """
        server = cls(argv, environment(home, os.environ if environ is None else environ))
        key = host_key or asyncssh.generate_private_key(host_key_type)
        server.host_key = parse_host_key(key.export_public_key().decode())
        server._acceptor = await asyncssh.listen(
            HOST, port, config=None, server_host_keys=[key],
            server_factory=lambda: _Server(server),
            authorized_client_keys=asyncssh.import_authorized_keys(f"restrict {authorized}\n"),
            public_key_auth=True, password_auth=False, kbdint_auth=False, host_based_auth=False,
            gss_host=None, allow_pty=False, agent_forwarding=False, x11_forwarding=False,
            allow_scp=False, encoding=None, login_timeout=10, keepalive_interval=0,
            compression_algs=["none"],
        )  # fmt: skip
        server.port = server._acceptor.get_port()
        return server

    async def close(self) -> None:
        """Listen no more, end every connection and every child; a few seconds at most."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        await self.drop_connections()
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=CLOSE_S)

    async def drop_connections(self) -> None:
        """Cut every connection, as a network that fails would; new ones are welcome."""
        for connection in list(self._connections):
            connection.abort()
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await connection.wait_closed()

    def start(self, session: Coroutine[None, None, None]) -> None:
        """Run a session's child until it has left."""
        task = asyncio.get_running_loop().create_task(session)
        self._sessions.add(task)
        task.add_done_callback(self._sessions.discard)

    def joined(self, connection: asyncssh.SSHServerConnection) -> None:
        """A client has connected."""
        self._connections.add(connection)

    def left(self, connection: asyncssh.SSHServerConnection) -> None:
        """And is gone."""
        self._connections.discard(connection)


class _Server(asyncssh.SSHServer):
    """One connection."""

    def __init__(self, demo: DemoSshd) -> None:
        self._demo = demo
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._demo.joined(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._demo.left(self._connection)

    def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        return _Session(self._demo)


class _Session(asyncssh.SSHServerSession[bytes]):
    """The SSH side of one session; it starts the child and gives it what comes."""

    def __init__(self, demo: DemoSshd) -> None:
        self._demo = demo
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._child: _Child | None = None
        self._early = bytearray()  # what came before the child was there
        self._over = False

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        """The command is the same whatever was asked for, as with `command=` in sshd."""
        return True

    def session_started(self) -> None:
        self._demo.start(self._start())

    async def _start(self) -> None:
        assert self._channel is not None, "a session starts on a channel"
        child = _Child(self._channel)
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: child, *self._demo.argv, env=self._demo.environ
            )
        except OSError as error:
            self._channel.write_stderr(f"{self._demo.argv[0]}: {error.strerror}\n".encode())
            self._channel.exit(NOT_FOUND)
            return
        self._child = child
        child.take(bytes(self._early))
        if self._over:
            child.hang_up()
        await child.left.wait()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self._child is None:
            self._early += data
        else:
            self._child.take(data)

    def eof_received(self) -> bool:
        self._hang_up()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._hang_up()

    def pause_writing(self) -> None:
        if self._child is not None:
            self._child.hold_back()

    def resume_writing(self) -> None:
        if self._child is not None:
            self._child.go_on()

    def _hang_up(self) -> None:
        self._over = True
        if self._child is not None:
            self._child.hang_up()


class _Child(asyncio.SubprocessProtocol):
    """The child's side of one session; whoever writes faster than the other reads has to wait."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = channel
        self._process: asyncio.SubprocessTransport | None = None
        self.left = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._process = transport

    def take(self, data: bytes) -> None:
        """Give it to the child's stdin; who reads no more gets no more."""
        stdin = self._pipe(0)
        if isinstance(stdin, asyncio.WriteTransport) and not stdin.is_closing():
            stdin.write(data)

    def hang_up(self) -> None:
        """Nothing more will come; a child that stays nevertheless is killed."""
        stdin = self._pipe(0)
        if stdin is not None and not stdin.is_closing():
            stdin.close()
        asyncio.get_running_loop().call_later(LEAVE_S, self.kill)

    def hold_back(self) -> None:
        """Read nothing from the child until the client has read."""
        for pipe in (self._pipe(1), self._pipe(2)):
            if isinstance(pipe, asyncio.ReadTransport) and not pipe.is_closing():
                pipe.pause_reading()

    def go_on(self) -> None:
        """The client reads again."""
        for pipe in (self._pipe(1), self._pipe(2)):
            if isinstance(pipe, asyncio.ReadTransport) and not pipe.is_closing():
                pipe.resume_reading()

    def kill(self) -> None:
        """End it if it is still there."""
        if self._process is not None and not self.left.is_set():
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.close()

    def pause_writing(self) -> None:
        self._channel.pause_reading()

    def resume_writing(self) -> None:
        self._channel.resume_reading()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self._channel.is_closing():
            return
        if fd == 1:
            self._channel.write(data)
        else:
            self._channel.write_stderr(data)

    def connection_lost(self, exc: Exception | None) -> None:
        status = self._process.get_returncode() if self._process else None
        self.left.set()
        if self._process is not None:
            self._process.close()
        if self._channel.is_closing():
            return
        if status is not None and status < 0:
            self._channel.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            self._channel.exit(status or 0)

    def _pipe(self, fd: int) -> asyncio.BaseTransport | None:
        return self._process.get_pipe_transport(fd) if self._process else None
