"""Gives the demo its page: a process beside its hub, on a port that is free."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING

from arc.demo.sshd import HOST

if TYPE_CHECKING:
    from arc.hub import Hub

USUAL = 8420
SPAN = "5m"  # what its times are made for: three hours would be one thin line of it


def free_port() -> int:
    """The page's usual port, or any that is free; another program may still take it first."""
    for wanted in (USUAL, 0):
        with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                door.bind((HOST, wanted))
            except OSError:
                continue
            return int(door.getsockname()[1])
    return USUAL


def address_of(port: int) -> str:
    """What to open, at the span of time that fits."""
    return f"http://{HOST}:{port}/?span={SPAN}"


@asynccontextmanager
async def page_beside(hub: Hub, say: Callable[[str], None], *, wanted: bool) -> AsyncIterator[None]:
    """While this lasts the page is there, if it is wanted; the demo goes on without it, too."""
    if not wanted:
        yield
        return
    from arc.web.child import PageBeside

    page = asyncio.create_task(PageBeside(hub, say).keep(), name="page")
    try:
        yield
    finally:
        page.cancel()
        await asyncio.gather(page, return_exceptions=True)
