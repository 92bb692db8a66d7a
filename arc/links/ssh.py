"""Reaches a node over SSH: one connection, kept, and on it one session of agent-node."""

from __future__ import annotations

import asyncio
import getpass
import socket
from asyncio.trsock import TransportSocket
from contextlib import suppress
from dataclasses import dataclass

import asyncssh

from arc.errors import NodeUnreachable, StateBroken
from arc.keys import COMMAND, read_private_key
from arc.settings import FleetSettings, NodeEntry

from .hostkeys import KINDS, HostKey, HostKeys, is_strict, parse_host_key
from .lifetime import Lifetime
from .metering import Meter
from .talk import Talk
from .translating import BANNER, KEYS, LOGIN, STAGES, START, TCP, Failure, explain, lost, not_strict

CONNECT_S = 10.0  # for all of it: the name, TCP, the keys, the login
CHANNEL_S = 10.0  # for the session and the start of its program
CLOSE_S = 2.0
ALIVE_EVERY_S, ALIVE_MISSES = 4.0, 2  # a frozen machine is noticed 12 s after its last byte
KEX = ("mlkem768x25519-sha256", "curve25519-sha256", "curve25519-sha256@libssh.org")
CIPHERS = ("aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com")
MACS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com")  # unused beside AEAD


class SshWay:
    """The way to one node. Its host key is pinned in our own file, and nothing is assumed."""

    def __init__(self, node: NodeEntry, settings: FleetSettings) -> None:
        self._node, self._settings = node, settings
        self._keys = HostKeys(settings.state / "known_hosts")
        self._connection: asyncssh.SSHClientConnection | None = None
        self._lifetime: Lifetime | None = None
        self._retired: list[Lifetime] = []
        self._witness = Witness()

    @property
    def stage(self) -> str:
        """How far the connection has come, in words."""
        return STAGES[self._witness.stage].format(where=where(self._node))

    async def open(self, talk: Talk) -> None:
        """A session of the forced command; the connection is made where there is none.

        A connection that has served before and takes no session now is not the last word: with
        MaxSessions 1 its sshd may still be busy with the end of the session before.
        """
        connection, lifetime = self._connection, self._lifetime
        if connection is not None and lifetime is not None and lifetime.takes_more:
            with suppress(OSError, asyncssh.Error):
                await _begin(connection, lifetime, talk)
                return
            if talk.over is not None:
                raise NodeUnreachable(self._node.name, f"{talk.over}; nothing was asked")
        connection = await self._connect()
        self._retired = [one for one in (*self._retired, lifetime) if one and not one.is_over]
        lifetime = self._lifetime = Lifetime(connection, self._witness.meter)
        try:
            await _begin(connection, lifetime, talk)
        except (OSError, asyncssh.Error) as error:
            raise explain(self._node.name, self._failure(error, CHANNEL_S, None)) from error

    async def close(self) -> None:
        """End the connection; whatever does not end within two seconds is cut."""
        connection, self._connection = self._connection, None
        for lifetime in self._retired:
            lifetime.cut("the hub closed the link")
        if self._lifetime is not None:
            self._lifetime.forget()
        if connection is not None:
            await let_go(connection)

    async def _connect(self) -> asyncssh.SSHClientConnection:
        try:
            pinned = self._keys.pinned(self._node.name)
        except StateBroken as error:
            raise NodeUnreachable(self._node.name, f"{error}; nothing was sent") from error
        self._witness = Witness(Meter())
        try:
            login = hubs_login(self._node, self._settings)
            self._connection = await connect(self._node, self._settings, pinned, self._witness,
                                             login)  # fmt: skip
        except (OSError, asyncssh.Error) as error:
            failure = self._failure(error, CONNECT_S, pinned)
            if failure.may_be_about_keys:
                self._witness.offered = await offered_key(self._node, self._settings)
                failure = self._failure(error, CONNECT_S, pinned)
            raise explain(self._node.name, failure) from error
        except ValueError as error:  # our own key, the host's name, or ssh_config
            raise NodeUnreachable(self._node.name, f"{error}; nothing was sent") from error
        if not is_strict(self._connection):
            self._connection.abort()
            raise not_strict(self._node.name, where(self._node))
        return self._connection

    def _failure(self, error: Exception, limit_s: float, pinned: HostKey | None) -> Failure:
        return Failure(
            where=where(self._node), stage=self._witness.stage, kind=type(error).__name__,
            reason=str(error), seconds=limit_s, pinned=pinned, offered=self._witness.offered,
        )  # fmt: skip


