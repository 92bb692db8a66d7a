"""Takes signed messages at `/webhooks/NAME`: genuine, recent, never seen, and not too many."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from starlette.routing import Route

from agent_node.clock import iso
from agent_node.strict import JsonObject
from arc.decisions.webhooks import seal_of, why_not_genuine
from arc.errors import NotFound
from arc.secret_files import BadSecret, read_secret
from arc.settings import HookEntry

from .answers import told
from .bodies import object_of
from .errors import TurnedAway

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from .app import Web

log = logging.getLogger("arc.web")

TRIES = 10  # times as many forged messages as may be taken are told what is wrong with them
TAKE_S = 20.0
ADDED, EXISTS = 202, 200
DELIVERY_MAX = 200
DELIVERY = ("x-arc-delivery", "idempotency-key")


async def take(web: Web, entry: HookEntry, request: Request) -> Response:
    """The answer to one message; everything that is wrong with it is raised.

    Each is judged before any turn is counted, for a proof of 256 KiB at most is quick; so a forger
    keeps nobody out, however many tries he makes.
    """
    body = await request.body()
    stamp = request.headers.get("x-arc-timestamp", "")
    proof = request.headers.get("x-arc-signature", "")
    why = why_not_genuine(_secret_of(entry), stamp=stamp, proof=proof, body=body,
                          now_s=web.clock.now().timestamp())  # fmt: skip
    if why is not None:
        _pace(web, f"{entry.name} forged", entry.per_minute * TRIES)
        raise TurnedAway(401, f"{entry.name}: {why}", hint=f"arc webhooks show {entry.name}")
    _pace(web, entry.name, entry.per_minute)
    args: JsonObject = {
        "name": entry.name, "payload": object_of(body), "seal": seal_of(stamp, body),
        "at": iso(datetime.fromtimestamp(int(stamp), UTC)), "delivery": _delivery(request),
    }  # fmt: skip
    found = await web.door.ask("webhooks.take", args, by=f"webhook:{entry.name}", timeout_s=TAKE_S)
    added = found.data.get("outcome") == "added"
    return told("webhooks.take", found, web.clock, status=ADDED if added else EXISTS)


def _secret_of(entry: HookEntry) -> bytes:
    """The secret; where it lies and what is wrong with it is for our log, not for the sender."""
    try:
        return read_secret(entry.secret_file)
    except BadSecret as error:
        log.warning("webhook_without_secret", extra={"because": f"{entry.name}: {error}"})
        raise BadSecret(f"{entry.name}: its secret cannot be read here") from error


def _pace(web: Web, name: str, per_minute: int) -> None:
    wait_s = web.pace.take(name, per_minute)
    if wait_s is not None:
        raise TurnedAway(429, f"too many messages; the next one in {wait_s:.0f} s",
                         headers={"Retry-After": str(max(1, round(wait_s)))})  # fmt: skip


def _delivery(request: Request) -> str:
    """The sender's own id of this delivery; "" where it has none."""
    said = next((one for name in DELIVERY if (one := request.headers.get(name))), "")
    return said if said.isprintable() and len(said) <= DELIVERY_MAX else ""


def webhook_routes(web: Web) -> list[BaseRoute]:
    """Everything under `/webhooks`."""

    async def webhook(request: Request) -> Response:
        name = str(request.path_params["name"])
        hooks = {one.name: one for one in (await web.fleet.now()).webhooks}
        if name not in hooks:
            raise NotFound("there is no such webhook")
        return await take(web, hooks[name], request)

    return [Route("/webhooks/{name}", webhook, methods=["POST"])]
