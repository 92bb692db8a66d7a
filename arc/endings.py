"""Tells givers how the tasks ended that had left them, so that kept copies may age out."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from agent_node.queries import Given, Shown
from agent_node.strict import JsonObject

from .asking import read_given, read_shown
from .decisions.view import FleetView, NodeSeen
from .errors import ArcError
from .journal_ends import TaskEnd
from .links import Link
from .settling import end_of
from .telling import Word, tell
from .transfer import BATCH_MAX, Outcome

if TYPE_CHECKING:
    from .hub import Hub

ENDS_MAX = 200  # tasks of one node whose end is looked for in one call
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
HINTS_MAX = 50  # refusals of one cycle that are looked into
WHY_MAX = 500  # characters of an error that the log keeps


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


async def tell_heard(
    hub: Hub, view: FleetView, links: Mapping[str, Link], ends: Sequence[TaskEnd]
) -> int:
    """Tell givers at once that tasks completed which the journal saw leave them; how many words.

    Only ends that no word takes back: a cancelled task may be retried where it is, and a giver
    cannot be told otherwise later. A giver that cannot be told is named in the log; `Endings` tells
    it in its next round. One request for each pair of nodes and hundred tasks.
    """
    seen = {node.name: node for node in view.seen if node.name in links}
    moves = hub.journal.runs.moved([one.uid for one in ends])
    went = {(move.uid, move.idle) for move in moves}  # nobody else can have ended them
    state_of = {one.uid: one.state for one in ends if (one.uid, one.node) in went}
    words: dict[tuple[str, str], list[Word]] = defaultdict(list)
    for move in moves:
        if move.busy in seen and move.uid in state_of:
            life = move.idle_incarnation or None
            words[move.busy, move.idle].append(Word(move.xfer, move.uid, life, state_of[move.uid]))
    told = 0
    for (giver, peer), some in sorted(words.items()):
        try:
            await tell_all(links, seen[giver], peer, some)
            told += len(some)
        except ArcError as error:
            hub.journal.runs.log("ends_untold", node=giver, fields={
                "because": str(error)[:WHY_MAX]})  # fmt: skip
    return told


async def tell_all(
    links: Mapping[str, Link], giver: NodeSeen, peer: str, words: Sequence[Word]
) -> None:
    """Each of these moves is settled, and its task has ended; repeating it is safe."""
    for start in range(0, len(words), BATCH_MAX):
        await tell(end_of(links, giver), peer, "settled", words[start : start + BATCH_MAX])


async def hinted(
    hub: Hub, links: Mapping[str, Link], outcomes: Iterable[Outcome]
) -> tuple[TaskEnd, ...]:
    """What has ended on a node that therefore refused it, by that node's own word.

    A node that cannot be asked now refuses the next time, too, and is asked then.
    """
    refused = (one.steal for one in outcomes
               if one.outcome == "kept" and one.rule == "already_here")  # fmt: skip
    asked = [(one.idle, one.task.uid) for one in islice(refused, HINTS_MAX)]
    failed: list[ArcError] = []
    said = await asyncio.gather(*(_how_it_ended(links[node], uid, failed) for node, uid in asked))
    for error in failed:
        hub.journal.runs.log("ends_unknown", fields={"because": str(error)[:WHY_MAX]})
    now = hub.clock.now()
    return tuple(TaskEnd(node, uid, state, now)
                 for (node, uid), state in zip(asked, said, strict=True) if state)  # fmt: skip
