"""Measures claim and complete through the store at several sizes of the queue."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median

from agent_node.clock import SystemClock
from agent_node.commands import Add, AgentRow, Claim, Claimed, Finish, Result, SetAgents
from agent_node.store.sqlite import SqliteStore, open_store

from .floor_queue import OUTPUT, FloorQueue, Plain
from .machine import load
from .measuring import Place, Row, in_turns, ratio, timed
from .peers import PEERS, Peer, peers
from .work import as_task, claimable, mixed, rare

AGENT = "iris"
AGAINST = "hand-written sqlite3, WAL + FULL: UPDATE … RETURNING, then UPDATE, a transaction each"
BATCH = 10_000
WARM = 5  # pairs that each side does before its round: what was prepared is not on its account
SIZES = {"1k": 1_000, "100k": 100_000, "1M": 1_000_000}
_seeds = count(1)


class Ours:
    """The store, in the way the dispatcher uses it: end one task and claim the next."""

    def __init__(self, home: Path, tasks: Iterable[Plain]) -> None:
        self.store: SqliteStore = open_store(
            home, name=AGENT, clock=SystemClock(), queue_max=10_000_000
        )
        self.store.apply(SetAgents((AgentRow(AGENT, 1, ("python",)),)))
        self.add(tasks)
        self.now = self._claimed(self.store.apply(Claim(AGENT)))

    def add(self, tasks: Iterable[Plain]) -> None:
        """In batches: nothing here is measured."""
        rest = iter(tasks)
        while batch := [as_task(plain) for plain in islice(rest, BATCH)]:
            self.store.apply(Add(tuple(batch)))

    def finish_and_claim(self, pairs: int) -> None:
        """So many tasks, each ended and the next claimed in one durable transaction."""
        result = Result("completed", output={**OUTPUT}, exit_code=0, duration_s=0.1)
        for _ in range(pairs):
            told = self.store.apply(Finish(self.now.task.uid, self.now.n, result, AGENT))
            self.now = self._claimed(told.next)

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    @staticmethod
    def _claimed(found: object) -> Claimed:
        if not isinstance(found, Claimed):
            raise LookupError(f"the bench ran out of work: {found}")
        return found


def claim_rows(place: Place) -> Iterator[Row]:
    """One row a size, the rare need, and how our own rate holds up."""
    rates: dict[str, float] = {}
    for name, size in SIZES.items():
        yield _row(place, name, place.size(size, min(size, 300)), rates)
    yield _rare(place, rates)
    for name in ("1M", "rare"):
        yield Row(
            f"claim-{name}-vs-1k", f"our own rate at {name}, against our own at 1k",
            rates[name], rates["1k"], "pairs/s", rates[name] / rates["1k"], 0.5, at_least=True,
            against="our own rate at 1k READY", load=load(),
        )  # fmt: skip


def _row(place: Place, name: str, size: int, rates: dict[str, float]) -> Row:
    tasks, pairs = list(mixed(size, next(_seeds))), place.size(100, 5)
    spent = WARM + pairs
    ours = Ours(place.fresh(f"claim-{name}"), tasks)
    floor, bare, single = (
        _floor(place, f"{kind}-{name}", tasks) for kind in ("two", "bare", "one")
    )
    others = peers(place, tasks, name) if name == "1k" else {}
    queues: list[Peer | Ours] = [ours, floor, bare, single, *others.values()]

    def our_side() -> float:
        for queue in queues:  # each stays at its size while it is measured
            queue.add(claimable(spent, next(_seeds)))
        gc.collect()
        return _rate(ours.finish_and_claim, pairs)

    works = [floor.claim_and_complete, bare.without_begin, single.complete_and_claim]
    works += [other.claim_and_complete for other in others.values()]
    mine, theirs, least, alone, *rest = in_turns(
        place.rounds(21), our_side, *[partial(_rate, work, pairs) for work in works]
    )
    for queue in queues:
        queue.close()
    rates[name] = median(mine)
    middle, spread = ratio(mine, theirs)
    more: dict[str, float | str] = {
        "floor without BEGIN and COMMIT, pairs/s": median(least),
        "floor in one transaction, pairs/s": median(alone),
    }
    more |= {f"{peer}, pairs/s": median(taken) for peer, taken in zip(others, rest, strict=True)}
    more |= {peer: "not installed" for peer in PEERS if others and peer not in others}
    return Row(
        f"claim-{name}", f"claim + complete, durable, {size:,} READY, needs filter on",
        median(mine), median(theirs), "pairs/s", middle, 1.0, at_least=True, against=AGAINST,
        spread=spread, load=load(), more=more,
    )  # fmt: skip


def _floor(place: Place, name: str, tasks: Iterable[Plain]) -> FloorQueue:
    queue = FloorQueue(place.fresh(name) / "floor.db")
    queue.add(tasks)
    return queue


def _rate(work: Callable[[int], None], pairs: int) -> float:
    """Pairs a second, once the side runs warm, as every other side does."""
    work(WARM)
    return pairs / timed(lambda: work(pairs))


def _rare(place: Place, rates: dict[str, float]) -> Row:
    size, pairs = place.size(1_000_000, 15_000), place.size(40, 2)
    tasks = list(rare(size, next(_seeds)))
    ours = Ours(place.fresh("claim-rare"), tasks)
    floor = _floor(place, "two-rare", tasks)
    mine, theirs = in_turns(
        place.rounds(21),
        partial(_rate, ours.finish_and_claim, pairs),
        partial(_rate, floor.claim_and_complete, pairs),
    )
    rates["rare"] = median(mine)
    ours.close()
    floor.close()
    middle, spread = ratio(mine, theirs)
    return Row(
        "claim-rare", f"the same, {size:,} READY, one of 1,000 claimable and least urgent",
        median(mine), median(theirs), "pairs/s", middle, 1.0, at_least=True, against=AGAINST,
        spread=spread, load=load(),
    )  # fmt: skip
