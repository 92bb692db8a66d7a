"""Reads the body of a request once, whole, and within its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_node.errors import BadInput
from agent_node.strict import JsonObject, decode_object
from arc.errors import WrongUse

if TYPE_CHECKING:
    from starlette.requests import Request


def object_of(raw: bytes) -> JsonObject:
    """The one JSON object that a body has to be; `WrongUse` says what else it is."""
    try:
        return decode_object(raw)
    except BadInput as error:
        raise WrongUse(f"the body is not one JSON object: {error}") from error


async def body_of(request: Request) -> JsonObject:
    """The body as one JSON object; the guards count its bytes while it comes."""
    return object_of(await request.body())
