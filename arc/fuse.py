"""Tells whoever runs a hub that it has to end, and why: the disk under a file of its own failed."""

from __future__ import annotations

import asyncio

from .errors import MachineFailed


class Fuse:
    """Blown once, and never mended: only another process may go on."""

    def __init__(self) -> None:
        self.because = ""  # "": it is whole
        self._event = asyncio.Event()

    def blow(self, because: str) -> None:
        """From now on this hub ends; the first reason is the one that is told."""
        self.because = self.because or because
        self._event.set()

    def blow_for_queue(self, because: str) -> None:
        """The same, of the hub's own queue, which does not say whose it is."""
        self.blow(f"the hub's own queue: {because}")

    def check(self) -> None:
        """Nothing while it is whole; else `MachineFailed`."""
        if self.because:
            raise MachineFailed(self.because)

    async def blown(self) -> None:
        """Wait until it is, which may be for ever; then `MachineFailed`."""
        await self._event.wait()
        self.check()
