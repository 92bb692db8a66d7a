"""Makes and reads the hub's one key pair, with which it logs in to every node."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import StateBroken

COMMAND = "agent-node serve --stdio"
PRIVATE = "hub_ed25519"


def private_key_path(state: Path) -> Path:
    """Where the hub's private key lies."""
    return state / "keys" / PRIVATE


def public_key_path(state: Path) -> Path:
    """Where its public half lies, for people to copy."""
    return state / "keys" / f"{PRIVATE}.pub"


def make_key_pair(state: Path, *, comment: str) -> str:
    """The public key's line; a pair that is there already is kept, never overwritten.

    The private key is for its owner alone (0600 in a folder of 0700) and has no passphrase: the
    hub starts without a person. What it may do is decided by the forced command on each node.
    """
    path = private_key_path(state)
    if path.exists():
        return read_public_key(state)
    import asyncssh

    key = asyncssh.generate_private_key("ssh-ed25519", comment=comment)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        public = key.export_public_key().decode().strip()
        _write_new(path, key.export_private_key().decode(), 0o600)
        public_key_path(state).write_text(f"{public}\n", encoding="utf-8")
    except OSError as error:
        raise StateBroken(f"{path}: cannot be written: {error.strerror}") from error
    return public


def read_public_key(state: Path) -> str:
    """The line that belongs into a node's authorized_keys, without its options.

    It is made from the private key, so that both are always halves of one pair.
    """
    import asyncssh

    path = private_key_path(state)
    try:
        return asyncssh.read_private_key(path).export_public_key().decode().strip()
    except (OSError, asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        hint = "make one with: arc init"
        raise StateBroken(f"{path}: is no key of ours: {error}", hint=hint) from error


def authorized_line(public: str, *, command: str = COMMAND) -> str:
    """The whole line for a node: with this key one program can be started, and nothing else."""
    quoted = command.replace("\\", "\\\\").replace('"', '\\"')
    return f'restrict,command="{quoted}" {public}'


def _write_new(path: Path, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
