"""A page over a hub of this process, asked without any network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_node.lines import line_of
from agent_node.strict import JsonObject
from arc import door
from arc.errors import ArcError
from arc.history import History
from arc.operations import Told
from arc.reception import answered
from arc.settings import FleetSettings
from arc.web.app import Page, create_app
from arc.web.errors import NoHubRuns
from arc.web.past import Past
from arc.web.surroundings import WebSettings
from tests.hub.cli.desk import Desk

HOST = "127.0.0.1:8420"
READS = frozenset({"status", "plan", "why.task", "why.node", "log", "metrics", "budget", "doctor",
                   "page.now", "nodes.logs"})  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """One answer of the page."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        assert self.status < 300, self.body
        return self.said["data"]

    @property
    def code(self) -> str:
        return str(self.said["error"]["code"])


class DeskDoor:
    """The way to the desk's hub; a test may take the hub away."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.asked: list[tuple[str, JsonObject, str]] = []
        self.away: ArcError | None = None

    async def ask(self, op: str, args: JsonObject, *, by: str, timeout_s: float) -> Told:
        self.asked.append((op, args, by))
        if self.away is not None:
            raise self.away
        line = line_of({"id": 1, "op": op, "args": args, "by": by})
        return door._told(line_of(await answered(self.desk.hub, line)))

    def hub_leaves(self) -> None:
        self.away = NoHubRuns("no hub runs here")

    @property
    def changes(self) -> list[str]:
        """Operations that may have changed something, with no dry run."""
        return [op for op, args, _ in self.asked
                if op not in READS and not op.endswith((".list", ".show", ".history"))
                and not args.get("dry_run")]  # fmt: skip


@dataclass
class DeskFleet:
    """fleet.yaml, as the desk's hub lives by it."""

    desk: Desk

    async def now(self) -> FleetSettings:
        return self.desk.hub.settings


@dataclass
class Stage:
    """A desk, the page before it, and whoever knocks."""

    desk: Desk
    door: DeskDoor
    settings: WebSettings
    page: Page = field(init=False)

    def __post_init__(self) -> None:
        self.open()

    def open(self, **changed: Any) -> None:
        """The page anew, with other settings."""
        self.settings = replace(self.settings, **changed)
        self.page = create_app(self.settings, self.door, Past(History(self.settings.state)),
                               clock=self.desk.clock, fleet=DeskFleet(self.desk))  # fmt: skip

    def knows(self, **settings: Any) -> None:
        """fleet.yaml says this from now on."""
        self.desk.hub.settings = replace(self.desk.hub.settings, **settings)

    async def ask(
        self, path: str, method: str = "GET", *, headers: Mapping[str, str] | None = None,
        body: bytes | JsonObject = b"", host: str | None = HOST, chunks: int = 1,
    ) -> Answer:  # fmt: skip
        """One request, as a server would hand it over."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {**({"host": host} if host is not None else {}), **(headers or {})}
        if not isinstance(body, bytes):
            given.setdefault("content-type", "application/json")
        return await called(self.page.app, method, path, given, raw, chunks)

    def close(self) -> None:
        self.page.web.close()


async def called(
    app: Any, method: str, path: str, headers: Mapping[str, str], body: bytes, chunks: int = 1,
    *, sent: list[dict[str, Any]] | None = None,
) -> Answer:
    """One request to an ASGI application. `sent`: gets its messages, though it raises at last."""
    where, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": where, "raw_path": where.encode(), "root_path": "",
        "query_string": query.encode("latin-1"), "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8420),
        "headers": [(name.lower().encode(), value.encode("latin-1"))
                    for name, value in headers.items()],
    }  # fmt: skip
    step = max(1, len(body) // chunks)
    pieces = [body[n : n + step] for n in range(0, len(body), step)] or [b""]
    coming = [{"type": "http.request", "body": piece, "more_body": n + 1 < len(pieces)}
              for n, piece in enumerate(pieces)]  # fmt: skip
    out: list[dict[str, Any]] = [] if sent is None else sent

    async def receive() -> dict[str, Any]:
        if coming:
            return coming.pop(0)
        await asyncio.sleep(3600)
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        out.append(message)

    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return answer_in(out)


def answer_in(out: list[dict[str, Any]]) -> Answer:
    """The answer that these messages make."""
    start = next(one for one in out if one["type"] == "http.response.start")
    told = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], told, b"".join(one.get("body", b"") for one in out))


def a_stage(place: Path, **settings: Any) -> Stage:
    """A small fleet, its hub, and a page over loopback."""
    desk = Desk(place, **settings)
    web = WebSettings(fleet=place / "fleet.yaml", state=place / ".arc")
    return Stage(desk, DeskDoor(desk), web)
