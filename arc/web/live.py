"""Keeps open pages up to date: one question a second to the hub for all of them, changes only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.routing import Route

from agent_node.clock import iso
from agent_node.strict import JsonObject, JsonValue
from arc.errors import ArcError

from .answers import plain_json
from .errors import Crowded

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from .app import Web

EVERY_S = 1.0
ASK_S = 5.0
STREAMS_MAX = 24
PING_S = 10
SLOW_S = 10.0  # a browser that takes nothing for so long is let go
RETRY_MS = 2000
LINGER_S = 3.0  # a page that is loaded anew finds the last state warm
BY = "web"

# Which panels are drawn anew when a cursor of the hub has moved on.
STALE: dict[str, tuple[str, ...]] = {
    "run": ("funnel", "sensors"),
    "move": ("lanes", "feeds"),
    "look": ("lanes", "heat", "depth", "money", "moment"),
    "rows": ("lanes", "life"),
}


@dataclass(eq=False)
class Watcher:
    """One open page: what it has not been told yet. However slowly it reads, this stays small."""

    told: JsonObject = field(default_factory=dict)  # the state that it knows
    trouble: str | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    number: int = 0


class Live:
    """What all open pages show. The hub is asked only while somebody looks on."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._watchers: set[Watcher] = set()
        self._poll: asyncio.Task[None] | None = None
        self._closed = False
        self._version = ""
        self.state: JsonObject = {}
        self.trouble: JsonObject | None = None  # why the state is old; None: it is not
        self.seen_at: str | None = None  # when the hub said that this is the state

    def close(self) -> None:
        """Every stream ends; nothing is asked any more."""
        self._closed = True
        self._wake()
        if self._poll is not None:
            self._poll.cancel()

    def check_room(self) -> None:
        """`Crowded` when too many pages look on already."""
        if len(self._watchers) >= STREAMS_MAX or self._closed:
            raise Crowded(f"{STREAMS_MAX} pages look on already; close one")

    async def stream(self) -> AsyncIterator[ServerSentEvent]:
        """Everything once, then what changes, until the page or this server ends."""
        if len(self._watchers) >= STREAMS_MAX:
            return  # several came at once when there was room; the page comes again by itself
        watcher = Watcher()
        self._watchers.add(watcher)
        if self._poll is None or self._poll.done():
            self._poll = asyncio.create_task(self._follow(), name="live")
        try:
            while not self._closed:
                for kind, data in self._news(watcher):
                    watcher.number += 1
                    yield _event(kind, data, watcher.number)
                await watcher.news.wait()
                watcher.news.clear()
        finally:
            self._watchers.discard(watcher)

    def _news(self, watcher: Watcher) -> list[tuple[str, JsonObject]]:
        """What this page has to be told now: the newest state, however much it missed of others."""
        said: list[tuple[str, JsonObject]] = []
        trouble = json.dumps(self.trouble)
        if trouble != (watcher.trouble or "null"):
            said.append(("trouble", {"seen_at": self.seen_at, "error": self.trouble}))
            watcher.trouble = trouble
        if self.state and watcher.told is not self.state:
            change = change_of(watcher.told, self.state)
            stale = stale_panels(watcher.told, self.state)
            said.append(("now", {"seen_at": self.seen_at, "full": not watcher.told, **change}))
            if stale and watcher.told:
                said.append(("stale", {"panels": stale}))
            watcher.told = self.state
        return said

    async def _follow(self) -> None:
        """Ask once a second while somebody looks on; a hub that is away is asked just so."""
        quiet = 0.0
        while not self._closed and quiet <= LINGER_S:
            await self._ask()
            await asyncio.sleep(EVERY_S)
            quiet = 0.0 if self._watchers else quiet + EVERY_S

    async def _ask(self) -> None:
        trouble: JsonObject | None = None
        try:
            told = await self._web.door.ask("page.now", {"known": self._version}, by=BY,
                                            timeout_s=ASK_S)  # fmt: skip
        except ArcError as error:
            trouble = {"code": error.code, "message": str(error), "hint": error.hint}
        else:
            self.seen_at = iso(self._web.clock.now())
            if not told.data.get("unchanged"):
                self._version = str(told.data.get("version"))
                self.state = {name: one for name, one in told.data.items()
                              if name not in ("version", "unchanged")}  # fmt: skip
                self._wake()
        if trouble != self.trouble:
            self.trouble = trouble
            self._wake()

    def _wake(self) -> None:
        for watcher in self._watchers:
            watcher.news.set()


def change_of(old: JsonObject, new: JsonObject) -> JsonObject:
    """What of `new` a page has to be told that knows `old`: whole keys, of nodes the changed ones.

    `set` holds the keys, `nodes` the nodes by name, `gone` the names of nodes that are no more.
    """
    changed: JsonObject = {name: one for name, one in new.items()
                           if name != "nodes" and old.get(name) != one}  # fmt: skip
    before, after = _nodes(old), _nodes(new)
    return {
        "set": changed,
        "nodes": {name: one for name, one in after.items() if before.get(name) != one},
        "gone": [*sorted(before.keys() - after.keys())],
    }


def _nodes(state: JsonObject) -> JsonObject:
    nodes = state.get("nodes")
    return nodes if isinstance(nodes, dict) else {}


def stale_panels(old: JsonObject, new: JsonObject) -> list[JsonValue]:
    """The panels that show something else by now, by name."""
    before, after = old.get("cursors"), new.get("cursors")
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    moved = {panel for cursor, panels in STALE.items() for panel in panels
             if before.get(cursor) != after.get(cursor)}  # fmt: skip
    return [*sorted(moved)]


def _event(kind: str, data: JsonObject, number: int) -> ServerSentEvent:
    line = plain_json(json.dumps(data, separators=(",", ":"))).decode().strip()
    return ServerSentEvent(line, event=kind, id=str(number), retry=RETRY_MS)


def live_routes(web: Web) -> list[BaseRoute]:
    """The stream of changes at `/live`."""

    async def live(_: Request) -> Response:
        web.live.check_room()
        return EventSourceResponse(
            web.live.stream(), ping=PING_S, send_timeout=SLOW_S,
            ping_message_factory=lambda: ServerSentEvent(comment="still here"),
        )  # fmt: skip

    return [Route("/live", live)]
