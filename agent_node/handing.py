"""Hands open descriptors from one process to another, never inheritable, never by accident."""

from __future__ import annotations

import array
import socket
from collections.abc import Sequence

# The standard library's send_fds and recv_fds drop their flags, and what they receive would be
# inherited by every program that is started afterwards: locks must not be.


def hand_over(to: socket.socket, message: bytes, descriptors: Sequence[int]) -> None:
    """Send without ever waiting; `BlockingIOError` when the other side takes nothing now."""
    rights = array.array("i", descriptors)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
    to.sendmsg([message], ancillary, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def take_over(
    source: socket.socket, size: int, count: int, *, wait: bool
) -> tuple[bytes, list[int]]:
    """One message with its descriptors; empty when the other side is gone."""
    flags = socket.MSG_CMSG_CLOEXEC | (0 if wait else socket.MSG_DONTWAIT)
    room = socket.CMSG_LEN(count * array.array("i").itemsize)
    message, ancillary, _, _ = source.recvmsg(size, room, flags)
    rights = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            rights.frombytes(content[: len(content) - len(content) % rights.itemsize])
    return message, list(rights)
