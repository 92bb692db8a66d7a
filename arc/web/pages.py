"""Gives out the page itself and the files that it is made of; there is no data in any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from agent_node import __version__
from agent_node.lines import encode

from .verbs import offered

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from .app import Web

HERE = Path(__file__).parent
SVG = "image/svg+xml"
GZIP = 6  # of the files alone: they hold no secret that a length could tell of


class Fresh(StaticFiles):
    """Files that a browser may keep, and asks about each time: by their ETag that costs nothing."""

    def file_response(self, *args: object, **more: object) -> Response:
        """The file, or 304 where the browser has it."""
        response: Response = super().file_response(*args, **more)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def page_routes(web: Web) -> list[BaseRoute]:
    """The page at `/`, its files under `/static`."""
    templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True,
                            undefined=StrictUndefined, trim_blocks=True)  # fmt: skip

    async def page(_: Request) -> Response:
        settings = web.settings
        text = templates.get_template("page.html").render(
            version=__version__, actions=settings.actions,
            needs_token=settings.token is not None, offered=encode(offered()),
        )  # fmt: skip
        return HTMLResponse(text, headers={"Cache-Control": "no-cache"})

    async def icon(_: Request) -> Response:
        return FileResponse(HERE / "static" / "icon.svg", media_type=SVG)

    return [Route("/", page), Route("/favicon.ico", icon),
            Mount("/static", Fresh(directory=HERE / "static", check_dir=False),
                  middleware=[Middleware(GZipMiddleware, compresslevel=GZIP)])]  # fmt: skip
