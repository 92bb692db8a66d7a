"""Tells the demo's story: a hub over real nodes, its tasks, and looking on until it is over."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_node.strict import JsonObject
from agent_node.ulid import new_ulid

from .evidence import judge
from .fleet import NAMES, shortened
from .nodes import DemoNodes
from .page import address_of, open_door, page_beside, port_of
from .picture import Picture
from .result import DemoFailed, Result, Wish
from .sight import Sight
from .signalling import Ending
from .tasks import LATER, DemoTask, demo_tasks
from .trying import what_to_try

if TYPE_CHECKING:
    from arc.hub import Hub
    from arc.schedule import RunTold

LOOK_S = 0.25
UP_S = 30.0  # for all daemons to answer
LATER_S = 6.0  # the rest of the inbox comes then, even if nothing was moved before
LIVE_PACE = 6.0  # who looks on wants to see more than who waits for the end
WAVES_MAX = 60
REST_S = 5.0  # between two waves
HUB_LEAVES_S = 20.0
BATCH = 20


@dataclass(eq=False)
class Story:
    """One demo under way; its nodes have been set up, and are starting."""

    wish: Wish
    picture: Picture
    ending: Ending
    nodes: DemoNodes
    began: float
    sight: Sight
    killed: int = 0
    doubts: int = 0
    ended: bool = False
    waves: int = 0
    later: list[DemoTask] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Since the demo began."""
        return time.monotonic() - self.began

    async def run(self) -> None:
        """The story, until it is over or the demo is told to end; both leave in order."""
        story = asyncio.create_task(self._story())
        told = asyncio.create_task(self.ending.wait())
        await asyncio.wait((story, told), return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if not story.done():
            story.cancel()
        await asyncio.gather(story, return_exceptions=True)
        if not story.cancelled():
            story.result()

    async def _story(self) -> None:
        from arc.hub import build_hub

        from .fleet import open_fleet

        async with AsyncExitStack() as stack:
            door = stack.enter_context(open_door()) if self.wish.web else None
            homes = {name: node.root for name, node in self.nodes.every.items()}
            settings = await open_fleet(
                self.sight.folder, homes, policy=self.wish.policy,
                batch=max(BATCH, self.wish.tasks // 4), stack=stack,
                page=port_of(door) if door else None,
            )  # fmt: skip
            self.picture.tell(
                f"arc demo: {len(NAMES)} nodes on this machine over real SSH (127.0.0.1), times "
                f"shortened: {shortened(settings)}; in {self.sight.folder}"
                f"{'' if self.wish.keep else ', gone at the end'}"
            )
            if door:
                self.sight.page = address_of(settings.web.port)
                self.picture.tell(f"the page, as soon as it is up: {self.sight.page}")
            self.sight.reached = {
                node.name: f"{node.host}:{node.port}" if node.host else "on this machine"
                for node in settings.nodes
            }
            hub = build_hub(settings)
            stack.push_async_callback(hub.close)
            await self._until_up()
            await self._give(hub, demo_tasks(self.wish.tasks, pace=self._pace, mint=_mint))
            async with page_beside(hub, self._happened, door):
                await self._with_the_hub(hub)

    @property
    def _pace(self) -> float:
        return 1.0 if self.wish.once else LIVE_PACE

    async def _until_up(self) -> None:
        until = time.monotonic() + UP_S
        while not all(node.is_up for node in self.nodes.every.values()):
            for node in self.nodes.every.values():
                if not node.runs or time.monotonic() > until:
                    said = node.log.read_text(errors="replace")[-2000:]
                    raise DemoFailed(f"{node.name}: its daemon did not start: {said}")
            await asyncio.sleep(0.02)

    async def _give(self, hub: Hub, tasks: tuple[DemoTask, ...]) -> None:
        """Add them where they wait at the beginning, as an operator would."""
        self.waves += 1
        self.sight.add(tasks)
        self.later = [task for task in tasks if task.place == LATER]
        places = sorted({task.place for task in tasks if task.place != LATER})
        await asyncio.gather(*(
            _add(hub, place, [task for task in tasks if task.place == place]) for place in places
        ))  # fmt: skip

    async def _with_the_hub(self, hub: Hub) -> None:
        """Run the hub as `arc up` does, and look on until there is nothing more to see."""
        from arc.running import run_hub

        stop = asyncio.Event()
        running = asyncio.create_task(run_hub(
            hub, stop=stop, heard=self._heard, say=self._happened))
        looking = asyncio.create_task(self._look_on(hub))
        try:
            await asyncio.wait((running, looking), return_when=asyncio.FIRST_COMPLETED)
            if looking.done():
                looking.result()
            else:
                raise DemoFailed("the hub ended by itself")
        finally:
            looking.cancel()
            stop.set()
            async with asyncio.timeout(HUB_LEAVES_S):
                await running

    def _heard(self, told: RunTold) -> None:
        for line in self.sight.hear(told.report, self.seconds):
            self._happened(line)

    def _happened(self, text: str) -> None:
        self.picture.happened(self.seconds, text)

    async def _look_on(self, hub: Hub) -> None:
        quiet_since: float | None = None
        while not self._is_over(hub):
            await self._look(hub)
            quiet = self.sight.is_quiet and not self.later
            quiet_since = (quiet_since or self.seconds) if quiet else None
            if not self.wish.once and quiet_since and self.seconds - quiet_since > REST_S:
                await self._another_wave(hub)
            await asyncio.sleep(LOOK_S)
        self.ended = True

    async def _look(self, hub: Hub) -> None:
        from arc.operations import operation

        self.sight.ledger.look()
        for node in self.nodes.every.values():
            said = node.look(time.monotonic())
            if said:
                self._happened(f"{node.name}: {said}")
        self.sight.look((await operation("status")(hub, {"by": "human:demo"})).data)
        seen = hub.last_view.seen if hub.last_view else ()
        self.doubts = sum(len(node.report.doubts) for node in seen)
        self.picture.draw(self.sight, self.seconds, self._tries())
        if self.later and (self.sight.counts["stolen"] or self.seconds > LATER_S):
            await _add(hub, "inbox", self.later)
            self._happened(f"{len(self.later)} more tasks come to the hub's own queue")
            self.later = []

    def _tries(self) -> tuple[str, ...]:
        if self.wish.once:
            return ()
        return what_to_try(self.sight, self.nodes.every, arc=self.wish.arc)

    def _is_over(self, hub: Hub) -> bool:
        """With `--once`: all is done and no move is in doubt, or it took too long."""
        if not self.wish.once:
            return False
        verdict = judge(self.sight.tasks, self.sight.ledger.lines)
        if not verdict.lost and self.sight.is_quiet and not self.doubts:
            return True
        return self.seconds > 120 + self.wish.tasks / 2

    async def _another_wave(self, hub: Hub) -> None:
        if self.waves == WAVES_MAX:
            return
        self._happened(f"all is done; the next {self.wish.tasks} tasks come")
        await self._give(hub, demo_tasks(self.wish.tasks, pace=self._pace, mint=_mint))

    def result(self) -> Result:
        """What it came to, from what the programs wrote."""
        self.sight.ledger.look()
        sight = self.sight
        return Result(
            len(sight.tasks), sight.counts["stolen"] + sight.counts["drained"],
            sight.counts["routed"], self.doubts, judge(sight.tasks, sight.ledger.lines),
            sight.stranded_s, self.seconds, self.ended, self.killed,
        )  # fmt: skip


async def _add(hub: Hub, place: str, tasks: list[DemoTask]) -> None:
    from arc.operations import operation

    args: JsonObject = {"tasks": [task.as_json() for task in tasks], "by": "human:demo"}
    told = await operation("tasks.add")(hub, args if place == "inbox" else {**args, "to": place})
    if told.exit:
        raise DemoFailed(f"{place}: did not take its tasks: {told.data['results']}"[:500])


def _mint() -> str:
    return new_ulid(int(time.time() * 1000), random.randbytes(10))  # noqa: S311 - names, no secrets