async def _begin(
    connection: asyncssh.SSHClientConnection, lifetime: Lifetime, talk: Talk
) -> None:
    """One session on this connection; one that cannot be had ends the connection."""
    lifetime.began(talk)
    try:
        async with asyncio.timeout(CHANNEL_S):
            await connection.create_session(
                lambda: _Session(talk, lifetime), COMMAND,
                env={}, send_env=[], request_pty=False, x11_forwarding=False, encoding=None,
            )  # fmt: skip
    except (OSError, asyncssh.Error):
        connection.abort()
        lifetime.forget()
        raise


def where(node: NodeEntry) -> str:
    """The address as people write it."""
    user = f"{node.user}@" if node.user else ""
    return f"{user}{node.host}:{node.port}"


async def offered_key(node: NodeEntry, settings: FleetSettings) -> HostKey | None:
    """The host key that the node shows now; None: it shows none of a type that we take.

    The handshake ends at the key: no name, no login and no byte of ours follows.
    """
    witness = Witness()
    try:
        connection = await connect(node, settings, None, witness, hubs_login(node, settings))
    except (OSError, asyncssh.Error):
        return witness.offered  # refused by us, as meant; without a key the first error stands
    await let_go(connection)
    return witness.offered


@dataclass(frozen=True)
class Login:
    """Who logs in, with which keys. All else about a connection is the same for everybody."""

    user: str | tuple[()]  # (): as ssh_config says
    keys: list[asyncssh.SSHKey] | None
    agent: str | None = None  # the socket of one that may be asked; None: none is
    signatures: tuple[str, ...] = ("ssh-ed25519",)
    limit_s: float = CONNECT_S
    alive_every_s: float = 0.0  # 0: nothing is asked while nothing is said


def hubs_login(node: NodeEntry, settings: FleetSettings) -> Login:
    """As the hub, with its own key alone."""
    user = node.user or (getpass.getuser() if settings.ssh_config is None else ())
    keys = [read_private_key(settings.state)]
    return Login(user, keys, limit_s=CONNECT_S, alive_every_s=ALIVE_EVERY_S)


async def connect(
    node: NodeEntry, settings: FleetSettings, pinned: HostKey | None, witness: Witness,
    login: Login,
) -> asyncssh.SSHClientConnection:  # fmt: skip
    """The only place where anything of ours connects over SSH. All is said, nothing inherited.

    No ~/.ssh/config, forwarding, password or environment, and no agent that `login` does not name;
    without a pinned key no host is trusted, and the connection ends at the host's key.
    """
    trusted = [] if pinned is None else [asyncssh.import_public_key(pinned.text)]
    kinds = KINDS.values() if pinned is None else [KINDS[pinned.kind]]
    own_config = settings.ssh_config
    return await asyncssh.connect(
        node.host or "", node.port,
        config=None if own_config is None else [str(own_config)],
        client_factory=lambda: witness,
        username=login.user, client_keys=login.keys, client_certs=[], passphrase=None,
        known_hosts=(trusted, [], []), host_key_alias=node.name,
        server_host_key_algs=[name for names in kinds for name in names],
        x509_trusted_certs=None, agent_path=login.agent, agent_identities=None,
        agent_forwarding=False, pkcs11_provider=None,
        password=None, preferred_auth=["publickey"], public_key_auth=True,
        password_auth=False, kbdint_auth=False, host_based_auth=False, disable_trivial_auth=True,
        gss_host=None, gss_kex=False, gss_auth=False, gss_delegate_creds=False,
        kex_algs=list(KEX), encryption_algs=list(CIPHERS), mac_algs=list(MACS),
        compression_algs=["none"], signature_algs=list(login.signatures),
        connect_timeout=CONNECT_S, login_timeout=login.limit_s, tcp_keepalive=True,
        keepalive_interval=login.alive_every_s, keepalive_count_max=ALIVE_MISSES,
        env={}, send_env=[], request_pty=False, x11_forwarding=False, encoding=None,
    )  # fmt: skip


