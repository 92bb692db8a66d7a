"""Tells where pages of this fleet listen: for as long as each of them does, and no longer."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent_node.errors import BadInput
from agent_node.plain_files import open_plain
from agent_node.requests import Fields
from agent_node.strict import decode_object

NAME = "page-"  # and the pid; in the hub's own folder, where nobody else may write
RECORD_MAX = 16 * 1024
RECORDS_MAX = 100
TEXT_MAX = 4096  # as long as the kernel takes a path
PORT_MAX = 65_535


@dataclass(frozen=True)
class Presence:
    """A page that listens: at an address of this machine as the kernel writes it, and a port; or
    at a socket, whose path stands for the address and 0 for the port.
    """

    host: str
    port: int
    address: str  # what a person types to see it

    def serves(self, host: str, port: int) -> bool:
        """Whether it answers everybody who asks there."""
        return self.port == port and _covers(self.host, host)

    def is_in_the_way(self, host: str, port: int) -> bool:
        """Whether nobody else can listen there for its sake."""
        return self.port == port and (_covers(self.host, host) or _covers(host, self.host))


def _covers(wide: str, host: str) -> bool:
    return wide in (host, "::") or (wide == "0.0.0.0" and ":" not in host)  # noqa: S104


@contextmanager
def present(state: Path, page: Presence) -> Iterator[None]:
    """While this lasts, `pages_of` finds the page. A folder that cannot be written is no reason to
    have none.
    """
    descriptor = -1
    with suppress(OSError):
        _sweep(state)
        descriptor = _write(state, page)
    try:
        yield
    finally:
        if descriptor >= 0:
            with suppress(OSError):
                _file(state).unlink()
            # By word as well: a program that is just being started may hold the lock for a moment.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def pages_of(state: Path) -> tuple[Presence, ...]:
    """Every page of this fleet that listens now. What a dead one left behind is none."""
    found = []
    for path in sorted(state.glob(f"{NAME}*"))[:RECORDS_MAX]:
        with suppress(OSError, BadInput):
            descriptor = open_plain(path, os.O_RDONLY)
            try:
                if _is_held(descriptor):
                    found.append(_read(os.pread(descriptor, RECORD_MAX, 0)))
            finally:
                os.close(descriptor)
    return tuple(found)


def _file(state: Path) -> Path:
    return state / f"{NAME}{os.getpid()}"


def _write(state: Path, page: Presence) -> int:
    """The record, held before it has its name: what is found there without a holder is dead."""
    draft = state / f".{NAME}{os.getpid()}"
    draft.unlink(missing_ok=True)  # of a process that died here and had our number
    descriptor = open_plain(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        said = {"host": page.host, "port": page.port, "address": page.address}
        os.write(descriptor, json.dumps(said).encode("ascii"))
        os.rename(draft, _file(state))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _sweep(state: Path) -> None:
    """Take away what pages left that were killed."""
    for path in sorted(state.glob(f"{NAME}*"))[:RECORDS_MAX]:
        with suppress(OSError):
            descriptor = open_plain(path, os.O_RDONLY)
            try:
                if not _is_held(descriptor):
                    path.unlink()
            finally:
                os.close(descriptor)


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read(raw: bytes) -> Presence:
    said = Fields(decode_object(raw, RECORD_MAX))
    return Presence(said.text("host", TEXT_MAX), said.whole("port", 0, PORT_MAX),
                    said.text("address", TEXT_MAX))  # fmt: skip
