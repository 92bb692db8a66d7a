"""Puts the page together: its routes behind its guards, whom it asks, and what it reads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from arc.errors import ArcError, fault_of

from .acting import act_routes
from .answers import refused
from .api import api_routes
from .errors import Crowded, Fault, NoHubRuns, TurnedAway
from .following import FleetFile
from .guards import Guards
from .live import Live, live_routes
from .metrics import metric_routes
from .pacing import Pace
from .pages import page_routes
from .past import Past
from .surroundings import Door, Fleet, Now, Panel, WebSettings
from .webhooks import webhook_routes

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

log = logging.getLogger("arc.web")


@dataclass(eq=False, kw_only=True)
class Web:
    """What every part of the page may use."""

    settings: WebSettings
    door: Door
    past: Past
    clock: Now
    fleet: Fleet
    panels: Mapping[str, Panel]
    pace: Pace = field(default_factory=lambda: Pace(time.monotonic))
    orders: asyncio.Lock = field(default_factory=asyncio.Lock)  # one change after the other
    live: Live = field(init=False)

    def __post_init__(self) -> None:
        self.live = Live(self)

    def close(self) -> None:
        """Let go of whoever looks on, and begin nothing more."""
        self.live.close()
        self.past.close()


@dataclass(frozen=True, eq=False)
class Page:
    """The page as a server runs it, and what it uses."""

    app: ASGIApp
    web: Web


def create_app(
    settings: WebSettings, door: Door, past: Past, *, clock: Now,
    panels: Mapping[str, Panel] | None = None, fleet: Fleet | None = None,
) -> Page:  # fmt: skip
    """The page behind its guards. `panels` None: those of `arc.web.panels`; `fleet` None: the
    fleet.yaml of the settings.
    """
    web = Web(settings=settings, door=door, past=past, clock=clock,
              fleet=fleet or FleetFile(settings.fleet),
              panels=_own_panels() if panels is None else panels)  # fmt: skip

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        web.close()

    async def sorry(request: Request, error: Exception) -> Response:
        return refused(_schema_of(request), _as_ours(error), clock, _headers_of(error))

    app = Starlette(
        routes=[*page_routes(web), *api_routes(web), *live_routes(web),
                *act_routes(web), *webhook_routes(web), *metric_routes(web)],
        exception_handlers={ArcError: sorry, HTTPException: sorry, ClientDisconnect: sorry,
                            Exception: sorry},
        lifespan=lifespan,
    )
    # Outside of everything, so that an answer to a fault of ours has its headers too.
    return Page(Guards(app, settings, clock), web)


def _own_panels() -> Mapping[str, Panel]:
    from .panels import PANELS

    return PANELS


def _schema_of(request: Request) -> str:
    first = request.url.path.strip("/").partition("/")[0]
    return f"web.{first if first.isalpha() else 'page'}"


def _as_ours(error: Exception) -> ArcError:
    if isinstance(error, ArcError):
        return error
    if isinstance(error, HTTPException):
        lost = error.status_code == HTTPStatus.NOT_FOUND
        hint = "what there is: /api/openapi.json" if lost else ""
        return TurnedAway(error.status_code, str(error.detail), hint=hint)
    if isinstance(error, ClientDisconnect):
        return TurnedAway(400, "left before the end of its request")  # and nobody hears this
    where = fault_of(error)
    log.error("page_failed", extra={"because": where})
    return Fault(f"a fault of ours: {type(error).__name__} in {where}")


def _headers_of(error: Exception) -> Mapping[str, str]:
    """What HTTP has to say with some errors, such as when to ask again."""
    if isinstance(error, HTTPException | TurnedAway):
        return error.headers or {}
    return {"Retry-After": "2"} if isinstance(error, NoHubRuns | Crowded) else {}
