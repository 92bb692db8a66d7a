"""Measures a whole rebalance of five real nodes, a hundred thousand tasks on the busy one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from agent_node.clock import SystemClock
from agent_node.strict import JsonObject
from agent_node.task import to_wire
from arc.decisions.limits import HealthLimits, StealLimits
from arc.hub import Hub, build_hub
from arc.settings import FleetSettings, NodeEntry
from sensors.fleet_rebalance import FleetRebalance

from .floor_hub import BareCycle
from .hub_fleet import FIVE, five_nodes
from .machine import load
from .measuring import Place, Row, in_turns, milliseconds, ratio
from .moving import child
from .nodes import Node
from .work import BODY, as_task, claimable

BUSY, MOVES = "iris", 10
CLOCK = SystemClock()
AGAINST = (
    "five child processes over pipes, the same requests at once for all pairs, one durable"
    " transaction for each step; no planner, no reason, no journal"
)
QUIET_S, LOOK_S = 0.3, 0.02
ROOM = "queue_max = 200000"


@dataclass
class Fleet:
    """The hub of five daemons; what moved has run before the next round."""

    runner: asyncio.Runner
    hub: Hub
    nodes: Mapping[str, Node]
    sensor: FleetRebalance
    moved: int = 0

    def cycle(self) -> None:
        """Look, plan, move ten, and write down the run with every reason."""
        self.runner.run(self._cycle())

    async def _cycle(self) -> None:
        began = CLOCK.now()
        report = await self.sensor.run(self.hub, began)
        self.hub.journal.runs.add(report, began=began, because="bench")
        if report.acted != MOVES or any(one.outcome != "moved" for one in report.moves):
            raise RuntimeError(f"{report.acted} moved: {report.summary}")
        self.moved += report.acted

    def quiet(self) -> None:
        """Until the four have run what they were given and say so, and a moment longer."""
        idle = [name for name in FIVE if name != BUSY]
        while not self.runner.run(self._all_idle(idle)):
            time.sleep(LOOK_S)
        time.sleep(QUIET_S)

    async def _all_idle(self, names: list[str]) -> bool:
        said = [await self.hub.links[name].ask("status") for name in names]
        return all(one["idle"] is True for one in said)


@contextmanager
def our_fleet(place: Place) -> Iterator[Fleet]:
    """Five daemons and their hub over pipes; the busy node's only agent is paused."""
    with (
        five_nodes(place, {"": ["/bin/true"]}, slots=2, toml=ROOM) as nodes,
        asyncio.Runner() as runner,
    ):
        with nodes[BUSY].owner() as pipe:
            pipe.ask("pause", agent=BUSY, reason="it is measured", by="human:bench")
        entries = tuple(NodeEntry(name, local=True, home=str(node.home.root))
                        for name, node in nodes.items())  # fmt: skip
        settings = FleetSettings(
            "bench", "arc", place.folder / "fleet.yaml", place.folder / ".arc", nodes=entries,
            steal=StealLimits(idle_min_s=0.0), health=HealthLimits(disk_over=1.0),
        )  # fmt: skip
        hub = runner.run(_built(settings))
        try:
            yield Fleet(runner, hub, nodes, FleetRebalance(settings))
        finally:
            runner.run(hub.close())


async def _built(settings: FleetSettings) -> Hub:
    return build_hub(settings, clock=CLOCK)


def fill(node: Node, tasks: int) -> None:
    """So many more, in parts; all of them anybody may do."""
    with node.owner() as pipe:
        for start in range(0, tasks, 1000):
            count = min(1000, tasks - start)
            made = [{"subject": f"task {number}", "priority": 9, "body": BODY}
                    for number in range(count)]  # fmt: skip
            pipe.ask("add", tasks=made)


@contextmanager
def floor_cycle(place: Place, rounds: int) -> Iterator[BareCycle]:
    """Five children of the floor's making, with enough on the busy one."""
    with ExitStack() as stack:
        folder, start = place.fresh("floor"), [sys.executable, "-m", "bench.floor_node"]
        pipes = [
            stack.enter_context(
                child(
                    subprocess.Popen(
                        [*start, str(folder / f"{name}.db")], cwd=Path(__file__).parent.parent,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    )
                )
            )
            for name in FIVE
        ]  # fmt: skip
        tasks = [as_task(plain) for plain in claimable((rounds + 3) * MOVES, 7)]
        pipes[0].ask("add", tasks=[to_wire(replace(task, priority=9)) for task in tasks])
        yield BareCycle(pipes[0], pipes[1:], [task.uid for task in tasks])


def rebalance_rows(place: Place) -> Iterator[Row]:
    """At 1,000 and then at 100,000 on the same node, each time in turns with the floor."""
    rounds = place.rounds(21)
    small, large = place.size(1000, 50), place.size(100_000, 200)
    with our_fleet(place) as fleet, floor_cycle(place, 2 * rounds) as bare:
        sides = (_quietly(fleet, fleet.cycle), _quietly(fleet, bare.run))
        fill(fleet.nodes[BUSY], small)
        for side in sides:
            side()
        at_small, _ = in_turns(rounds, *sides)
        fill(fleet.nodes[BUSY], large - small)
        sides[0]()
        mine, floor = in_turns(rounds, *sides)
        looked = fleet.runner.run(_candidates_ms(fleet))
    middle, spread = ratio(mine, floor)
    yield Row(
        "rebalance-100k", f"5 real nodes, {large:,} READY on one: look, plan, 10 moved, written",
        median(mine), median(floor), "ms", middle, 8.0, against=AGAINST, spread=spread,
        load=load(), more={"of it the question `candidates`, ms": looked},
    )  # fmt: skip
    yield Row(
        "rebalance-vs-1k", f"the same against itself with {small:,} READY",
        median(mine), median(at_small), "ms", median(mine) / median(at_small), 2.0, load=load(),
        against="our own time at 1,000 READY",
    )  # fmt: skip


def _quietly(fleet: Fleet, do: Callable[[], None]) -> Callable[[], float]:
    """Both sides start from a fleet that stands still."""

    def take() -> float:
        fleet.quiet()
        return milliseconds(do)()

    return take


async def _candidates_ms(fleet: Fleet) -> float:
    """The one question whose answer may depend on how many tasks wait."""
    wanted: JsonObject = {"why": "stolen", "order": "least_urgent", "steal_from": 5, "limit": 10,
              "for": [{"node": "loom", "untagged_from": 8, "hops_max": 0}]}  # fmt: skip
    took = []
    for _ in range(11):
        began = time.perf_counter()
        await fleet.hub.links[BUSY].ask("candidates", {**wanted})
        took.append(1000 * (time.perf_counter() - began))
    return median(took)
