"""Tells givers how the tasks ended that had left them, so that kept copies may age out."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from agent_node.queries import Shown

from .asking import read_given, read_shown
from .decisions.view import FleetView, NodeSeen
from .errors import ArcError
from .links import Link
from .settling import end_of
from .telling import Word, tell

ENDS_MAX = 200  # tasks of one node whose end is looked for in one call
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


async def tell_ends(links: Mapping[str, Link], view: FleetView) -> int:
    """Tell each giver the ends that are known where its tasks went; how many were told.

    No safety depends on it, so a node that fails is asked again another time. Every task that has
    not ended yet costs one question: call it seldom, such as once a day.
    """
    seen = {node.name: node for node in view.seen if node.name in links}
    return sum(await asyncio.gather(*(_tell(links, seen, node) for node in seen.values())))


async def _tell(links: Mapping[str, Link], seen: Mapping[str, NodeSeen], node: NodeSeen) -> int:
    words: dict[str, list[Word]] = defaultdict(list)
    try:
        result = await links[node.name].ask("moved", {"open": True, "limit": ENDS_MAX})
        given, _ = read_given(node.name, result)
        for one in given:
            if one.peer in seen and one.settled and not one.here:
                ended = await _how_it_ended(links[one.peer], one.uid)
                if ended is not None:
                    words[one.peer].append(Word(one.xfer, one.uid, one.peer_incarnation, ended))
        for peer, told in words.items():
            await tell(end_of(links, node), peer, "settled", told)
    except ArcError:
        return 0  # this node, another time
    return sum(map(len, words.values()))


async def _how_it_ended(link: Link, uid: str) -> str | None:
    """None: it has not ended, or that node cannot say."""
    try:
        shown = read_shown(link.name, uid, await link.ask("show", {"uid": uid}))
    except ArcError:
        return None
    state = str(shown.task.state)
    if state == "MOVED":
        return _heard_of_its_end(shown)
    return state if state in ENDED else None


def _heard_of_its_end(shown: Shown) -> str | None:
    """The task went on from there, and that node was told its end in turn."""
    told = [event.get("state") for event in shown.events
            if event.get("event") == "task_ended_elsewhere"]  # fmt: skip
    return str(told[-1]) if told else None
