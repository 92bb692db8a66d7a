"""Looks through the tasks that nodes know for what no domain's signs fit any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from arc.asking import read_listed
from arc.decisions.sounding import Signs, Sounds, sounds_of
from arc.errors import ArcError
from arc.looking import INBOX

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.links import Link

LOOK_S = 1.5  # a person waits
PAGE, PAGES_MAX = 1000, 5  # of one node; who has more is not read through


async def look_through(hub: Hub, signs: Signs) -> tuple[Sounds, tuple[str, ...]]:
    """What of these signs no task has, ended ones included; and the queues that were not read to
    their end, of which it takes one only, and nothing is said to be missing.
    """
    names = [INBOX, *sorted(node.name for node in hub.settings.nodes)]
    found = await asyncio.gather(*(_subjects(hub.links.get(name)) for name in names))
    unread = tuple(name for name, some in zip(names, found, strict=True) if some is None)
    if unread:
        return Sounds(), unread
    subjects = [subject for some in found for subject in some or ()]
    return await asyncio.to_thread(sounds_of, signs, subjects), ()


async def _subjects(link: Link | None) -> list[str] | None:
    """Of every task there; None: it was not heard in time, or has too many."""
    if link is None:
        return None
    subjects, asked = list[str](), JsonObject({"limit": PAGE})
    try:
        async with asyncio.timeout(LOOK_S):
            for _ in range(PAGES_MAX):
                page = read_listed(link.name, await link.ask("list", asked))
                subjects += [task.subject for task in page.tasks]
                if page.next is None:
                    return subjects
                asked = {"limit": PAGE, "after": page.next}
    except (ArcError, TimeoutError):
        pass  # who is silent is named by whoever asked for this
    return None
