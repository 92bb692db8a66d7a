"""Finds who waits for a dead letter by its uid, and so would never wait for a copy of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_node.readiness import DEPENDENCY_FAILED, SKIPPED
from agent_node.strict import JsonObject
from agent_node.task import Task
from agent_node.text import counted
from arc.asking import read_listed
from arc.circling import needs_of
from arc.errors import ArcError, WrongUse
from arc.links import Link

from .everybody import not_asked

if TYPE_CHECKING:
    from arc.hub import Hub

PAGE, PAGES_MAX = 1000, 20  # tasks of one queue that are looked at, of each state
SHOWN_MAX = 5


@dataclass(frozen=True)
class _Queue:
    """Who waits for it there; `unseen` says why there may be more. Empty: there are none."""

    waiting: tuple[str, ...]
    unseen: str = ""


async def nobody_waits_for(hub: Hub, dead: str) -> tuple[str, ...]:
    """`WrongUse` where other tasks wait for this one: they would stay behind when a copy takes its
    place. What could not be looked at, a sentence each.
    """
    names = sorted(hub.links)
    seen = await asyncio.gather(*(_look(hub.links[name], dead) for name in names))
    found = [uid for one in seen for uid in one.waiting]
    if found:
        raise WrongUse(_behind(dead, [*dict.fromkeys(found)]),
                       hint="retry it; or add its work anew, and after that those that wait for it")
    silent = [*(one.unseen for one in seen if one.unseen), *not_asked(hub)]
    return tuple(f"{one}: what waits there for {dead} stays behind" for one in silent)


def _behind(dead: str, found: Sequence[str]) -> str:
    more = f" and {len(found) - SHOWN_MAX} more" if len(found) > SHOWN_MAX else ""
    wait = "waits" if len(found) == 1 else "wait"
    return (f"dead edit: {counted(len(found), 'other task')} {wait} for {dead} and for no copy of"
            f" it ({', '.join(found[:SHOWN_MAX])}{more}): its body stays")  # fmt: skip


async def _look(link: Link, dead: str) -> _Queue:
    """What is cancelled may come back with a retry, and may be very much: it is no part of what
    waits now, so that none of it is left unseen.
    """
    one = await _look_at(link, dead, "PENDING", "waiting")
    other = await _look_at(link, dead, "CANCELLED", "cancelled")
    return _Queue((*one.waiting, *other.waiting), one.unseen or other.unseen)


async def _look_at(link: Link, dead: str, state: str, called: str) -> _Queue:
    waiting: list[str] = []
    asked: JsonObject = {"states": [state], "limit": PAGE}
    for _ in range(PAGES_MAX):
        try:
            page = read_listed(link.name, await link.ask("list", asked))
        except ArcError as error:
            return _Queue(tuple(waiting), f"{link.name} did not say who waits: {error}")
        waiting += [one.uid for one in page.tasks if _waits(one, dead)]
        if page.next is None:
            return _Queue(tuple(waiting))
        asked = {**asked, "after": page.next}
    seen = f"of {link.name} the first {PAGE * PAGES_MAX} {called} tasks were looked at"
    return _Queue(tuple(waiting), seen)


def _waits(task: Task, dead: str) -> bool:
    """Whether it waits for it still, or was ended by an edge and comes back with its retry."""
    because = task.failure_reason or ""
    comes_back = because.startswith((f"{DEPENDENCY_FAILED}:", f"{SKIPPED}:"))
    return dead in needs_of(task) and (task.state == "PENDING" or comes_back)
