"""Gives what was costly to add up again for a while: many open pages cost as much as one."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agent_node.strict import JsonObject

SHARE = 60.0  # what took a second is asked anew after a minute: at most 1/60 of a core each
KEEP_MAX_S = 60.0
ENTRIES_MAX = 32

Key = tuple[str, ...]


@dataclass(eq=False)
class Kept:
    """One answer, and until when it is good enough."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    until: float = 0.0
    data: JsonObject = field(default_factory=dict)


class Keeping:
    """The newest answers by what was asked. What was cheap is never older than a moment."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[Key, Kept] = OrderedDict()

    async def ask(self, key: Key, work: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """What `work` gives, or gave a short while ago; who asks the same waits for the first."""
        one = self._kept.setdefault(key, Kept())
        self._kept.move_to_end(key)
        while len(self._kept) > ENTRIES_MAX:
            self._kept.popitem(last=False)
        async with one.turn:
            began = self._clock()
            if began < one.until:
                return one.data
            one.data = await work()
            ended = self._clock()
            one.until = ended + min(SHARE * (ended - began), KEEP_MAX_S)
            return one.data
