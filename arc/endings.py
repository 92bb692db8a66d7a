"""Tells givers how the tasks ended that had left them, so that kept copies may age out."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_node.queries import Given, Shown
from agent_node.strict import JsonObject

from .asking import read_given, read_shown
from .decisions.view import FleetView, NodeSeen
from .errors import ArcError
from .links import Link
from .settling import end_of
from .telling import Word, tell

ENDS_MAX = 200  # tasks of one node whose end is looked for in one call
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


@dataclass(frozen=True)
class EndsTold:
    """How many ends givers were told, and what went wrong meanwhile."""

    told: int
    failed: tuple[ArcError, ...] = ()


@dataclass(eq=False)
class Endings:
    """Goes through the kept copies of every giver, a page of `ENDS_MAX` at each call.

    No safety depends on it, so a node that fails is asked again another time, and named. Every
    task that has not ended yet costs one question: call it seldom, such as once in six hours.
    """

    after: dict[str, str] = field(default_factory=dict)  # by giver: where its next page begins

    async def tell(self, links: Mapping[str, Link], view: FleetView) -> EndsTold:
        """Tell each giver the ends that are known where its tasks went."""
        seen = {node.name: node for node in view.seen if node.name in links}
        told = await asyncio.gather(*(self._tell(links, seen, node) for node in seen.values()))
        return EndsTold(sum(one.told for one in told), sum((one.failed for one in told), ()))

    async def _tell(
        self, links: Mapping[str, Link], seen: Mapping[str, NodeSeen], node: NodeSeen
    ) -> EndsTold:
        words: dict[str, list[Word]] = defaultdict(list)
        failed: list[ArcError] = []
        try:
            for one in await self._next_page(links[node.name]):
                if one.peer in seen and one.settled and not one.here:
                    ended = await _how_it_ended(links[one.peer], one.uid, failed)
                    if ended is not None:
                        words[one.peer].append(Word(one.xfer, one.uid, one.peer_incarnation, ended))
            for peer, told in words.items():
                await tell(end_of(links, node), peer, "settled", told)
        except ArcError as error:
            return EndsTold(0, (*failed, error))
        return EndsTold(sum(map(len, words.values())), tuple(failed))

    async def _next_page(self, link: Link) -> tuple[Given, ...]:
        """Copies of tasks that never end must not hide those behind them: pages go round."""
        asked: JsonObject = {"open": True, "limit": ENDS_MAX}
        if link.name in self.after:
            asked["after"] = self.after[link.name]
        given, following = read_given(link.name, await link.ask("moved", asked))
        self.after.pop(link.name, None)
        if following is not None:
            self.after[link.name] = following
        return given


async def _how_it_ended(link: Link, uid: str, failed: list[ArcError]) -> str | None:
    """None: it has not ended, or that node cannot say, which is added to `failed`."""
    try:
        shown = read_shown(link.name, uid, await link.ask("show", {"uid": uid}))
    except ArcError as error:
        failed.append(error)
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
