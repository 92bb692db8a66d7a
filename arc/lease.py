"""Lets one hub at a time speak for a state folder, and remembers which hub that is."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from agent_node.clock import Clock
from agent_node.errors import BadInput
from agent_node.plain_files import open_plain, read_plain
from agent_node.requests import Fields
from agent_node.store.generation import machine_id
from agent_node.strict import decode_object
from agent_node.ulid import new_ulid

from .durable import write_durably
from .errors import OtherHub, StateBroken

LOCK, IDENTITY = "lock", "hub.json"
IDENTITY_MAX = 64 * 1024
TERM_MAX = 2**53
INODE_MAX = 2**63 - 1
STOP = ("ask it (arc status), or stop it first: Ctrl-C in its terminal, or where it is a service "
        "systemctl --user stop arc-hub")  # fmt: skip


@dataclass(frozen=True)
class Identity:
    """Who a state folder speaks as: `instance` is this folder on this machine and no other.

    `path` (hashed) and `inode` are where it was found last. A folder that is renamed keeps its
    inode, one that is put back keeps its path; a copy that lies beside it has neither.
    """

    hub: str
    instance: str
    machine: str
    term: int
    path: str = ""
    inode: int = 0

    def is_of(self, machine: str, path: str, inode: int) -> bool:
        """Whether this may be said by the folder that lies there."""
        moved = self.path not in ("", path) and self.inode != inode
        return self.machine == machine and not moved


@dataclass(eq=False)
class Lease:
    """The right to be the hub of this state folder; it ends with `close`, `with` or the process.

    Nodes obey the highest term they have seen, and under one term only the instance that spoke
    first. `copied` is true where the folder came from another machine, or lies beside the one that
    it is a copy of: it speaks as a new instance then, because the other may still speak as the old.
    """

    state: Path
    identity: Identity
    copied: bool
    descriptor: int = -1

    @property
    def term(self) -> int:
        """What every hello says; it only grows."""
        return self.identity.term

    @property
    def instance(self) -> str:
        """A ULID; two hubs never share one."""
        return self.identity.instance

    @classmethod
    def take(
        cls,
        state: Path,
        *,
        hub: str,
        clock: Clock,
        take_over: bool = False,
        machine: str | None = None,
    ) -> Self:
        """The lease of this folder, never waiting; `OtherHub` names the process that holds it.

        `take_over` raises the term by one; what nodes have seen of other hubs is known only after
        they were asked: see `outbid`. `machine` stands in for this machine's own name.
        """
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_ours(state)
        descriptor = _locked(state)
        try:
            here = (machine or machine_id(), *_place(state))
            known = _read(state / IDENTITY)
            copied = known is not None and not known.is_of(*here)
            wanted = _next(known, hub, here, clock, take_over=take_over)
            if wanted != known:
                _write(state, wanted)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(state, wanted, copied, descriptor)

    def outbid(self, seen: int) -> int:
        """The term from here on: above every one that was seen, durable before it is used."""
        if seen >= self.term:
            wanted = replace(self.identity, term=seen + 1)
            _write(self.state, wanted)
            self.identity = wanted
        return self.term

    def close(self) -> None:
        """Let go; closing twice is fine."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            # Let go by word as well: a program that is just being started holds every descriptor
            # for a moment, until its exec has closed those that are not its own.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _next(
    known: Identity | None, hub: str, here: tuple[str, str, int], clock: Clock, *, take_over: bool
) -> Identity:
    machine, path, inode = here
    if known is None or not known.is_of(*here):
        instance = new_ulid(int(clock.now().timestamp() * 1000), os.urandom(10))
        known = Identity(hub, instance, machine, known.term if known else 1)
    return replace(known, hub=hub, term=known.term + 1 if take_over else known.term,
                   path=path, inode=inode)  # fmt: skip


def _place(state: Path) -> tuple[str, int]:
    """Where the folder lies: its path, hashed, for a path need be no text; and its inode."""
    path = sha256(os.fsencode(state.resolve())).hexdigest()[:16]
    return path, state.stat().st_ino & INODE_MAX


def _check_ours(state: Path) -> None:
    """Who may write here could put another key, fence or queue in the place of ours."""
    found = state.stat()
    if found.st_uid not in {os.geteuid(), 0}:
        raise StateBroken(f"{state}: belongs to user {found.st_uid}, who could change all of it")
    if found.st_mode & 0o022:
        text = f"{state}: others may write here (mode {found.st_mode & 0o7777:04o})"
        raise StateBroken(f"{text}; nothing in it can be trusted until you looked",
                          hint=f"chmod 700 {state}")  # fmt: skip


def _locked(state: Path) -> int:
    """The lock file, held. Never inherited by a program that this process starts."""
    try:
        descriptor = open_plain(state / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        text = f"{state / LOCK}: cannot be opened as a plain file: {error.strerror}"
        raise StateBroken(text) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0)
        os.close(descriptor)
        raise _held(state, holder) from error
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        os.close(descriptor)
        raise StateBroken(f"{state / LOCK}: cannot be written: {error.strerror}") from error
    return descriptor


def held_by_another(state: Path) -> OtherHub:
    """What `Lease.take` says where another hub is known to run; nothing is opened to be written."""
    try:
        holder = read_plain(state / LOCK, IDENTITY_MAX)
    except OSError:
        holder = b""
    return _held(state, holder)


def _held(state: Path, holder: bytes) -> OtherHub:
    pid = holder[:32].decode("ascii", "replace").strip()
    known = pid.isdecimal()
    who = f"process {pid}" if known else "another process"
    stop = f"{STOP}; kill {pid} ends it, too" if known else STOP
    return OtherHub(f"{state}: {who} is the hub here", hint=stop)


def _read(path: Path) -> Identity | None:
    """Who this folder spoke as so far; None: it never did."""
    try:
        raw = read_plain(path, IDENTITY_MAX)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateBroken(f"{path}: cannot be read: {error.strerror}") from error
    try:
        said = Fields(decode_object(raw, IDENTITY_MAX))
        return Identity(said.node("hub"), said.ulid("instance"), said.text("machine", 64),
                        said.whole("term", 1, TERM_MAX), said.text_or("path", "", 64),
                        said.maybe_whole("inode", 0, INODE_MAX) or 0)  # fmt: skip
    except BadInput as error:
        raise StateBroken(
            f"{path}: is damaged: {error}",
            hint="remove it, then start with: arc up --take-over; it is a new hub then, and what"
            " waits in its inbox is set apart until a person says: arc doubts settle UID --yes",
        ) from error


def _write(state: Path, identity: Identity) -> None:
    """In one step, and on the disk before anybody hears of it."""
    path = state / IDENTITY
    try:
        write_durably(path, json.dumps(identity.__dict__), point="lease")
    except OSError as error:
        raise StateBroken(
            f"{path}: cannot be written: {error.strerror}; no node was told anything",
            hint="look at this disk (df, dmesg); then start the hub again", where=str(path),
        ) from error
