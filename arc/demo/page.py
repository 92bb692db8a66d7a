"""Gives the demo its page: a process beside its hub, at a port that nobody else takes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from arc.demo.result import DemoFailed
from arc.demo.sshd import HOST

if TYPE_CHECKING:
    from arc.hub import Hub

USUAL = 8420
WAITING = 100  # who asks before the page is up is answered then
SPAN = "5m"  # what its times are made for: three hours would be one thin line of it


def open_door() -> socket.socket:
    """Listens at the page's usual port, or at any that is free. Whoever comes later, while nodes
    start or a page that ended is started again, cannot take it; `DemoFailed` where none is free.
    """
    why = ""
    for wanted in (USUAL, 0):
        door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((HOST, wanted))
            door.listen(WAITING)
        except OSError as error:
            door.close()
            why = str(error.strerror)
        else:
            return door
    raise DemoFailed(f"no port of {HOST} is free for the page: {why}")


def port_of(door: socket.socket) -> int:
    """Where it listens."""
    return int(door.getsockname()[1])


def address_of(port: int) -> str:
    """What to open, at the span of time that fits."""
    return f"http://{HOST}:{port}/?span={SPAN}"


@asynccontextmanager
async def page_beside(
    hub: Hub, say: Callable[[str], None], door: socket.socket | None
) -> AsyncIterator[None]:
    """While this lasts the page is behind this door, if there is one; the demo goes on without it,
    too.
    """
    if door is None:
        yield
        return
    from arc.web.child import PageBeside

    page = asyncio.create_task(PageBeside(hub, say, door=door).keep(), name="page")
    try:
        yield
    finally:
        page.cancel()
        await asyncio.gather(page, return_exceptions=True)
