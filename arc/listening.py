"""Starts a cycle at once when a node says that it could use one, instead of at the interval."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .decisions.view import NodeSeen
from .decisions.waking import CATCHES_UP, REBALANCE, ROUTER, woken_by
from .errors import ArcError
from .links import HEARS_NOW, Link
from .looking import INBOX
from .schedule import Schedule

if TYPE_CHECKING:
    from .hub import Hub

log = logging.getLogger("arc.listening")

GRAPHS = "fleet-graphs"
NAMES_MAX = 1000  # of nodes that wait to be looked at; there are no more in any fleet


@dataclass(eq=False)
class Listening:
    """Hears the nodes' events, and runs what they call for: one run at a time, many events in one.

    Under `swift` a free slot or new surplus is served at once. Under `arc0` only `on_idle` starts
    cycles, and then as soon as a node has been idle for the minimum. Under both, a task that
    finished is told at once to whoever waits for one.
    """

    hub: Hub
    schedule: Schedule
    _news: dict[str, set[str]] = field(default_factory=dict)  # sensor: nodes with news
    _awake: asyncio.Event = field(default_factory=asyncio.Event)
    _heard_by: set[Link] = field(default_factory=set)
    _waits: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    _again: set[str] = field(default_factory=set)  # of them, who said idle again meanwhile
    _works: asyncio.Task[None] | None = None

    def start(self) -> None:
        """From now on events are heard and acted upon, where the settings ask for it."""
        self._works = asyncio.create_task(self._work(), name="listening")

    async def follow(self) -> None:
        """Subscribe to every link that is new. A node that cannot be reached is no trouble here:
        its link subscribes when it comes back. Where somebody waits, what ended on the others
        before they were listened to is looked for now.
        """
        if not self.wanted:
            return
        fresh = [link for link in self.hub.links.values() if link not in self._heard_by]
        self._heard_by = set(self.hub.links.values())
        for link, said in zip(fresh, await asyncio.gather(
            *(link.listen(self.heard) for link in fresh), return_exceptions=True
        ), strict=True):  # fmt: skip
            if isinstance(said, ArcError):
                log.info("not_heard_yet", extra={"node": link.name, "because": str(said)})
            elif isinstance(said, BaseException):
                raise said
            elif self.hub.awaiting:
                self._wake(GRAPHS, link.name)

    @property
    def wanted(self) -> bool:
        """Whether the settings ask for more than the interval."""
        settings = self.hub.settings
        return settings.steal.swift or settings.on_idle or self.hub.awaiting

    def heard(self, node: str, event: str) -> None:
        """Called by a link, in no task of its own: it only notes what is to be done."""
        self.hub.stirred.add(node)
        back = event == HEARS_NOW  # what it said while nobody heard is looked for
        if (back or event == "task_finished") and self.hub.awaiting:
            self._wake(GRAPHS, node)
        if self.hub.settings.steal.swift:
            woken = CATCHES_UP if back else woken_by(event, at_the_hub=node == INBOX)
            for sensor in woken:
                self._wake(sensor, node)
        elif self.hub.settings.on_idle:
            self._wait_out(node, "idle" if back else event)

    def _wait_out(self, node: str, event: str) -> None:
        """A node counts as idle after the minimum; if it was busy meanwhile, it says so, unless
        its link was down: then it is looked at once more, another minimum later.
        """
        if event == "busy":
            self._again.discard(node)
            if (waiting := self._waits.pop(node, None)) is not None:
                waiting.cancel()
        elif event == "idle" and node in self._waits:
            self._again.add(node)
        elif event == "idle" and len(self._waits) < NAMES_MAX:
            self._waits[node] = asyncio.get_running_loop().call_later(
                self.hub.settings.steal.idle_min_s, self._waited, node
            )

    def _waited(self, node: str) -> None:
        del self._waits[node]
        self._wake(REBALANCE, node)
        if node in self._again:
            self._again.discard(node)
            self._wait_out(node, "idle")

    def _wake(self, sensor: str, node: str) -> None:
        if not self.schedule.enabled(sensor):
            return
        news = self._news.setdefault(sensor, set())
        if len(news) < NAMES_MAX:
            news.add(node)
        self._awake.set()

    async def _work(self) -> None:
        """What comes in while a run is on is served by the next one, all of it together."""
        while True:
            await self._awake.wait()
            self._awake.clear()
            for sensor in (GRAPHS, ROUTER, REBALANCE):
                woken = frozenset(self._news.pop(sensor, ()))
                if woken and (sensor != ROUTER or self._something_waits_here(woken)):
                    await self.schedule.until_free(sensor)
                    because = f"news from {', '.join(sorted(woken)[:5])}"
                    await self.schedule.run_now(sensor, because, woken=woken)

    def _something_waits_here(self, woken: frozenset[str]) -> bool:
        """Whether the hub's own queue has work to give; what comes into it says so itself."""
        inbox = self.hub.last_view.node(INBOX) if self.hub.last_view else None
        return INBOX in woken or not isinstance(inbox, NodeSeen) or inbox.report.pending_count > 0

    async def stop(self) -> None:
        """Start nothing more."""
        for waiting in self._waits.values():
            waiting.cancel()
        if self._works is not None:
            self._works.cancel()
            await asyncio.gather(self._works, return_exceptions=True)
