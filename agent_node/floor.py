"""Keeps a node from claiming while its disk has less room than it needs: `disk_floor`, mostly."""

from __future__ import annotations

from collections.abc import Callable

from .config import NodeSettings
from .desk import free_bytes
from .home import Home
from .log import log
from .looks import total_bytes
from .store.live import Live
from .text import size

AGAIN_S = 5.0  # while a full disk keeps work waiting


class Floor:
    """Whether there is room, by a look at the disk; `roomy` is called to look again."""

    def __init__(
        self,
        home: Home,
        live: Live,
        settings: NodeSettings,
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._home, self._live, self._later = home, live, later
        self._floor = settings.disk_needed(total_bytes(home))
        self._looks_again = False

    @property
    def was_low(self) -> bool:
        """What the last look saw."""
        return self._live.disk_low

    def is_low(self, roomy: Callable[[], None]) -> bool:
        """Look now. While it is low, `roomy` is called after a while, to try again."""
        low = free_bytes(self._home) < self._floor
        if low and not self._live.disk_low:
            log("disk_low", because=f"less than {size(self._floor)} are free; nothing is claimed")
        if low and not self._looks_again:
            self._looks_again = True
            self._later(AGAIN_S, lambda: self._look_again(roomy))
        self._live.disk_low = low
        return low

    def _look_again(self, roomy: Callable[[], None]) -> None:
        self._looks_again = False
        roomy()
