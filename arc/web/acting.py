"""Lets people act from the page, if fleet.yaml says so: the plan first, then the same orders."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from starlette.routing import Route

from agent_node.errors import BadInput
from agent_node.lines import encode
from agent_node.requests import Fields
from agent_node.strict import JsonObject, JsonValue
from arc.errors import ArcError, WrongUse
from arc.operations import Told

from .answers import told
from .bodies import body_of
from .errors import Crowded, TurnedAway
from .guards import is_asked_nearby
from .peers import PEER, uid_of
from .verbs import VERBS, Verb, lines_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from .app import Web

REASON_MAX = 400
NAME_MAX = 60
TASKS_MAX = 64
ACT_S = 120.0
TURN_S = 10.0
# Made anew for each plan, and no part of what it would do; and how the tasks of a node that is to
# drain would be placed just then: the order is about the node, and its queue goes on meanwhile.
FRESH = frozenset({"xfer", "drain"})


class PlanChanged(ArcError):
    """What was agreed to is not what would happen now; nothing was done."""

    code = "ARC-WEB-PLAN"
    exit_code = 7
    hint = "look at the plan again, then say so once more"


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody at the page wants done, checked."""

    verb: str
    op: str
    args: JsonObject
    by: str
    dry_run: bool
    plan: str  # the hash of the plan that was agreed to; "": none was


def order_of(verb: str, body: JsonObject, uid: int | None = None) -> Order:
    """The order in a body, by the name that was typed and, before it, the user that the kernel
    knows; `WrongUse` names the field.
    """
    kind = VERBS.get(verb)
    if kind is None:
        raise TurnedAway(404, f"nothing here is called {verb[:NAME_MAX]!r}")
    asked = Fields(body)
    try:
        name, reason = asked.text("by", NAME_MAX).strip(), asked.text("reason", REASON_MAX).strip()
        args: JsonObject = {"reason": reason, **_about(kind, asked)}
        args |= {field: asked.text(field, NAME_MAX) for field in kind.more}
        if asked.flag("yes"):
            args["yes"] = True
        dry_run, plan = asked.flag("dry_run"), asked.text_or("plan", "", 64)
    except BadInput as error:
        raise WrongUse(str(error)) from error
    if not name or not reason:
        raise WrongUse("a name and a reason are needed; both go into the log")
    by = f"web:{name}" if uid is None else f"web[uid {uid}]:{name}"
    return Order(verb, kind.op, args, by, dry_run, plan)


def _about(kind: Verb, asked: Fields) -> JsonObject:
    if kind.about == "fleet":
        return {}
    if kind.about == "node":
        return {"node": asked.node("node")}
    tasks: tuple[str, ...] = asked.words("tasks") or ((asked.text("uid", 26),))
    if len(tasks) > TASKS_MAX:
        raise BadInput(f"takes {TASKS_MAX} at most", "tasks")
    return {"tasks": list[JsonValue](tasks)}


def hash_of(order: Order, plan: Told) -> str:
    """A name for exactly this plan for exactly this order."""
    said: JsonValue = [order.verb, {**order.args, "reason": ""}, _lasting(plan.data), plan.exit]
    return sha256(encode(said).encode()).hexdigest()[:32]


def _lasting(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _lasting(one) for name, one in value.items() if name not in FRESH}
    return [_lasting(one) for one in value] if isinstance(value, list) else value


async def carry_out(web: Web, order: Order) -> Told:
    """The plan and its hash, or what came of the order once its plan was agreed to."""
    if order.dry_run:
        plan, found = await _planned(web, order)
        return Told({"dry_run": True, "verb": order.verb, "plan": plan.data, "plan_hash": found,
                     "says": lines_of(VERBS[order.verb], plan)},
                    plan.exit, plan.partial, plan.warnings)  # fmt: skip
    async with _turn(web):
        return await _do(web, order)


async def _planned(web: Web, order: Order) -> tuple[Told, str]:
    plan = await web.door.ask(order.op, {**order.args, "dry_run": True}, by=order.by,
                              timeout_s=ACT_S)  # fmt: skip
    return plan, hash_of(order, plan)


async def _do(web: Web, order: Order) -> Told:
    _, found = await _planned(web, order)
    if order.plan != found:
        why = "is another one by now" if order.plan else "was not shown to anybody yet"
        raise PlanChanged(f"{order.verb}: its plan {why}; nothing was done")
    done = await web.door.ask(order.op, {**order.args, "dry_run": False}, by=order.by,
                              timeout_s=ACT_S)  # fmt: skip
    return Told({"dry_run": False, "verb": order.verb, "result": done.data, "by": order.by,
                 "says": lines_of(VERBS[order.verb], done)},
                done.exit, done.partial, done.warnings)  # fmt: skip


@asynccontextmanager
async def _turn(web: Web) -> AsyncIterator[None]:
    """One order at a time: what another one does in between is part of the next one's plan."""
    try:
        async with asyncio.timeout(TURN_S):
            await web.orders.acquire()
    except TimeoutError as error:
        raise Crowded("another order from the page is still under way; nothing was done") from error
    try:
        yield
    finally:
        web.orders.release()


def who_may_act(web: Web, request: Request) -> int | None:
    """The user who asks; returns only when acting is on, and that is who runs this page, or who
    shows its token. None: whoever shows the token, for the kernel does not say who that is.

    Over loopback every user of this machine can ask; the kernel says which one does. Of what comes
    through another program that is its owner's (a proxy) it cannot say who asked that one.
    """
    settings = web.settings
    if not settings.actions:
        raise TurnedAway(403, "this page only reads",
                         hint="web: {actions: true} in fleet.yaml lets it act")  # fmt: skip
    nearby = is_asked_nearby(request.headers.get("host", ""))
    if settings.token is not None:
        return _uid_of(request) if nearby else None  # it was shown
    if not nearby:
        raise TurnedAway(403, "asked by a name that leads here from elsewhere",
                         hint="a token lets others act: arc web --make-token")  # fmt: skip
    uid = _uid_of(request)
    if settings.unix is not None:
        return uid  # a socket (0600) is its owner's alone
    if uid not in (os.getuid(), 0):
        who = "a program that cannot be told" if uid is None else f"user {uid}"
        raise TurnedAway(403, f"{who} asks, and this page belongs to user {os.getuid()}",
                         hint="a token lets others act: arc web --make-token")  # fmt: skip
    return uid


def _uid_of(request: Request) -> int | None:
    """Whose program asks, as the kernel knows it; None: it does not say."""
    at_socket = request.scope.get("state", {}).get(PEER)
    if at_socket is not None:
        return int(at_socket)
    client, server = request.scope.get("client"), request.scope.get("server")
    return uid_of(client, (server[0], server[1] or 0)) if server else None


def act_routes(web: Web) -> list[BaseRoute]:
    """Everything under `/act`."""

    async def act(request: Request) -> Response:
        verb = str(request.path_params["verb"])
        uid = who_may_act(web, request)
        order = order_of(verb, await body_of(request), uid)
        return told(f"web.act.{verb}", await carry_out(web, order), web.clock)

    return [Route("/act/{verb}", act, methods=["POST"])]
