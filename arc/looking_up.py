"""Looks up tasks that somebody waits for and of whose end no event told, such as very old ones."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.task import ENDED, Task

from .asking import read_listed
from .errors import ArcError
from .journal_ends import TaskEnd
from .links import Link
from .looking import Look

if TYPE_CHECKING:
    from .hub import Hub

LATE_S = 600.0  # for so long it is left to events to tell how a task ended
REQUESTS_MAX = 200  # that one run sends for it
MATCHES_MAX = 5
BLOCKED = "PENDING"


@dataclass(frozen=True)
class LookedUp:
    """What all queues said of some tasks: whose they are, by uid; and who could not be asked."""

    owners: Mapping[str, Mapping[str, Task]] = field(default_factory=dict)  # uid: by node
    silent: frozenset[str] = frozenset()


@dataclass(eq=False)
class Part:
    """What was said of one task so far: one run does not ask every queue of a very large fleet."""

    asked: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    owners: dict[str, Task] = field(default_factory=dict)

    def hear(self, node: str, said: Task | ArcError | None) -> None:
        """One queue's word; an error is none."""
        self.asked.add(node)
        if isinstance(said, ArcError):
            self.silent.add(node)
        elif said is not None:
            self.owners[node] = said


async def look_up(seen: Look, awaited: Collection[str]) -> LookedUp:
    """Note the ends of awaited tasks that nobody told for ten minutes, a bounded number at a time:
    those that every queue has been asked for are given back, if need be after several runs. One
    that is blocked itself may be part of a circle.

    Events that a node has let go of, or a journal that was lost, keep nobody waiting for ever.
    """
    hub, links = seen.hub, seen.links
    now = hub.clock.boottime()
    hub.awaited = {uid: hub.awaited.get(uid, now) for uid in awaited}
    late = [uid for uid, since in hub.awaited.items() if now - since >= LATE_S]
    late.sort(key=lambda uid: (hub.awaited[uid], uid))  # so that each has its turn
    some = late[: max(REQUESTS_MAX // max(len(links), 1), 1)]
    parts = hub.parts = {uid: hub.parts.get(uid) or Part() for uid in some}
    asked = [(link, uid) for uid in some for link in links.values()
             if link.name not in parts[uid].asked][:REQUESTS_MAX]  # fmt: skip
    said = await asyncio.gather(*(_find(link, uid) for link, uid in asked))
    for (link, uid), found in zip(asked, said, strict=True):
        parts[uid].hear(link.name, found)
    _note(hub, [(link.name, one) for (link, _), one in zip(asked, said, strict=True)
                if isinstance(one, Task)])  # fmt: skip
    whole = {uid: parts.pop(uid) for uid in some if parts[uid].asked >= links.keys()}
    hub.awaited |= dict.fromkeys(whole, now)  # the others have their turn before these
    silent = seen.whole.unheard
    return LookedUp({uid: part.owners for uid, part in whole.items()},
                    silent.union(*(part.silent for part in whole.values())))  # fmt: skip


def _note(hub: Hub, found: Sequence[tuple[str, Task]]) -> None:
    ends = [TaskEnd(name, task.uid, str(task.state), hub.clock.now(), task.failure_reason or "")
            for name, task in found if task.state in ENDED]  # fmt: skip
    hub.circling |= any(task.state == BLOCKED for _, task in found)
    hub.journal.ends.note(ends)


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