async def let_go(connection: asyncssh.SSHClientConnection) -> None:
    """End a connection; whatever does not end within two seconds is cut."""
    connection.close()
    try:
        async with asyncio.timeout(CLOSE_S):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()


class Witness(asyncssh.SSHClient):
    """Watches one connection come up, so that an error can say how far it came, and what comes."""

    def __init__(self, meter: Meter | None = None) -> None:
        self.meter = meter
        self.offered: HostKey | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._logged_in = False

    @property
    def stage(self) -> str:
        """One of the words that translating.py knows."""
        if self._connection is None:
            return TCP
        if self._logged_in:
            return START
        if self._connection.get_extra_info("server_version") is None:
            return BANNER
        return LOGIN if self._connection.get_server_host_key() else KEYS

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """What the transport brings is counted: asyncssh has no word for what it throws away."""
        self._connection, meter = conn, self.meter
        if meter is not None:
            meter.cut = lambda why: conn.abort()
            conn.data_received = meter.metered(conn.data_received)  # type: ignore[method-assign]

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Asked for a key that is not the pinned one: never trusted, only looked at."""
        self.offered = parse_host_key(key.export_public_key().decode())
        return False

    def auth_completed(self) -> None:
        self._logged_in = True


class _Session(asyncssh.SSHClientSession[bytes]):
    """Carries bytes between one channel and the talk; it never raises."""

    def __init__(self, talk: Talk, lifetime: Lifetime) -> None:
        self._talk, self._lifetime = talk, lifetime
        self._status: int | None = None
        self._how = "agent-node left"

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._talk.connect(_Channel(chan, self._lifetime))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._lifetime.meter.told(len(data))
        is_stderr = datatype == asyncssh.EXTENDED_DATA_STDERR
        (self._talk.complained if is_stderr else self._talk.received)(data)
        if self._talk.lied:  # what it goes on to send would be read all the same
            self._lifetime.cut(self._talk.over or "")

    def exit_status_received(self, status: int) -> None:
        self._status, self._how = status, f"agent-node left (exit {status})"

    def exit_signal_received(
        self, signal: str, core_dumped: bool, msg: str, lang: str  # noqa: FBT001 - asyncssh's
    ) -> None:  # fmt: skip
        self._how = f"agent-node was ended by signal {signal[:16]}"

    def connection_lost(self, exc: Exception | None) -> None:
        how = self._how if exc is None else lost(str(exc))
        self._talk.ended(how, exit_status=self._status)
        self._lifetime.ended(self._talk)


class _Channel:
    """A talk's way out. asyncssh keeps what the node does not read; the talk watches how much."""

    def __init__(self, channel: asyncssh.SSHClientChannel[bytes], lifetime: Lifetime) -> None:
        self._channel, self._lifetime = channel, lifetime
        self._socket: TransportSocket | None = channel.get_extra_info("socket")

    def send(self, line: bytes) -> None:
        """As one segment: asyncssh writes an empty packet before each, in a call of its own."""
        if self._socket is None:  # by way of a program or another host
            self._channel.write(line)
            return
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        self._channel.write(line)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

    def unsent(self) -> int:
        return self._channel.get_write_buffer_size()

    def close(self) -> None:
        if not self._channel.is_closing():
            self._lifetime.meter.leave()
        self._channel.close()
