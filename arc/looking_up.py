"""Looks up tasks that somebody waits for and of whose end no event told, such as very old ones."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from agent_node.strict import JsonObject
from agent_node.task import ENDED, Task

from .asking import read_listed
from .errors import ArcError
from .journal_ends import TaskEnd
from .links import Link
from .looking import Look

LATE_S = 600.0  # for so long it is left to events to tell how a task ended
REQUESTS_MAX = 200  # that one run sends for it
MATCHES_MAX = 5
BLOCKED = "PENDING"


@dataclass(frozen=True)
class LookedUp:
    """What all queues said of some tasks: whose they are, by uid; and who could not be asked."""

    owners: Mapping[str, Mapping[str, Task]] = field(default_factory=dict)  # uid: by node
    silent: frozenset[str] = frozenset()


async def look_up(seen: Look, awaited: Collection[str]) -> LookedUp:
    """Note the ends of awaited tasks that nobody told for ten minutes, a bounded number at a time.
    One that is blocked itself may be part of a circle.

    Events that a node has let go of, or a journal that was lost, keep nobody waiting for ever.
    """
    hub, links = seen.hub, seen.links
    now = hub.clock.boottime()
    hub.awaited = {uid: hub.awaited.get(uid, now) for uid in awaited}
    late = [uid for uid, since in hub.awaited.items() if now - since >= LATE_S]
    late.sort(key=hub.awaited.__getitem__)  # so that each has its turn, however many there are
    some = late[: max(REQUESTS_MAX // max(len(links), 1), 1)]
    owners: dict[str, dict[str, Task]] = {uid: {} for uid in some}
    silent = {node.name for node in seen.whole.unseen}
    asked = [(link, uid) for uid in some for link in links.values()]
    said = await asyncio.gather(*(_find(link, uid) for link, uid in asked))
    for (link, uid), found in zip(asked, said, strict=True):
        if isinstance(found, ArcError):
            silent.add(link.name)
        elif found is not None:
            owners[uid][link.name] = found
    ends = [TaskEnd(name, task.uid, str(task.state), hub.clock.now(), task.failure_reason or "")
            for one in owners.values() for name, task in one.items()
            if task.state in ENDED]  # fmt: skip
    hub.circling |= any(task.state == BLOCKED for one in owners.values() for task in one.values())
    hub.journal.ends.note(ends)
    for uid in some:  # the others have their turn before these are looked up again
        hub.awaited[uid] = now
    return LookedUp(owners, frozenset(silent))


async def _find(link: Link, uid: str) -> Task | ArcError | None:
    """The task as this node has it; None: it says that it has none. Who cannot answer now is asked
    another time: that is an error, and no word on where the task is.
    """
    asked: JsonObject = {"match": uid, "limit": MATCHES_MAX}
    try:
        page = read_listed(link.name, await link.ask("list", asked))
    except ArcError as error:
        return error
    return next((task for task in page.tasks if task.uid == uid), None)
