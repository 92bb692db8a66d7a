"""Looks into the queues of several nodes at once; one that could not be read is never empty."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

from agent_node.strict import JsonObject

from .asking import read_queue
from .decisions.view import Queue, Queues, QueueUnseen
from .errors import ArcError
from .links import Link
from .survey import DEADLINE_S
from .unseen import rule_of, silent_after

HASTY_S = 1.0


async def look_into(
    links: Mapping[str, Link],
    names: Iterable[str],
    request: JsonObject,
    *,
    deadline_s: float = DEADLINE_S,
    hasty: Collection[str] = (),
) -> Queues:
    """The candidates of these queues, all asked at once with the same `candidates` request.

    A queue that could not be looked into is `QueueUnseen` and never an empty queue. Each node has
    `deadline_s` of its own, and those in `hasty` have `HASTY_S`: nobody has heard in this cycle
    that they answer at all.
    """
    wanted = sorted(set(names))
    found = await asyncio.gather(*(
        _queue(links[name], name, request, HASTY_S if name in hasty else deadline_s)
        for name in wanted
    ))  # fmt: skip
    return {queue.node: queue for queue in found}


async def _queue(
    link: Link, name: str, request: JsonObject, deadline_s: float
) -> Queue | QueueUnseen:
    try:
        async with asyncio.timeout(deadline_s):
            result = await link.ask("candidates", request, timeout_s=deadline_s)
        return read_queue(name, result)
    except ArcError as error:
        return QueueUnseen(name, rule_of(error), str(error), error.code)
    except TimeoutError:
        silent = silent_after(name, deadline_s)
        return QueueUnseen(name, "silent", str(silent), silent.code)
