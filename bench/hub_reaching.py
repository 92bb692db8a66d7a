"""Measures how soon a hundred nodes have been asked over warm links, alone and with a plan."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import asyncssh

from agent_node.clock import SystemClock
from arc.decisions.view import FleetView
from arc.hub import Hub, build_hub
from arc.keys import private_key_path
from arc.operations.status import status as status_operation
from arc.survey import survey
from sensors.fleet_rebalance import FleetRebalance

from .floor_hub import connect_all
from .hub_far import FIXED
from .hub_fleet import Far, far_side, names
from .machine import load
from .measuring import Place, Row, in_turns, ratio
from .peer_ssh import ssh_peers

CLOCK = SystemClock()
LIMIT_S = 120.0
ECHO = (
    "bare asyncssh sessions to the same server: the same request, the same bytes back, the same"
    " ciphers, and nobody reads them"
)
Story = Callable[[], Coroutine[Any, Any, object]]


class Stage:
    """One far side, the warm floor, and a hub that reaches the same nodes over its own links."""

    def __init__(self, runner: asyncio.Runner, far: Far, place: Place) -> None:
        self.runner, self.far = runner, far
        self.key = asyncssh.read_private_key(private_key_path(far.state))
        self.settings = far.settings(FIXED, place.folder / "fleet.yaml")
        self.hub = runner.run(self._built())
        self.floor = runner.run(connect_all(self.logins(FIXED), self.key))
        self.sensor = FleetRebalance(self.settings)

    async def _built(self) -> Hub:
        return build_hub(self.settings, clock=CLOCK)

    def logins(self, kind: str) -> list[tuple[str, int]]:
        return [(f"{kind}-{name}", port) for name, port in self.far.ports.items()]

    def side(self, story: Story) -> Callable[[], float]:
        """Takes milliseconds; the loop lives on between the rounds."""
        return lambda: self.runner.run(took_ms(story))

    async def survey(self) -> FleetView:
        """Every status, read, checked and laid side by side."""
        links = {name: self.hub.links[name] for name in self.far.ports}
        return whole(await survey(links, roles=self.hub.roles(), clock=CLOCK, deadline_s=LIMIT_S),
                     len(links))  # fmt: skip

    async def tell(self) -> object:
        """The whole of `arc status` inside the hub."""
        return await status_operation(self.hub, {})

    async def cycle(self) -> object:
        """A whole cycle of the rebalance that finds nothing to move."""
        report = await self.sensor.run(self.hub, CLOCK.now())
        if report.looked != len(self.far.ports) or report.acted or report.outcome == "failed":
            raise RuntimeError(str(report))
        return report

    async def cycle_kept(self) -> None:
        """The same, and written down."""
        began = CLOCK.now()
        report = await self.sensor.run(self.hub, began)
        self.hub.journal.runs.add(report, began=began, because="bench")

    async def close(self) -> None:
        await self.floor.close()
        await self.hub.close()


async def took_ms(story: Story) -> float:
    """Timed within the loop: a hub's loop runs on, and is not entered anew for each question."""
    began = time.perf_counter()
    await story()
    return 1000 * (time.perf_counter() - began)


def whole(view: FleetView, count: int) -> FleetView:
    """Every one of them was seen, or the figure means nothing."""
    if len(view.seen) != count:
        raise RuntimeError(f"seen {len(view.seen)} of {count}: {view.unseen[:2]}")
    return view


@contextmanager
def stage_of(place: Place) -> Iterator[Stage]:
    """A hundred nodes, warm on both sides."""
    count = place.size(100, 3)
    bare = [place.python, "-I", "-S", "-c", "pass"]
    with (
        far_side(place.folder / ".arc", bare, named=names(count)) as far,
        asyncio.Runner() as runner,
    ):
        stage = Stage(runner, far, place)
        try:
            for _ in range(3):
                runner.run(stage.survey())
                runner.run(stage.floor.echo())
            yield stage
        finally:
            runner.run(stage.close())


def status_rows(place: Place) -> Iterator[Row]:
    """Against the bare echo, in turns."""
    with stage_of(place) as stage:
        mine, bare, told = in_turns(
            place.rounds(61),
            *map(stage.side, (stage.survey, stage.floor.echo, stage.tell)),
        )
        others = ssh_peers(place.rounds(21), stage.far.ports, private_key_path(stage.far.state))
        count = len(stage.far.ports)
        size = stage.runner.run(stage.floor.echo()) / count
    middle, spread = ratio(mine, bare)
    yield Row(
        "status-100", f"status of {count} nodes over warm SSH, read and checked",
        median(mine), median(bare), "ms", middle, 1.5, against=ECHO, spread=spread, load=load(),
        more={"bytes of an answer": size,
              "arc status as the hub answers it, journal and all, ms": median(told),
              **others},
    )  # fmt: skip


def empty_rows(place: Place) -> Iterator[Row]:
    """Against our own survey, in turns."""
    with stage_of(place) as stage:
        plan, status, bare, kept = in_turns(
            place.rounds(61),
            *map(stage.side, (stage.cycle, stage.survey, stage.floor.echo, stage.cycle_kept)),
        )
        count = len(stage.far.ports)
    middle, spread = ratio(plan, status)
    yield Row(
        "empty-plan-100", f"fleet-rebalance over {count} idle nodes: survey, settle, plan, report",
        median(plan), median(status), "ms", middle, 2.0, against="status-100, in the same turns",
        spread=spread, load=load(),
        more={"bare echo, ms": median(bare), "with the run in the journal, ms": median(kept)},
    )  # fmt: skip
