"""Measures claims where boosts and deadlines differ, against a floor that knows P alone."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

from agent_node.clock import iso
from agent_node.commands import Add
from agent_node.task import Task, built_task

from .claiming import AGAINST, BATCH, Ours
from .floor_queue import FloorQueue, Plain
from .machine import load
from .measuring import Place, Row, in_turns, percentile, ratio, timed
from .work import as_task, claimable, mixed

# Three of ten tasks have a boost of their own, one of ten a deadline between an hour and two days.
BOOSTS = (0.01, 0.05, 1.0, 10.0)
P99_MAX_MS = 10.0


class Urged(Ours):
    """The same store with tasks that grow urgent at different paces."""

    def add(self, tasks: Iterable[Plain]) -> None:
        """In batches: nothing here is measured."""
        chance, rest = random.Random(7), iter(tasks)
        while batch := [_urged(as_task(plain), chance) for plain in islice(rest, BATCH)]:
            self.store.apply(Add(tuple(batch)))

    def each_timed(self, pairs: int) -> list[float]:
        """Milliseconds of so many pairs, one by one."""
        return [1000 * timed(partial(self.finish_and_claim, 1)) for _ in range(pairs)]


def _urged(task: Task, chance: random.Random) -> Task:
    luck, own = chance.random(), dict[str, float | str]()
    if luck < 0.3:
        own["boost_per_minute"] = chance.choice(BOOSTS)
    if luck > 0.9:
        due = datetime.fromtimestamp(time.time(), tz=UTC) + timedelta(hours=chance.uniform(1, 48))
        own["deadline"] = iso(due)
    return built_task(task.__dict__ | own)


def effective_rows(place: Place) -> Iterator[Row]:
    """One row for the rate, and one for what the slowest of a hundred take."""
    size, pairs = place.size(100_000, 300), place.size(100, 5)
    tasks = list(mixed(size, 4242))
    ours = Urged(place.fresh("claim-effective"), tasks)
    floor = FloorQueue(place.fresh("two-effective") / "floor.db")
    floor.add(tasks)
    each: list[float] = []

    def our_side() -> float:
        for queue in (ours, floor):  # each stays at its size while it is measured
            queue.add(claimable(pairs, len(each)))
        gc.collect()
        taken = ours.each_timed(pairs)
        each.extend(taken)
        return 1000 * pairs / sum(taken)

    mine, theirs = in_turns(
        place.rounds(21), our_side, lambda: pairs / timed(partial(floor.claim_and_complete, pairs))
    )
    ours.close()
    floor.close()
    middle, spread = ratio(mine, theirs)
    what = f"claim + complete, durable, {size:,} READY, {len(BOOSTS) + 1} boosts, deadlines"
    yield Row(
        "claim-effective", what, sorted(mine)[len(mine) // 2], sorted(theirs)[len(theirs) // 2],
        "pairs/s", middle, 0.5, at_least=True, against=AGAINST, spread=spread, load=load(),
    )  # fmt: skip
    slow = percentile(each, 99)
    yield Row(
        "claim-effective-p99", f"99 of 100 of those pairs take no longer ({len(each):,} pairs)",
        slow, None, "ms", slow, P99_MAX_MS, load=load(),
    )  # fmt: skip
