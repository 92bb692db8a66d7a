"""Logs in as the operator, once, with a key of the operator's own; never with a password.

No other module may use an agent or a person's keys. What was confirmed about the host is all that
is trusted: the connection ends at any other host key.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import asyncssh

from arc.errors import LoginRefused, NodeUnreachable, WrongUse
from arc.links.hostkeys import HostKey, is_strict
from arc.links.ssh import CONNECT_S, Login, Witness, connect, hubs_login, let_go, where
from arc.links.translating import Failure, explain, not_strict
from arc.settings import FleetSettings, NodeEntry

from .asking import There
from .sending import SHELL_LINE

SIGNATURES = (
    "ssh-ed25519", "sk-ssh-ed25519@openssh.com", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521", "sk-ecdsa-sha2-nistp256@openssh.com", "rsa-sha2-512", "rsa-sha2-256",
)  # fmt: skip
USUAL_KEYS = ("id_ed25519", "id_ed25519_sk", "id_ecdsa", "id_ecdsa_sk", "id_rsa")
LOGIN_S = 60.0  # a security key waits for a touch


class OwnLogin:
    """One connection as the operator; close it, or use it with `async with`."""

    def __init__(self, node: str, connection: asyncssh.SSHClientConnection, key: str) -> None:
        self._node, self._connection = node, connection
        self.by = key
        """Which keys were offered, in words."""

    async def begin(self) -> There:
        """The program at the other end, started and speaking."""
        try:
            async with asyncio.timeout(CONNECT_S):
                process = await self._connection.create_process(
                    SHELL_LINE, encoding=None, request_pty=False, env={}, send_env=[]
                )
        except (OSError, asyncssh.Error) as error:
            text = f"took your login and started nothing: {type(error).__name__} {error}"
            raise NodeUnreachable(self._node, text.strip()) from error
        there = There(self._node, _Heard(process.stdout), process.stdin, _Heard(process.stderr))
        await there.begin()
        return there

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await let_go(self._connection)


class _Heard:
    """What a process writes; a connection that was lost is told as a socket tells it."""

    def __init__(self, source: asyncssh.SSHReader[bytes]) -> None:
        self._source = source

    async def read(self, n: int = -1, /) -> bytes:
        """Up to so many bytes; none: it has ended."""
        try:
            return await self._source.read(n)
        except asyncssh.Error as error:
            raise ConnectionResetError(str(error)) from error


async def shown_key(node: NodeEntry, settings: FleetSettings) -> HostKey:
    """The host key that the machine shows now. No name, no login and no byte of ours follows it."""
    witness, nobody = Witness(), Login(node.user or "", keys=None)
    try:
        await let_go(await _connect(node, settings, None, witness, nobody))
    except (OSError, asyncssh.Error) as error:
        if witness.offered is None:
            raise explain(node.name, _failure(node, error, witness, None)) from error
    if witness.offered is None:
        raise NodeUnreachable(node.name, "showed no host key of a type that we take")
    return witness.offered


async def own_login(
    node: NodeEntry, settings: FleetSettings, key: HostKey, *, identity: Path | None,
    environ: Mapping[str, str],
) -> OwnLogin:  # fmt: skip
    """Logged in as the operator: by `identity`, else by the agent and the usual keys at home."""
    keys = _own_keys(identity, environ)
    tried = str(identity) if identity else _tried(environ)
    login = Login(
        node.user or "", keys, agent=None if identity else environ.get("SSH_AUTH_SOCK"),
        signatures=SIGNATURES, limit_s=LOGIN_S,
    )  # fmt: skip
    witness = Witness()
    try:
        connection = await _connect(node, settings, key, witness, login)
    except asyncssh.PermissionDenied as error:
        text = f"{where(node)} did not take your own key (tried: {tried})"
        named = f"-i {identity} " if identity else ""
        by_hand = f"ssh {named}-p {node.port} {node.user}@{node.host}"
        or_else = "is its .pub in authorized_keys there?" if identity else (
            "if not: ssh-add, or name a key with --identity")
        hint = f"does this work: {by_hand}? {or_else}"
        raise LoginRefused(node.name, text, hint=hint) from error
    except (OSError, asyncssh.Error) as error:
        raise explain(node.name, _failure(node, error, witness, key)) from error
    return OwnLogin(node.name, connection, tried)


async def hub_login(
    node: NodeEntry, settings: FleetSettings, key: HostKey
) -> asyncssh.SSHClientConnection:
    """Logged in with the hub's own key alone, as the hub will be."""
    witness = Witness()
    try:
        return await _connect(node, settings, key, witness, hubs_login(node, settings))
    except (OSError, asyncssh.Error) as error:
        raise explain(node.name, _failure(node, error, witness, key)) from error
    except ValueError as error:  # our own key's file
        raise NodeUnreachable(node.name, f"{error}; nothing was sent") from error


async def _connect(
    node: NodeEntry, settings: FleetSettings, trusted: HostKey | None, witness: Witness,
    login: Login,
) -> asyncssh.SSHClientConnection:  # fmt: skip
    """By the same profile as the hub's own links."""
    connection = await connect(node, settings, trusted, witness, login)
    if not is_strict(connection):
        connection.abort()
        raise not_strict(node.name, where(node))
    return connection


def _own_keys(identity: Path | None, environ: Mapping[str, str]) -> list[asyncssh.SSHKey]:
    """The keys in files; those with a passphrase are for the agent to hold."""
    if identity is not None:
        return [_read_identity(identity)]
    found: list[asyncssh.SSHKey] = []
    for name in USUAL_KEYS:
        try:
            found.append(asyncssh.read_private_key(_at_home(environ) / name))
        except (OSError, asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
            continue  # not there, or locked: the agent may have it
    return found


def _read_identity(identity: Path) -> asyncssh.SSHKey:
    try:
        return asyncssh.read_private_key(identity)
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as error:
        hint = f"has it a passphrase? ssh-add {identity}, and leave --identity out"
        raise WrongUse(f"--identity {identity}: cannot be used: {error}", hint=hint) from error
    except OSError as error:
        raise WrongUse(f"--identity {identity}: {error.strerror}") from error


def own_public_key(identity: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The operator's public key in a file: beside `identity`, else the usual one; None: none."""
    files = [identity] if identity else [_at_home(environ) / name for name in USUAL_KEYS]
    return next((path for one in files if (path := one.with_name(f"{one.name}.pub")).is_file()),
                None)  # fmt: skip


def _at_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~")) / ".ssh"


def _tried(environ: Mapping[str, str]) -> str:
    agent = "your ssh agent" if environ.get("SSH_AUTH_SOCK") else "no ssh agent"
    names = [name for name in USUAL_KEYS if (_at_home(environ) / name).is_file()]
    return f"{agent}, {' '.join(names) or 'no key'} in ~/.ssh"


def _failure(
    node: NodeEntry, error: Exception, witness: Witness, pinned: HostKey | None
) -> Failure:
    return Failure(where(node), witness.stage, type(error).__name__, str(error), CONNECT_S,
                   pinned, witness.offered)  # fmt: skip
