"""Counts what one run asks over the links, and notes what was slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from agent_node.clock import Clock
from agent_node.reports import StatusReport
from agent_node.strict import JsonObject

from .errors import ArcError
from .links import EventHeard, Link, Met, Told

SLOW_S = 2.0  # the origin's own figure: worst case 15 calls a cycle, each under two seconds
SLOW_MAX = 20
NOT_OVER_A_WIRE = "inbox"


@dataclass(frozen=True)
class SlowAsk:
    """One request that took longer than a request should."""

    node: str
    do: str
    took_s: float


class Tally:
    """The hub's links as one run uses them. Two runs at a time do not count each other's."""

    def __init__(self, links: Mapping[str, Link], clock: Clock) -> None:
        self.links: dict[str, Link] = {
            name: _Counted(link, self, clock) for name, link in links.items()
        }
        self.asked: Counter[str] = Counter()
        self.slow: list[SlowAsk] = []

    @property
    def requests(self) -> int:
        """How many requests went to other machines or processes; the hub's own queue is free."""
        return self.asked.total()

    def note(self, node: str, do: str, took_s: float, *, sent: int = 1) -> None:
        """One request came back, or gave up; none was `sent` where a login took all the time."""
        if node != NOT_OVER_A_WIRE and sent:
            self.asked[do] += sent
        if took_s > SLOW_S and len(self.slow) < SLOW_MAX:
            self.slow.append(SlowAsk(node, do, took_s))

    def told(self) -> JsonObject:
        """The same for the journal and for `show RUN`."""
        return {
            "requests": dict(sorted(self.asked.items())),
            "slow": [
                {"node": one.node, "do": one.do, "took_s": round(one.took_s, 3)}
                for one in self.slow
            ],
        }


class _Counted:
    """A link that tells the tally of every request it carries."""

    def __init__(self, link: Link, tally: Tally, clock: Clock) -> None:
        self._link, self._tally, self._clock = link, tally, clock
        self._opens = False

    @property
    def name(self) -> str:
        return self._link.name

    @property
    def met(self) -> Met | None:
        return self._link.met

    @property
    def requests(self) -> int:
        return self._link.requests

    async def ask(
        self, do: str, fields: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        began = self._clock.boottime()
        try:
            return await self._link.ask(do, fields, timeout_s=timeout_s)
        finally:
            self._tally.note(self.name, do, self._clock.boottime() - began)

    def put(self, do: str, told: Told, *, timeout_s: float) -> bool:
        began = self._clock.boottime()

        def counted(said: JsonObject | StatusReport | ArcError) -> None:
            self._tally.note(self.name, do, self._clock.boottime() - began)
            told(said)

        return self._link.put(do, counted, timeout_s=timeout_s)

    async def meet(self, *, anew: bool = False) -> Met:
        """An opening costs a hello and, where news is heard, a subscribe; and it may take long."""
        if self._opens or (self._link.met is not None and not anew):
            return await self._link.meet(anew=anew)
        began, before, self._opens = self._clock.boottime(), self._link.requests, True
        try:
            return await self._link.meet(anew=anew)
        finally:
            self._opens, sent = False, self._link.requests - before
            self._tally.note(self.name, "hello", self._clock.boottime() - began, sent=min(sent, 1))
            self._tally.note(self.name, "subscribe", 0.0, sent=min(max(sent - 1, 0), 1))

    async def listen(self, heard: EventHeard) -> None:
        await self._link.listen(heard)

    async def close(self) -> None:
        await self._link.close()
