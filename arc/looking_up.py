"""Looks up tasks that somebody waits for and of whose end no event told, such as very old ones."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.task import ENDED, Task

from .asking import read_listed
from .errors import ArcError
from .journal_ends import TaskEnd
from .links import Link

if TYPE_CHECKING:
    from .hub import Hub

LATE_S = 600.0  # for so long it is left to events to tell how a task ended
REQUESTS_MAX = 200  # that one run sends for it
MATCHES_MAX = 5
BLOCKED = "PENDING"


async def look_up(hub: Hub, links: Mapping[str, Link], awaited: Collection[str]) -> None:
    """Note the ends of awaited tasks that nobody told for ten minutes, a bounded number at a time.
    One that is blocked itself may be part of a circle.

    Events that a node has let go of, or a journal that was lost, keep nobody waiting for ever.
    """
    now = hub.clock.boottime()
    hub.awaited = {uid: hub.awaited.get(uid, now) for uid in awaited}
    late = [uid for uid, since in hub.awaited.items() if now - since >= LATE_S]
    some = late[: max(REQUESTS_MAX // max(len(links), 1), 1)]
    found = await asyncio.gather(*(_find(link, uid) for uid in some for link in links.values()))
    ends = [TaskEnd(name, task.uid, str(task.state), hub.clock.now(), task.failure_reason or "")
            for name, task in filter(None, found) if task.state in ENDED]  # fmt: skip
    hub.circling |= any(task.state == BLOCKED for _, task in filter(None, found))
    hub.journal.ends.note(ends)
    for uid in some:  # the others have their turn before these are looked up again
        hub.awaited[uid] = now


async def _find(link: Link, uid: str) -> tuple[str, Task] | None:
    """The task where it has ended on this node, or is blocked there; who cannot answer now is asked
    another time.
    """
    asked: JsonObject = {"match": uid, "limit": MATCHES_MAX}
    try:
        page = read_listed(link.name, await link.ask("list", asked))
    except ArcError:
        return None
    some = [task for task in page.tasks if task.uid == uid and task.state in (*ENDED, BLOCKED)]
    return (link.name, some[0]) if some else None
