"""One question of a talk, from when it was sent until somebody is told what became of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agent_node.reports import StatusReport
from agent_node.strict import JsonObject
from arc.errors import ArcError

from . import Told


@dataclass(slots=True, eq=False)
class Asked:
    """A request that was sent; `told` gets its result, or the error that it became, once."""

    number: int
    do: str
    changes: bool
    told: Told
    timeout_s: float
    until: float  # by the loop's clock
    reports: bool = False  # whether `told` takes a report that was read already


def settle(answer: asyncio.Future[JsonObject], said: JsonObject | StatusReport | ArcError) -> None:
    """Hand it to whoever waits; nobody does any more where the wait was cancelled."""
    assert not isinstance(said, StatusReport), "only who asks for reports is told one"
    if answer.done():
        return
    if isinstance(said, ArcError):
        answer.set_exception(said)
    else:
        answer.set_result(said)


def bare(number: int, do: str) -> bytes:
    """A request without fields, as `line_of` writes it; its name is one of ours."""
    return b'{"id":%d,"do":"%b"}\n' % (number, do.encode())
