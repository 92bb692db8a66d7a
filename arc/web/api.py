"""Answers what the page and other programs ask: read-only JSON, in the commands' own envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from arc.errors import NotFound, WrongUse
from arc.operations import Told

from .answers import JSON, plain_json, told
from .openapi import document
from .panels.keeping import Keeping
from .panels.what_if import NAME as WHAT_IF
from .panels.what_if import Replays
from .questions import LOG, PANEL, QUESTIONS, TEXT_MAX, Question

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from .app import Web
    from .surroundings import Panel

API = "/api/v1"
NODES_S = 60.0  # a look at every node
HUB_S = 15.0
BY = "web"


def api_routes(web: Web) -> list[BaseRoute]:
    """Everything under `/api`."""
    described = plain_json(document(web.panels))

    async def openapi(_: Request) -> Response:
        return Response(described, media_type=JSON)

    return [
        Route("/api/openapi.json", openapi),
        Route(f"{API}/{PANEL.path}", _panel(web)),
        Route(f"{API}/{LOG.path}", _log(web)),
        *(Route(f"{API}/{one.path}", _asking(web, one)) for one in QUESTIONS),
    ]


def _asking(web: Web, question: Question) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        args = question.args(request.path_params, request.query_params.multi_items())
        limit_s = NODES_S if question.asks_nodes else HUB_S
        found = await web.door.ask(question.op, args, by=BY, timeout_s=limit_s)
        return told(question.op, found, web.clock)

    return answer


def _log(web: Web) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        args = LOG.args(request.path_params, request.query_params.multi_items())
        if "node" not in args:
            task = await web.door.ask("tasks.show", {"task": args["task"]}, by=BY,
                                      timeout_s=NODES_S)  # fmt: skip
            args["node"] = task.data["node"]
        found = await web.door.ask(LOG.op, args, by=BY, timeout_s=NODES_S)
        return told(LOG.op, found, web.clock)

    return answer


def _panel(web: Web) -> Callable[[Request], Awaitable[Response]]:
    replays, keeping = Replays(web.settings.fleet), Keeping()

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        panel = web.panels.get(name)
        if panel is None:
            known = ", ".join(sorted(web.panels)) or "none"
            raise NotFound(f"there is no panel {name[:64]!r}", hint=f"there are: {known}")
        query, now = asked_of(panel, request.query_params.multi_items()), web.clock.now()
        if name == WHAT_IF:
            data = await replays.ask(now, query)
        else:
            key = (name, *sorted(f"{word}={value}" for word, value in query.items()))
            data = await keeping.ask(
                key, lambda: web.past.look(lambda history: panel.data(history, now, query)))
        return told(f"web.panels.{name}", Told(data), web.clock)

    return answer


def asked_of(panel: Panel, query: list[tuple[str, str]]) -> dict[str, str]:
    """What is asked of a panel; `WrongUse` for what it does not know, and for twice."""
    asked: dict[str, str] = {}
    for name, said in query:
        if name not in panel.takes or name in asked:
            raise WrongUse(f"{name[:TEXT_MAX]!r} is no parameter here, or stands twice",
                           hint=f"there are: {', '.join(panel.takes) or 'none'}")  # fmt: skip
        asked[name] = said
    return asked
