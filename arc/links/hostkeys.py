"""Keeps the one host key that is trusted for each node, by the node's name, in our own file."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from pathlib import Path

from agent_node.plain_files import read_plain
from arc.durable import write_durably
from arc.errors import NeedsWord, StateBroken

KINDS = {  # what a pinned key's type lets a node sign with; nothing with SHA-1
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
BYTES_MAX = 1024 * 1024
_HEAD = "# The host keys of this fleet: node name, type, key; arc explain ARC-SSH-HOSTKEY\n"


@dataclass(frozen=True)
class HostKey:
    """A host's public key: its type, and itself in base64."""

    kind: str
    data: str

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        digest = hashlib.sha256(base64.b64decode(self.data)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def text(self) -> str:
        """As it stands in a .pub file, without the comment."""
        return f"{self.kind} {self.data}"

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint}"


def parse_host_key(text: str) -> HostKey:
    """The key in `TYPE BASE64 [comment]`, or ValueError saying what is wrong with it."""
    words = text.split()
    if len(words) < 2 or words[0] not in KINDS:  # noqa: PLR2004 - a type and a key
        raise ValueError(f"should be a type ({', '.join(KINDS)}) and a key")
    try:
        raw = base64.b64decode(words[1], validate=True)
    except binascii.Error as error:
        raise ValueError(f"the key is no base64: {error}") from error
    if not raw.startswith(len(words[0]).to_bytes(4, "big") + words[0].encode()):
        raise ValueError(f"the key is none of type {words[0]}")
    return HostKey(words[0], words[1])


class HostKeys:
    """The file of pinned keys. It is read anew each time, so that a correction counts at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, HostKey]:
        """Every pinned key by node; `StateBroken` names the line that cannot be read."""
        try:
            text = read_plain(self._path, BYTES_MAX).decode("utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise StateBroken(f"{self._path}: cannot be read: {error}") from error
        found: dict[str, HostKey] = {}
        for number, line in enumerate(text.splitlines(), 1):
            name, _, rest = line.partition(" ")
            if not name or name.startswith("#"):
                continue
            try:
                key = parse_host_key(rest)
            except ValueError as error:
                raise StateBroken(f"{self._path}:{number}: {error}") from error
            if name in found:
                raise StateBroken(f"{self._path}:{number}: {name} stands there twice")
            found[name] = key
        return found

    def pinned(self, node: str) -> HostKey | None:
        """The key of this node; None: none is trusted yet."""
        return self.read().get(node)

    def pin(self, node: str, key: HostKey, *, fingerprint: str) -> None:
        """Trust this key from now on, in place of any other, by the fingerprint a person gave.

        The fingerprint has to be this key's: it comes from the machine itself, not from us.
        """
        if fingerprint != key.fingerprint:
            text = f"{node}: {fingerprint} was given, the node offers {key}"
            raise NeedsWord(f"{text}; nothing was trusted", where=node)
        keys = self.read()
        keys[node] = key
        self._write(keys)

    def forget(self, node: str) -> bool:
        """Trust no key of this node any more; whether one was."""
        keys = self.read()
        if keys.pop(node, None) is None:
            return False
        self._write(keys)
        return True

    def _write(self, keys: dict[str, HostKey]) -> None:
        """Whole or not at all, and still there after a power cut."""
        lines = [f"{name} {key.text}\n" for name, key in sorted(keys.items())]
        try:
            write_durably(self._path, "".join([_HEAD, *lines]), point="hostkeys")
        except OSError as error:
            raise StateBroken(f"{self._path}: cannot be written: {error.strerror}") from error


def is_strict(connection: object) -> bool:
    """Whether both sides count every message of the key exchange, so that none can be cut out.

    asyncssh has no public word for it. Were its private one gone, every connection would be
    refused, and the tests with it.
    """
    return getattr(connection, "_strict_kex", False) is True
