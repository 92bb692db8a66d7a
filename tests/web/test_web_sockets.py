"""A web socket is no way in: no rule of one origin holds for it, so there is none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from uvicorn.protocols.websockets import auto

from tests.web.serving_stage import PATIENCE_S, served
from tests.web.stage import HOST, Stage

UPGRADE = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
           "Origin: http://{origin}\r\n")  # fmt: skip


class Talks:
    """What a package beside ours could bring: uvicorn takes it where it is free to choose."""

    made = 0

    def __init__(self, **_: Any) -> None:
        type(self).made += 1


@pytest.mark.parametrize("path", ["/live", "/api/v1/status", "/"])
@pytest.mark.parametrize("origin", ["evil.com", ""])
async def test_who_asks_for_a_web_socket_is_answered_as_anybody_else(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, path: str, origin: str
) -> None:
    """Fails without `ws="none"`: then a package that happens to be there decides."""
    monkeypatch.setattr(auto, "AutoWebSocketsProtocol", Talks)
    monkeypatch.setattr(Talks, "made", 0)
    async with served(stage) as page, asyncio.timeout(PATIENCE_S):
        own = f"127.0.0.1:{page.port}"
        asked = page.get(path)[:-2].decode() + UPGRADE.format(origin=origin or own) + "\r\n"
        reader, writer = await page.connect(asked.encode())
        status = (await reader.readline()).split()[1]
        writer.close()
    assert Talks.made == 0
    assert status == (b"403" if origin else b"200")


async def test_the_application_says_nothing_to_a_web_socket_that_a_server_lets_through(
    stage: Stage,
) -> None:
    """Fails without the guard of `scope["type"]`: the routes behind it would be asked."""
    said: list[Any] = []

    async def hear() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def say(event: Any) -> None:
        said.append(event)

    scope = {"type": "websocket", "path": "/live", "raw_path": b"/live", "query_string": b"",
             "root_path": "", "scheme": "ws", "http_version": "1.1", "subprotocols": [],
             "headers": [(b"host", HOST.encode())], "client": ("127.0.0.1", 5), "state": {}}
    await stage.page.app(scope, hear, say)
    assert said == []
    assert stage.door.asked == []
