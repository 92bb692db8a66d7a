"""Makes and reads the hub's one key pair, with which it logs in to every node."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from agent_node.plain_files import read_plain

from .durable import write_durably
from .errors import StateBroken

if TYPE_CHECKING:
    import asyncssh

COMMAND = "agent-node serve --stdio"
PRIVATE = "hub_ed25519"
NO_KEY = "the hub's own key cannot be read"
KEY_MAX = 64 * 1024  # bytes; a person may keep the key elsewhere and put a link here


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
    try:
        if not path.exists():
            import asyncssh

            key = asyncssh.generate_private_key("ssh-ed25519", comment=comment)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(path, key.export_private_key().decode(), point="key", new=True)
        public = read_public_key(state)
        if not public_key_path(state).exists():
            write_durably(public_key_path(state), f"{public}\n", point="public_key")
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
        raw = read_plain(path, KEY_MAX, linked=True)
        return asyncssh.import_private_key(raw).export_public_key().decode().strip()
    except (OSError, asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        hint = "make one with: arc init"
        raise StateBroken(f"{path}: is no key of ours: {error}", hint=hint) from error


def authorized_line(public: str, *, command: str = COMMAND) -> str:
    """The whole line for a node: with this key one program can be started, and nothing else."""
    quoted = command.replace("\\", "\\\\").replace('"', '\\"')
    return f'restrict,command="{quoted}" {public}'


def read_private_key(state: Path) -> asyncssh.SSHKey:
    """The hub's own key; `ValueError` says what is the matter with its file, and what to do."""
    import asyncssh

    path = private_key_path(state)
    try:
        found = path.stat()
        if found.st_mode & 0o077:
            raise ValueError(f"{path}: others may read the hub's key; chmod 600 {path}")
        return _parsed(str(path), found.st_mtime_ns)
    except (OSError, asyncssh.KeyImportError) as error:
        raise ValueError(f"{NO_KEY}: {path}: {error}; make one with: arc init") from error


@functools.lru_cache(maxsize=4)
def _parsed(path: str, changed_ns: int) -> asyncssh.SSHKey:
    """Read once for all nodes; a changed file is read again."""
    import asyncssh

    return asyncssh.import_private_key(read_plain(Path(path), KEY_MAX, linked=True))
