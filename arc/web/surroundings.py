"""What surrounds the page: where it listens, whom it asks, and what a panel of it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent_node.strict import JsonObject
from arc.operations import Told

if TYPE_CHECKING:
    from arc.history import History
    from arc.settings import FleetSettings

LOOPBACK = ("127.0.0.1", "::1", "localhost")
PORT = 8420


@dataclass(frozen=True, kw_only=True)
class WebSettings:
    """Where the page listens and what it lets through; made once, when it starts."""

    fleet: Path  # the fleet.yaml that is meant, absolute
    state: Path  # the hub's own folder
    host: str = "127.0.0.1"
    port: int = PORT
    unix: Path | None = None  # a socket (0600) instead of host and port
    names: tuple[str, ...] = ()  # more names under which the page may be asked for
    actions: bool = False  # whether people may act from the page
    token: bytes | None = field(default=None, repr=False)  # None: nobody has to show one

    @property
    def is_near(self) -> bool:
        """Whether only this machine can reach it: a socket, or loopback."""
        return self.unix is not None or self.host in LOOPBACK


class Door(Protocol):
    """The way to the hub."""

    async def ask(self, op: str, args: JsonObject, *, by: str, timeout_s: float) -> Told:
        """What came of one operation; `NoHubRuns` where none answers, else as the hub raised it."""


class Fleet(Protocol):
    """What fleet.yaml says."""

    async def now(self) -> FleetSettings:
        """At this moment."""


class Now(Protocol):
    """Wall time, aware and in UTC."""

    def now(self) -> datetime: ...


class Panel(Protocol):
    """One panel of the page; `arc.web.panels.PANELS` has them by name."""

    @property
    def says(self) -> str:
        """One sentence: what am I looking at."""

    @property
    def takes(self) -> Mapping[str, str]:
        """What its query may hold, and what that means."""

    def data(self, history: History, now: datetime, query: Mapping[str, str]) -> JsonObject:
        """What it shows of that moment; `WrongUse` for a query that makes no sense.

        It runs in a thread that reads history, one panel at a time, so it may block for a moment.
        """
