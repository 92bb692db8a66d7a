"""Says whose program is at the other end of a connection from here, as the kernel knows it."""

from __future__ import annotations

import socket
import struct
import sys
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

PROC = Path("/proc/net")
TABLE_MAX = 4 * 1024 * 1024  # bytes of one table
PORT_MAX = 65_535
PEER = "peer_uid"  # under which a connection of a socket has its user in the state of a request
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
NOBODYS = "0"  # the inode of a socket that no program holds any more; its uid says root
Place = tuple[str, int]  # an address and a port
Address = IPv4Address | IPv6Address


def uid_of(client: Place | None, server: Place) -> int | None:
    """The user whose program asks us at `server` from here; None: the kernel does not say.

    Of who asked and left at once it cannot say it: such a socket is nobody's, and shown as root's.
    """
    wanted = None if client is None else (_near(client), _near(server))
    if wanted is None or None in wanted:
        return None
    for name in ("tcp", "tcp6"):
        try:
            with (PROC / name).open(encoding="ascii") as table:
                lines = table.read(TABLE_MAX).splitlines()[1:]
        except OSError:
            continue
        for cells in map(str.split, lines):
            whole = len(cells) > 9  # noqa: PLR2004 - the columns that are read here
            if whole and (_near_of(cells[1]), _near_of(cells[2])) == wanted:
                return None if cells[9] == NOBODYS else int(cells[7])
    return None


def uid_at(connection: object) -> int | None:
    """The user whose program connected to this socket of the file system; None: it is none, or the
    kernel does not say.
    """
    family = getattr(connection, "family", None)
    if family != socket.AF_UNIX:
        return None
    with suppress(OSError, AttributeError, struct.error):
        said = connection.getsockopt(  # type: ignore[attr-defined]
            socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(said)[1])
    return None


def _near(place: Place) -> tuple[Address, int] | None:
    """An address of loopback and its port, one way of writing it; None: it is none."""
    try:
        address = _plain(ip_address(place[0]))
    except ValueError:
        return None
    known = address.is_loopback and 0 < place[1] <= PORT_MAX
    return (address, place[1]) if known else None


def _near_of(cell: str) -> tuple[Address, int] | None:
    """The same, of a cell of the table: hex, in words of four bytes as this machine has them."""
    words, _, port = cell.partition(":")
    raw = bytes.fromhex(words)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return _near((str(ip_address(raw)), int(port, 16)))


def _plain(address: Address) -> Address:
    """An IPv4 address that is written as one of IPv6 is that IPv4 address."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
