"""Says whose program is at the other end of a connection over loopback, as the kernel knows it."""

from __future__ import annotations

from pathlib import Path

PROC = Path("/proc/net")
TABLE_MAX = 4 * 1024 * 1024  # bytes of one table
PORT_MAX = 65_535


def uid_of(client: tuple[str, int] | None, port: int) -> int | None:
    """The user whose program asks our `port` from here; None: the kernel does not say."""
    if client is None or not 0 < client[1] <= PORT_MAX:
        return None
    theirs, ours = f":{client[1]:04X}", f":{port:04X}"
    for name in ("tcp", "tcp6"):
        try:
            with (PROC / name).open(encoding="ascii") as table:
                lines = table.read(TABLE_MAX).splitlines()[1:]
        except OSError:
            continue
        found = [cells for cells in map(str.split, lines)
                 if len(cells) > 7 and _is_near(cells[1]) and _is_near(cells[2])  # noqa: PLR2004
                 and cells[1].endswith(theirs) and cells[2].endswith(ours)]  # fmt: skip
        if found:
            return int(found[0][7])
    return None


def _is_near(place: str) -> bool:
    """Whether an address of the table is loopback: 127.0.0.0/8, the same mapped, or ::1."""
    address = place.partition(":")[0]
    return (address.endswith("7F") and len(address) == 8) or (  # noqa: PLR2004 - an IPv4 address
        address == "00000000000000000000000001000000"
        or (address.startswith("0000000000000000FFFF0000") and address.endswith("7F")))  # fmt: skip
