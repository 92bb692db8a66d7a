"""Knows what fleet.yaml says now; a file that cannot be obeyed leaves what it said before."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from arc.apart import apart
from arc.errors import ArcError
from arc.settings import FleetSettings

log = logging.getLogger("arc.web")


class FleetFile:
    """One fleet.yaml, read again when it changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._settings: FleetSettings | None = None
        self._turn = asyncio.Lock()

    async def now(self) -> FleetSettings:
        """The settings. What was wrong from the beginning is raised each time."""
        async with self._turn:
            stamp = _stamp_of(self._path)
            if stamp != self._stamp:
                await self._follow(stamp)
            assert self._settings is not None, "read, or raised"
            return self._settings

    async def _follow(self, stamp: tuple[int, int, int]) -> None:
        from arc.config import read_fleet

        try:
            self._settings = await apart(lambda: read_fleet(self._path), name="fleet file",
                                         may_raise=(ArcError, OSError))  # fmt: skip
        except (ArcError, OSError) as error:
            if self._settings is None:
                raise
            log.warning("settings_refused", extra={"because": str(error).partition("\n")[0]})
        self._stamp = stamp


def _stamp_of(path: Path) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)
